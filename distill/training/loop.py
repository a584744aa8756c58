"""Train one network on prepared tables: `fit`.

In: a network, a training and a validation table. Out, in the run's folder: `best.keras` (smallest loss on validation
boards, none of which is in training), `last.keras`, `history.csv`, `curves.png`, and `checkpoint.npz`, from which an
interrupted run resumes to the weights it would have had without the interruption.

An epoch is a pass over the training table. Evaluations, each with a checkpoint, come every `eval_every` steps or at the
end of each epoch.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import keras
import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, UserError, say
from distill.datasets import batching
from distill.networks import finding, heads
from distill.networks.cpu_kernels.fast_copy import fast_copy
from distill.networks.saved import save_network
from distill.training import checkpoint, history, losses, run_folder, schedule, step
from distill.training.recipe import Recipe

LEAST_CHANCE = 1 / 8
"""Smallest probability of using a board in an epoch, however well it is learned (`loss_sampling`)."""
TIMED_STEPS = 10
SHARE_OF_MINUTES = 0.85
"""Share of `minutes` planned for training steps; evaluations, saving and export need the rest."""

Watch: TypeAlias = Callable[[keras.Model], dict[str, float]]
"""More columns for the history from the network as it is at an evaluation."""


@dataclass(kw_only=True)
class State:
    """Progress of a run: with the variables of model and optimizer, everything that the next step depends on."""

    planned_steps: int
    """Decided once, at the start, so that a resumed run follows the same schedule."""
    step: int = 0
    epoch: int = 0
    position: int = 0
    """Rows of this epoch that are done."""
    divergence: NDArray[np.float16] | None = None
    """float16 (N,): KL divergence of each training board, in nats, when it was last learned; for `loss_sampling`."""
    evaluations: int = 0
    lr_factor: float = 1.0
    lr_lowered_at: int = 0
    """Evaluation after which a plateau last lowered the learning rate."""
    best_loss: float = math.inf
    best_evaluation: int = 0
    best_step: int = 0
    stopped_early: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether no step is left."""
        return self.stopped_early or self.step >= self.planned_steps


def fit(
    core: keras.Model,
    training: batching.Examples,
    validation: batching.Examples,
    recipe: Recipe,
    folder: Path,
    watch: Watch | None = None,
    loss: losses.Loss | None = None,
) -> State:
    """Train until all planned steps are done, resuming from the folder's checkpoint if there is one.

    Args:
      core: the network, which becomes what was learned. A copy with fast CPU kernels is trained.
      watch: adds columns to the history after each evaluation.
      loss: the loss of each board; None: `losses.policy_and_value_loss`.

    With `interpolate`, `core` must have its initial weights, also if the run resumes.
    Raises UserError if the loss becomes NaN or infinite; the last checkpoint stays.
    """
    found = checkpoint.load(folder)
    if found and State(**found[1]).finished:  # killed after the last evaluation: the network is written
        return State(**found[1])
    size = min(recipe.batch_size, len(training))
    trained, initial = fast_copy(core, recipe.precision, recipe.dropout), core.get_weights()
    divergence = losses.Divergence(size) if recipe.loss_sampling else None
    model, played = step.compiled(trained, recipe, loss, divergence), heads.played(core)
    say("compiling the training step")
    if found:
        state = State(**found[1])
        checkpoint.restore(model, found[0])
    else:
        state = State(planned_steps=_planned_steps(model, training, recipe))
        state.divergence = np.full(len(training), np.inf, np.float16) if divergence else None
    batches = _batches(training, recipe, state)
    with Progress(state.planned_steps * size, "boards", done=state.step * size, warm_up=True) as progress:
        while not state.finished:
            began = time.monotonic()
            row = _train_until_evaluation(model, batches, training, recipe, state, progress, divergence)
            step.copy_learned(model, trained, core, initial, recipe.interpolate)
            measured = losses.evaluate(played, validation, recipe, loss)
            _require_number(measured["loss"], recipe, state)
            state.evaluations += 1
            row |= {f"validation_{name}": value for name, value in measured.items()} | (watch(core) if watch else {})
            state.history.append(row | {"seconds": round(time.monotonic() - began, 2)})
            if measured["loss"] < state.best_loss:
                state.best_loss, state.best_step = measured["loss"], state.step
                state.best_evaluation = state.evaluations
                save_network(core, folder / finding.BEST)
            schedule.after_evaluation(recipe, state)
            save_network(core, folder / run_folder.LAST)
            history.write(folder, state.history)
            checkpoint.save(folder, model, dataclasses.asdict(state))  # last: it completes the evaluation
            progress.reach(state.step * size, f"validation loss {measured['loss']:.4f}")
    if state.stopped_early:
        say(f"stopped early: {schedule.STOP} evaluations without a better validation loss")
    return state


def _planned_steps(model: keras.Model, training: batching.Examples, recipe: Recipe) -> int:
    """Steps of the run: `steps`, or those of all epochs, or as many as fit into `minutes` at the speed measured now."""
    if recipe.steps is not None:
        return recipe.steps
    steps = recipe.epochs * max(1, len(training) // recipe.batch_size)
    if recipe.minutes is None:
        return steps
    before = checkpoint.snapshot(model)
    batch = next(batching.batches(training, recipe.batch_size, seed=recipe.seed, epoch=0, mirror=recipe.mirror))
    for _ in range(TIMED_STEPS):  # the first one compiles, the next ones fetch memory
        step.train_step(model, batch, recipe, 1.0)
    began = time.monotonic()
    for _ in range(TIMED_STEPS):
        step.train_step(model, batch, recipe, 1.0)
    seconds = (time.monotonic() - began) / TIMED_STEPS
    checkpoint.restore(model, before)
    return max(1, min(steps, int(recipe.minutes * 60 * SHARE_OF_MINUTES / seconds)))


def _batches(training: batching.Examples, recipe: Recipe, state: State) -> Iterator[batching.Batch]:
    """The batches of all epochs from `state` on, which must be updated after each of them."""
    while True:
        yield from batching.batches(
            training,
            recipe.batch_size,
            seed=recipe.seed,
            epoch=state.epoch,
            mirror=recipe.mirror,
            first=state.position,
            keep=_sampled(recipe, state),
        )


def _sampled(recipe: Recipe, state: State) -> NDArray[np.bool_] | None:
    """bool (N,): the boards of this epoch, None for all. A divergence changes only after its board's turn."""
    if state.divergence is None or len(state.divergence) * LEAST_CHANCE < 2 * recipe.batch_size:
        return None  # an epoch of so few boards might have no batch
    draws = np.random.default_rng((recipe.seed, state.epoch, 1)).random(len(state.divergence))
    return np.asarray(draws < np.maximum(LEAST_CHANCE, state.divergence / np.float32(recipe.loss_sampling)))


def _train_until_evaluation(
    model: keras.Model,
    batches: Iterator[batching.Batch],
    training: batching.Examples,
    recipe: Recipe,
    state: State,
    progress: Progress,
    divergence: losses.Divergence | None,
) -> dict[str, float]:
    """Train to the next evaluation; returns the first columns of its row in the history."""
    scale = 1 / float(losses.weights(training.count, recipe).mean())
    total, first, rate = 0.0, state.step, 0.0
    for batch in batches:
        model.optimizer.learning_rate = rate = schedule.learning_rate(recipe, state)
        loss = step.train_step(model, batch, recipe, scale)
        _require_number(loss, recipe, state)
        if divergence and state.divergence is not None:
            state.divergence[batch.rows] = keras.ops.convert_to_numpy(divergence.boards)
        state.step, state.position, total = state.step + 1, batch.after, total + loss
        # Shown one step late, so that 100 % means that the evaluation is done too.
        note = f"epoch {state.epoch + 1} loss {total / (state.step - first):.4f}"
        progress.reach((state.step - 1) * len(batch.boards), note)
        state.epoch += state.position == 0
        due = state.step % recipe.eval_every == 0 if recipe.eval_every else state.position == 0
        if due or state.step == state.planned_steps:
            break
    epoch = state.epoch + state.position / len(training)
    mean = total / (state.step - first)
    return {"step": state.step, "epoch": round(epoch, 3), "learning_rate": rate, "training_loss": mean}


def _require_number(loss: float, recipe: Recipe, state: State) -> None:
    if not math.isfinite(loss):
        raise UserError(
            f"the loss is not a number after step {state.step}; start again with --restart and a smaller --lr than "
            f"{recipe.lr:g}"
        )

"""Train one network on prepared tables: `fit`.

In: a network, a training and a validation table. Out, in the run's folder: `best.keras` (smallest loss on validation
boards, which are never in training), `last.keras`, `history.csv`, `curves.png`, and `checkpoint.npz`, from which an
interrupted run resumes to the weights it would have had without the interruption.

An epoch covers the training table once. Evaluations, each with a checkpoint, come every `eval_every` steps or at the
end of each epoch.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import keras

from distill.common import Progress, say
from distill.datasets import batching
from distill.networks import finding, heads
from distill.networks.cpu_kernels.fast_copy import fast_copy
from distill.networks.saved import save_network
from distill.training import checkpoint, history, losses, schedule, step
from distill.training.identity import LAST
from distill.training.recipe import Recipe
from distill.training.schedule import State

SHARE_OF_MINUTES = 0.85
"""Share of `minutes` planned for training steps; evaluations, saving and export need the rest."""

Watch: TypeAlias = Callable[[keras.Model], dict[str, float]]
"""More columns for the history from the network as it is at an evaluation."""


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
      core: the network, which becomes what was learned, unless the run was done; `finding.BEST` is in the folder then.
        A copy with fast CPU kernels is trained.
      watch: adds columns to the history after each evaluation.
      loss: the loss of each board; None: `losses.policy_and_value_loss`.

    With `interpolate`, `core` must have its initial weights, also if the run resumes.
    Raises UserError if the loss becomes NaN or infinite; the last checkpoint stays.
    """
    values, state = checkpoint.load(folder, State) or (None, None)
    if state and state.finished:  # killed after the last evaluation: the network is written
        return cast(State, state)
    size = min(recipe.batch_size, len(training))
    # Train a copy with fast kernels; `core` takes what it learns.
    model, initial = step.compiled(fast_copy(core, recipe.precision, recipe.dropout), recipe, loss), core.get_weights()
    played = heads.played(core)
    say("compiling the training step")
    if values:
        checkpoint.restore(model, values, folder)
    state = state or State(planned_steps=_planned_steps(model, training, recipe))
    picks = batching.picks(len(training), recipe.batch_size, seed=recipe.seed, mirror=recipe.mirror, step=state.step)
    an_epoch = batching.batches_an_epoch(len(training), recipe.batch_size)
    every = recipe.length.eval_every or an_epoch
    with Progress(state.planned_steps * size, "boards", done=state.step * size, warm_up=True) as progress:
        while not state.finished:
            began = time.monotonic()
            # Train until the next evaluation.
            steps = range(state.step, min(state.planned_steps, (state.step // every + 1) * every))

            def report(number: int, mean: float) -> None:
                # Shown one step late, so that 100 % means that the evaluation is done too.
                progress.reach(number * size, f"epoch {number // an_epoch + 1} loss {mean:.4f}")

            rate = partial(schedule.learning_rate, recipe, state)
            _, mean = step.train_steps(model, picks, training, steps, rate, report)
            state.step, epoch = steps.stop, round(steps.stop / an_epoch, 3)
            row = {"step": state.step, "epoch": epoch, "learning_rate": rate(steps[-1]), "training_loss": mean}
            # Evaluate what was learned.
            step.copy_learned(model, core, initial, recipe.interpolate)
            measured = losses.evaluate(played, validation, recipe, loss)
            step.require_number(measured["loss"], state.step, recipe)
            state.evaluations += 1
            row |= {f"validation_{name}": value for name, value in measured.items()} | (watch(core) if watch else {})
            state.history.append(row | {"seconds": round(time.monotonic() - began, 2)})
            # Keep it where it is the best so far, and write the checkpoint.
            if measured["loss"] < state.best_loss:
                state.best_loss, state.best_step = measured["loss"], state.step
                state.best_evaluation = state.evaluations
                save_network(core, folder / finding.BEST)
            schedule.after_evaluation(recipe, state)
            save_network(core, folder / LAST)
            history.write(folder, state.history)
            checkpoint.save(folder, model, dataclasses.asdict(state))  # last: it completes the evaluation
            progress.reach(state.step * size, f"validation loss {measured['loss']:.4f}")
    if state.stopped_early:
        say(f"stopped early: {schedule.STOP} evaluations without a better validation loss")
    return state


def _planned_steps(model: step.TrainingModel, training: batching.Examples, recipe: Recipe) -> int:
    """Steps of the run: `steps`, or those of all epochs, or as many as fit into `minutes` at the speed measured now."""
    if recipe.length.steps is not None:
        return recipe.length.steps
    steps = recipe.length.epochs * batching.batches_an_epoch(len(training), recipe.batch_size)
    if recipe.length.minutes is None:
        return steps
    speed = step.steps_a_second(model, training, lambda: True)
    return max(1, min(steps, int(recipe.length.minutes * 60 * SHARE_OF_MINUTES * speed)))

"""A training run on prepared tables: steps, evaluations and checkpoints until the planned steps are done.

In: a network, a training and a validation table. Out, in the run's folder: `best.keras` (smallest loss on validation
boards, which are never in training), `last.keras`, `history.csv`, `curves.png`, and `checkpoint.npz`, from which an
interrupted run resumes to the weights it would have had without the interruption.

An epoch covers the training table once. Evaluations, each with a checkpoint, come every `eval_every` steps or at the
end of each epoch.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import keras

from distill.common import Progress, say
from distill.datasets import batching
from distill.networks import finding, heads
from distill.networks.copies import fast_copy
from distill.networks.saved import save_network
from distill.training import checkpoint, history, losses, schedule, step, streams
from distill.training.identity import LAST
from distill.training.recipe import Recipe
from distill.training.schedule import ValidatedState


def train(
    core: keras.Model,
    training: batching.Examples,
    validation: batching.Examples,
    recipe: Recipe,
    folder: Path,
    loss: losses.Loss | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> ValidatedState:
    """Train until all planned steps are done, resuming from the folder's checkpoint if there is one.

    Args:
      core: the network, which becomes what was learned, unless the run was done; `finding.BEST` is in the folder then.
        A copy with fast CPU kernels is trained.
      loss: the loss of each board; None: `losses.policy_and_value_loss`.
      callbacks: told of the start and end of training, and at the end of an epoch, which is an evaluation here, of its
        row of the history, to which they may add numbers. Their model is `core`. They cannot end the training.

    With `interpolate`, `core` must have its initial weights, also if the run resumes.
    Raises UserError if the loss becomes NaN or infinite; the last checkpoint stays.
    """
    stored = checkpoint.load(folder, ValidatedState)
    if stored and stored[1].finished:  # killed after the last evaluation: the network is written
        return stored[1]
    # Train a copy with fast kernels; `core` takes what it learns.
    model, initial = step.compiled(fast_copy(core, recipe.precision), recipe, loss), core.get_weights()
    played = heads.played(core)
    say("compiling the training step")
    if stored:
        checkpoint.restore(model, stored[0], folder)
    an_epoch = batching.batches_an_epoch(len(training), recipe.batch_size)
    planned = recipe.length.steps or recipe.length.epochs * an_epoch
    state = stored[1] if stored else ValidatedState(planned_steps=planned)
    rate = partial(schedule.learning_rate, recipe, state)

    told = keras.callbacks.CallbackList(callbacks, model=core)
    told.on_train_begin()
    picks = batching.picks(len(training), recipe.batch_size, seed=recipe.seed, mirror=recipe.mirror, step=state.step)
    stream, size = streams.table(model, training, picks), min(recipe.batch_size, len(training))
    with Progress(state.planned_steps * size, "boards", done=state.step * size) as progress:

        def report(number: int, mean: float) -> None:
            # Shown one step late, so that 100 % means that the evaluation is done too.
            progress.reach(number * size, f"loss {mean:.4f}")

        while not state.finished:
            began = time.monotonic()
            steps = state.steps_to_evaluation(recipe.length.eval_every or an_epoch)
            _, means = step.fit(model, stream, steps, rate, report)
            state.step = steps.stop
            # Evaluate what was learned.
            step.copy_learned(model, core, initial, recipe.interpolate)
            measured = losses.evaluate(played, validation, recipe, loss)
            step.require_number(measured["loss"], state.step, recipe)
            row = {"step": state.step, "epoch": round(state.step / an_epoch, 3)}
            row |= {"learning_rate": rate(state.step - 1), "training_loss": means["loss"]}
            row |= {f"validation_{name}": value for name, value in measured.items()}
            row |= {"seconds": round(time.monotonic() - began, 2)}
            for callback in callbacks:
                callback.on_epoch_end(len(state.history), row)
            state.history.append(row)
            # Keep the network where it is the best so far.
            if measured["loss"] < state.best_loss:
                state.best_loss, state.best_step = measured["loss"], state.step
                state.best_evaluation = len(state.history)
                save_network(core, folder / finding.BEST)
            schedule.after_evaluation(recipe, state)
            save_network(core, folder / LAST)
            history.write(folder, state.history)
            # Last, because it completes the evaluation.
            checkpoint.save(folder, model, dataclasses.asdict(state))
            progress.reach(state.step * size, f"loss {means['loss']:.4f}")
    told.on_train_end()
    if state.stopped_early:
        say(f"stopped early: {schedule.STOP} evaluations without a better validation loss")
    return state

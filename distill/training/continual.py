"""Train the network of a self-play loop, iteration by iteration, on the window of latest games.

The steps of all iterations continue with one optimizer; the caller sets the learning rate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import keras

from distill.common import Progress
from distill.datasets import batching
from distill.networks.copies import fast_copy
from distill.training import step, streams
from distill.training.recipe import Recipe


def begin(core: keras.Model, recipe: Recipe) -> step.TrainingModel:
    """A copy of a network that learns, with a new optimizer; `step.copy_learned` returns what it has learned."""
    step.make_repeatable(recipe.seed)
    return step.compiled(fast_copy(core, recipe.precision), recipe)


def learn(
    model: step.TrainingModel,
    examples: batching.Examples,
    rate: float,
    seed: int,
    steps: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """Train the recipe's epochs or at most `steps`; returns the mean loss, the steps taken and their seconds.

    Args:
      rate: the learning rate.
      seed: of order and mirroring.
      is_over: asked between two steps; True ends the training early, and alone does so with `sys.maxsize` steps.

    Raises UserError if the loss becomes NaN or infinite.
    """
    recipe, began = model.recipe, time.monotonic()
    steps = steps or recipe.length.epochs * batching.batches_an_epoch(len(examples), recipe.batch_size)
    picks = batching.picks(len(examples), recipe.batch_size, seed=seed, mirror=recipe.mirror)
    stream, size = streams.table(model, examples, picks), min(recipe.batch_size, len(examples))
    with Progress(None if steps == sys.maxsize else steps * size, "boards") as progress:

        def report(number: int, mean: float) -> None:
            progress.reach((number + 1) * size, f"loss {mean:.4f}")

        taken, means = step.fit(model, stream, range(steps), lambda _: rate, report, is_over)
    took = time.monotonic() - began
    if len(examples) < recipe.batch_size and not stream.on_device:
        # For a next table of another size TensorFlow would trace a graph for any size, which differs in the last bits
        # from the graph for one size that a resumed run traces.
        model.make_train_function(force=True)
    return {"training_loss": means["loss"], "steps": taken, "step_seconds": round(took, 2)}

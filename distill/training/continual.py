"""The network of a self-play loop as it learns, iteration by iteration, from tables that change under it.

`training.fit` trains one network on one data set to the end; here the same steps, losses and optimizers go on over many
small tables, with a learning rate set from outside, and the optimizer's state goes on with them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keras

from distill import networks
from distill.common import Progress, UserError, first_line
from distill.datasets import batching
from distill.networks import matrix_form
from distill.training import checkpoint, training
from distill.training.recipe import Recipe

MEASURED = 16_384
"""Boards at most on which a network is measured after it has learned from a table."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A network with mask, losses and optimizer around it; `model` shares the weights of `core`."""

    core: keras.Model
    model: keras.Model
    recipe: Recipe

    def give(self, network: keras.Model) -> None:
        """Set another network of this shape to what was learned: the average over the steps, if one is kept."""
        training.give_learned(self.model, self.core, network)


def begin(core: keras.Model, recipe: Recipe) -> Learner:
    """A learner with the weights of a network, which stays as it is, and a fresh optimizer.

    Raises UserError for a network of another shape than its arch has now.
    """
    training.make_repeatable(recipe.seed)
    arch = networks.arch_of(core)
    try:
        own = training.quick_form(arch, True, recipe)
        matrix_form.copy_weights(core, own)
    except ValueError as error:
        raise UserError(f"{arch}: not a network this distill can train on ({first_line(error)})") from None
    return Learner(core=own, model=training.compiled(own, recipe), recipe=recipe)


def resume(learner: Learner, folder: Path) -> None:
    """Go on from a folder's checkpoint. Raises UserError where there is none, or it is damaged or another network's."""
    if (found := checkpoint.load(folder)) is None:
        raise UserError(f"{folder}: no checkpoint; --restart begins anew")
    try:
        checkpoint.restore(learner.model, found[0])
    except ValueError as error:
        raise UserError(f"{folder / checkpoint.FILE}: {error}") from None


def learn(
    learner: Learner,
    examples: batching.Examples,
    rate: float | Callable[[int], float],
    seed: int,
    steps: int | None = None,
) -> dict[str, float]:
    """Train `recipe.epochs` passes, or so many steps; returns the mean loss and what the network then scores.

    `rate` is the learning rate, or gives it by the number of the step, from 0. `policy_loss` and `value_error` are
    measured on these boards, or `MEASURED` of them, after the last step. Raises UserError where the loss stops being a
    number.
    """
    recipe, model = learner.recipe, learner.model
    scale = 1 / float(training.weights(examples.count, recipe).mean())
    if steps is None:
        steps = recipe.epochs * (len(examples) // recipe.batch_size or 1)
    passes = (
        batching.batches(examples, recipe.batch_size, seed=seed, epoch=epoch, mirror=recipe.mirror)
        for epoch in itertools.count()
    )
    total = 0.0
    with Progress(steps * min(recipe.batch_size, len(examples)), "boards", warm_up=True) as progress:
        for step, batch in enumerate(itertools.islice(itertools.chain.from_iterable(passes), steps)):
            model.optimizer.learning_rate = now = rate(step) if callable(rate) else rate
            total += training.train_step(model, batch, recipe, scale)
            if not math.isfinite(total):
                raise UserError(f"the loss is not a number; begin anew with a smaller --lr than {now:g}")
            progress.advance(len(batch.boards), f"loss {total / (step + 1):.4f}")
    if len(examples) < recipe.batch_size:
        # A next table of another size would be learned from by a graph for any size. It differs in the last bits from
        # the one for a single size that a resumed run makes.
        model.make_train_function(force=True)
    measured = training.evaluate(model, examples[:MEASURED], recipe)
    return {
        "training_loss": total / steps,
        "policy_loss": measured["loss"] - recipe.value_weight * measured["value_error"],
        "value_error": measured["value_error"],
        "steps": steps,
    }

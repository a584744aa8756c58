"""What training minimizes: the losses, and the mean of a loss over a table for evaluation.

A loss is a function of targets and outputs by name, of `keras.ops`. Values are in [-1, 1] for the side to move.

Dimensions: B batch, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from distill.common import UserError, plugins
from distill.datasets import batching
from distill.networks import heads
from distill.training import streams
from distill.training.recipe import Recipe

EVALUATION_BATCH = 1024

Loss: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""targets, outputs → the loss of each board, (B,), by `keras.ops`.

Both hold "logits" (B, A), in the targets probabilities, in the outputs logits with -1e9 on full columns; and "value"
(B,) where the network has that head. A step minimizes the mean of weight · loss.
"""


def policy_and_value_loss(
    targets: Mapping[str, Any], outputs: Mapping[str, Any], value_weight: float = 1.0, by_board: bool = False
) -> Any:
    """The default loss, (B,): cross-entropy(target, policy) + value_weight · mean (value target − value)².

    The value's squared error is the batch's mean for every board, so weights by count tell boards apart in the policy
    alone. With `by_board` it is the error of each board.
    """
    loss = ops.categorical_crossentropy(targets["logits"], outputs["logits"], from_logits=True)
    if "value" in targets:
        error = ops.square(targets["value"] - outputs["value"])
        loss = loss + value_weight * (error if by_board else ops.mean(error))
    return loss


def default_loss(recipe: Recipe) -> Loss:
    """`policy_and_value_loss` with the recipe's `value_weight`."""
    return partial(policy_and_value_loss, value_weight=recipe.targets.value_weight)


def checked(loss: Loss, core: keras.Model, examples: batching.Examples, recipe: Recipe) -> Loss:
    """A user's loss, which was tried on a few boards; what it raises, then and later, is a UserError.

    Raises UserError unless it returns the loss of each board, (B,), and for a `value_weight`, which it does not get.
    """
    name = f"loss {loss.__qualname__}"
    if recipe.targets.value_weight != 1:
        raise UserError(f"{name}: value_weight acts on the default loss alone; weigh the value in yours")
    played = heads.played(core)
    boards, targets, weights = in_order(examples[:8], recipe, heads.has_value(core))  # not 7, the number of columns
    arrays = keras.tree.map_structure(ops.convert_to_tensor, (targets, played.predict_on_batch(boards)))
    shape = np.shape(plugins.call(loss, name, *arrays))
    if shape != weights.shape:
        raise UserError(f"{name}: returned shape {shape} for {len(weights)} boards, not one loss a board")
    return partial(plugins.call, loss, name)


def in_order(examples: batching.Examples, recipe: Recipe, with_value: bool) -> streams.Batch:
    """All these boards as one batch, none of them mirrored."""
    rows = np.arange(len(examples))
    columns = streams.columns_of(examples, recipe)
    return streams.batch_of(columns, rows, np.zeros(len(rows), np.bool_), recipe=recipe, with_value=with_value)


def evaluate(
    model: keras.Model, examples: batching.Examples, recipe: Recipe, loss: Loss | None = None
) -> dict[str, float]:
    """Means over a table, every board once and with weight 1.

    `loss` is the training loss without weights; `top1` the share of boards whose label has the largest logit;
    `value_error` the squared error of the value, if there is that head. `model` takes boards, as `heads.played` does.
    """
    loss, with_value = loss or default_loss(recipe), heads.has_value(model)
    sums = {"loss": 0.0, "top1": 0.0} | ({"value_error": 0.0} if with_value else {})
    # Sums, because the last batch may be smaller.
    for first in range(0, len(examples), EVALUATION_BATCH):
        part = examples[first : first + EVALUATION_BATCH]
        boards, targets, _ = in_order(part, recipe, with_value)
        outputs = model.predict_on_batch(boards)
        sums["top1"] += int((outputs["logits"].argmax(axis=1) == part.label).sum())
        if with_value:
            sums["value_error"] += float(np.square(outputs["value"] - targets["value"]).sum(dtype=np.float64))
        # Last, because a user's loss may change what it gets.
        sums["loss"] += float(ops.convert_to_numpy(loss(targets, outputs)).sum(dtype=np.float64))
    return {name: total / len(examples) for name, total in sums.items()}

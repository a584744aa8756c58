"""What a network learns from a batch: targets, the loss, and the same loss over a table for evaluation.

Dimensions: B batch, A = 7 columns. Values are in [-1, 1] for the side to move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.common import UserError, plugins
from distill.datasets import batching
from distill.networks import heads
from distill.training.recipe import Recipe

EVALUATION_BATCH = 1024

Loss: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""targets, outputs → the loss of each board, (B,), by `keras.ops`.

Both hold "logits" (B, A), in the targets probabilities, in the outputs logits with -1e9 on full columns; and "value"
(B,) where the network has that head. A step minimizes the mean of weight(count) · loss.
"""


def policy_and_value_loss(targets: Mapping[str, Any], outputs: Mapping[str, Any], value_weight: float = 1.0) -> Any:
    """The default loss, (B,): cross-entropy(target, policy) + value_weight · mean (value target − value)².

    The value's squared error is the batch's mean for every board: weights by count act on the policy alone.
    """
    loss = ops.categorical_crossentropy(targets["logits"], outputs["logits"], from_logits=True)
    if "value" in targets:
        loss = loss + value_weight * ops.mean(ops.square(targets["value"] - outputs["value"]))
    return loss


def default_loss(recipe: Recipe) -> Loss:
    """`policy_and_value_loss` with the recipe's `value_weight`."""
    return partial(policy_and_value_loss, value_weight=recipe.targets.value_weight)


def checked(loss: Loss, core: keras.Model, examples: batching.Examples, recipe: Recipe) -> Loss:
    """A user's loss, which was tried on a few boards; what it raises, then and later, is a UserError.

    Raises UserError unless it returns the loss of each board, (B,).
    """
    name = f"loss {getattr(loss, '__qualname__', type(loss).__name__)}"
    played, batch = heads.played(core), next(batching.in_order(examples, 8))  # not 7, the number of columns
    given = targets(batch, recipe, heads.has_value(played)), played.predict_on_batch(batch.boards)
    found = plugins.call(loss, name, *keras.tree.map_structure(ops.convert_to_tensor, given))
    if np.shape(found) != batch.label.shape:
        raise UserError(f"{name}: returned shape {np.shape(found)} for {len(batch.label)} boards, not one loss a board")
    return partial(plugins.call, loss, name)


def targets(batch: batching.Batch, recipe: Recipe, with_value: bool) -> dict[str, NDArray[np.float32]]:
    """Targets of a network's outputs: "logits" as probabilities (B, A), and "value" (B,) if it has that head."""
    policy = batch.visits / batch.visits.sum(axis=1, keepdims=True)
    vote = np.eye(7, dtype=np.float32)[batch.label]
    return blended(policy, vote, batch.value, batch.outcome, recipe, with_value)


def blended(policy: Any, vote: Any, value: Any, outcome: Any, recipe: Recipe, with_value: bool) -> dict[str, Any]:
    """Targets from visit shares and vote, (B, A), root value and outcome, (B,), of any array library."""
    of_visits = {"visits": 1.0, "vote": 0.0, "blend": 0.5}[recipe.targets.target]
    of_value = {"value": 1.0, "outcome": 0.0}.get(recipe.targets.value_target, 0.5)
    found = {"logits": of_visits * policy + (1 - of_visits) * vote}
    return found | ({"value": of_value * value + (1 - of_value) * outcome} if with_value else {})


def weights(count: NDArray[Any], recipe: Recipe) -> NDArray[np.float32]:
    """float32 (B,), not scaled: weights of boards that occurred `count` (B,) times."""
    return np.power(count, {"equal": 0.0, "root": 0.5, "count": 1.0}[recipe.targets.count_weights], dtype=np.float32)


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
    for batch in batching.in_order(examples, EVALUATION_BATCH):
        wanted, found = targets(batch, recipe, with_value), model.predict_on_batch(batch.boards)
        sums["top1"] += int((found["logits"].argmax(axis=1) == batch.label).sum())
        if with_value:
            sums["value_error"] += float(np.square(found["value"] - wanted["value"]).sum(dtype=np.float64))
        # Last, because a user's loss may change what it gets.
        sums["loss"] += float(ops.convert_to_numpy(loss(wanted, found)).sum(dtype=np.float64))
    return {name: total / len(examples) for name, total in sums.items()}

"""Training steps on an accelerator with JAX: the table lies on the device, and one call computes many steps.

The host draws the batches as on a CPU (`batching.picks`) and sends the numbers of their rows. The device unpacks the
boards, mirrors them, makes the targets and updates the weights; the host waits for it once a call. A table takes 35 to
56 bytes a board on the device.

Dimensions: N boards of the table, S steps of a call, B boards of a batch, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.datasets import batching
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads
from distill.training.losses import blended, weights
from distill.training.recipe import Recipe

if TYPE_CHECKING:
    from distill.training.step import TrainingModel

STEPS = 64
"""Most steps of one call."""

LOW_BITS = 28
"""Bits of a bitboard's first word, four columns; the second word has the others. The device counts in 32 bits."""

_BIT = (ROWS + 1) * np.arange(COLUMNS) + np.arange(ROWS)[::-1, None]
"""int (6, 7): the bit of each cell."""

Table: TypeAlias = Mapping[str, Any]
"""Arrays on the device by name: `current` and `mask` int32 (N, 2), `visits` (N, A), the others (N,)."""


class DeviceSteps:
    """The training steps of a compiled model, whose variables they update."""

    def __init__(self, model: TrainingModel) -> None:
        self.recipe, self.at_once = model.recipe, STEPS
        self._steps = _compiled(model)
        # What a step changes: all that it takes besides the batch.
        self._parts = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables)
        self._sent: tuple[batching.Examples, Table] | None = None

    def run(self, examples: batching.Examples, picks: Sequence[batching.Pick], rates: Sequence[float]) -> Any:
        """Start at most `at_once` steps, each with its batch and learning rate; returns the sum of their losses.

        The sum is on the device: `float` of it waits for the steps.
        """
        if self._sent is None or self._sent[0] is not examples:
            self._sent = None  # first, so that the device never holds two tables
            self._sent = examples, _table(examples, self.recipe)
        count, size = len(picks), len(picks[0][0])
        rows, turned = np.zeros((self.at_once, size), np.int32), np.zeros((self.at_once, size), np.bool_)
        speeds = np.zeros(self.at_once, np.float32)
        for step, ((chosen, mirrored), rate) in enumerate(zip(picks, rates, strict=True)):
            rows[step], turned[step], speeds[step] = chosen, mirrored, rate
        # Always `at_once` entries, of which `count` are used, so that one compiled function serves all calls.
        state = tuple([variable.value for variable in part] for part in self._parts)
        state, total = self._steps(state, self._sent[1], rows, turned, speeds, np.int32(count))
        for part, values in zip(self._parts, state, strict=True):
            for variable, value in zip(part, values, strict=True):
                variable.assign(value)
        return total


def _table(examples: batching.Examples, recipe: Recipe) -> Table:
    """A table on the device, with rows of zeros up to a power of two: tables of like sizes share compiled steps."""
    room = 1 << max(12, (len(examples) - 1).bit_length())
    visits, weight = examples.visits, weights(examples.count, recipe)
    columns = {
        "current": _words(examples.current),
        "mask": _words(examples.mask),
        "visits": visits.astype(np.uint8 if visits.max() <= 255 else np.float32),
        "label": examples.label.astype(np.int32),
        "value": examples.value,
        "outcome": examples.outcome,
        "weight": weight * np.float32(1 / float(weight.mean())),
    }
    return {name: ops.convert_to_tensor(_padded(column, room)) for name, column in columns.items()}


def _padded(column: NDArray[Any], room: int) -> NDArray[Any]:
    padded = np.zeros((room, *column.shape[1:]), column.dtype)
    padded[: len(column)] = column
    return padded


def _words(bits: NDArray[np.uint64]) -> NDArray[np.int32]:
    """int32 (N, 2): a bitboard's first LOW_BITS, and the others."""
    low = np.uint64(LOW_BITS)
    return np.stack([bits & np.uint64((1 << LOW_BITS) - 1), bits >> low], axis=1).astype(np.int32)


def _cells(words: Any) -> Any:
    """int32 (B, 6, 7), 1 on each stone of bitboards (B, 2)."""
    word, shift = _BIT // LOW_BITS, (_BIT % LOW_BITS).astype(np.int32)
    return ops.bitwise_and(ops.right_shift(ops.take(words, word, axis=1), shift), 1)


def batch_of(table: Table, rows: Any, mirrored: Any, recipe: Recipe, with_value: bool) -> tuple[Any, Any, Any]:
    """Boards int8 (B, 6, 7), targets by name and weights (B,) of these rows, as `losses` makes them of a batch."""
    batch = {name: ops.take(column, rows, axis=0) for name, column in table.items()}
    boards = ops.cast(2 * _cells(batch["current"]) - _cells(batch["mask"]), "int8")
    visits, label = ops.cast(batch["visits"], "float32"), batch["label"]
    boards = ops.where(mirrored[:, None, None], ops.flip(boards, axis=2), boards)
    visits = ops.where(mirrored[:, None], ops.flip(visits, axis=1), visits)
    vote = ops.one_hot(ops.where(mirrored, COLUMNS - 1 - label, label), COLUMNS, dtype="float32")
    policy = visits / ops.sum(visits, axis=1, keepdims=True)
    return boards, blended(policy, vote, batch["value"], batch["outcome"], recipe, with_value), batch["weight"]


def _compiled(model: TrainingModel) -> Callable[..., Any]:
    """State, table, rows, mirrored, rates and the number of steps → the state after them, and the sum of losses."""
    import jax

    optimizer, with_value = model.optimizer, heads.has_value(model)
    rate_at = [each is optimizer._learning_rate for each in optimizer.variables].index(True)

    def loss_of(trainable: Any, fixed: Any, boards: Any, targets: Any, weight: Any) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, boards, training=True)
        return model.compute_loss(y=targets, y_pred=outputs, sample_weight=weight), fixed

    def steps(state: Any, table: Table, rows: Any, mirrored: Any, rates: Any, count: Any) -> Any:
        def step(number: Any, before: Any) -> Any:
            (trainable, fixed, own), total = before
            given = batch_of(table, rows[number], mirrored[number], model.recipe, with_value)
            (loss, fixed), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable, fixed, *given)
            own[rate_at] = rates[number]
            trainable, own = optimizer.stateless_apply(own, gradients, trainable)
            return (trainable, fixed, own), total + loss

        return jax.lax.fori_loop(0, count, step, (state, np.float32(0)))

    return jax.jit(steps, donate_argnums=0)

"""Training steps on an accelerator: the table lies on the device, and one call computes many steps.

The host draws the batches as on a CPU (`batching.picks`) and sends the numbers of their rows. The device unpacks the
boards, mirrors them, makes the targets and updates the weights; the host waits for it once a call. A table takes 35 to
56 bytes a board on the device.

Dimensions: N boards of the table, S steps of a call, B boards of a batch, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.datasets import batching
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads
from distill.networks.precision import on_accelerator
from distill.training.losses import shares, weights
from distill.training.recipe import Recipe

if TYPE_CHECKING:
    from distill.training.step import TrainingModel

STEPS, STEPS_ON_CPU = 64, 8
"""Most steps of one call."""

LOW_BITS = 28
"""Bits of a bitboard's first word, four columns; the second word has the others. The device counts in 32 bits."""

_BIT = (ROWS + 1) * np.arange(COLUMNS) + np.arange(ROWS)[::-1, None]
"""int (6, 7): the bit of each cell."""

Table: TypeAlias = Mapping[str, Any]
"""Arrays on the device by name: `current` and `mask` int32 (N, 2), `visits` (N, A), the others (N,)."""


class DeviceSteps:
    """The training steps of a compiled model, whose variables they update."""

    def __init__(self, model: TrainingModel, recipe: Recipe) -> None:
        self.recipe, self.at_once = recipe, STEPS if on_accelerator() else STEPS_ON_CPU
        compute = _jax_steps if keras.backend.backend() == "jax" else _tensorflow_steps
        self._steps = compute(model, recipe)
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
        return self._steps(self._sent[1], rows, turned, speeds, np.int32(count))

    def train_steps(
        self,
        picks: Iterator[batching.Pick],
        examples: batching.Examples,
        steps: range,
        rate: Callable[[int], float],
        report: Callable[[int, float], None],
    ) -> float:
        """As `step.train_steps`, but `report` is called once a call, while the next one computes."""
        total = 0.0
        waiting: Any = None  # the losses of the call that computes
        for first in range(steps.start, steps.stop, self.at_once):
            numbers = range(first, min(first + self.at_once, steps.stop))
            started = self.run(examples, [next(picks) for _ in numbers], [rate(number) for number in numbers])
            if waiting is not None:
                total += float(waiting)
                report(first - 1, total / (first - steps.start))
            waiting = started
        total += float(waiting)
        report(steps.stop - 1, total / len(steps))
        return total / len(steps)


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
    of_visits, of_value = shares(recipe)
    policy = of_visits * visits / ops.sum(visits, axis=1, keepdims=True) + (1 - of_visits) * vote
    targets = {"logits": policy}
    if with_value:
        targets["value"] = of_value * batch["value"] + (1 - of_value) * batch["outcome"]
    return boards, targets, batch["weight"]


def _jax_steps(model: TrainingModel, recipe: Recipe) -> Callable[..., Any]:
    import jax

    optimizer, with_value = model.optimizer, heads.has_value(model)
    rate_at = [each is optimizer._learning_rate for each in optimizer.variables].index(True)

    def loss_of(trainable: Any, fixed: Any, boards: Any, targets: Any, weight: Any) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, boards, training=True)
        return model.compute_loss(y=targets, y_pred=outputs, sample_weight=weight), fixed

    def step(state: Any, table: Table, rows: Any, mirrored: Any, rate: Any) -> Any:
        trainable, fixed, own = state
        given = batch_of(table, rows, mirrored, recipe, with_value)
        (loss, fixed), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable, fixed, *given)
        own[rate_at] = rate
        trainable, own = optimizer.stateless_apply(own, gradients, trainable)
        return (trainable, fixed, own), loss

    def steps(state: Any, table: Table, rows: Any, mirrored: Any, rates: Any, count: Any) -> Any:
        def one(number: Any, carried: Any) -> Any:
            state, loss = step(carried[0], table, rows[number], mirrored[number], rates[number])
            return state, carried[1] + loss

        return jax.lax.fori_loop(0, count, one, (state, np.float32(0)))

    one_step, all_steps = (jax.jit(function, donate_argnums=0) for function in (step, steps))
    parts = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)

    def run(table: Table, rows: Any, mirrored: Any, rates: Any, count: Any) -> Any:
        state, total = tuple([each.value for each in part] for part in parts), np.float32(0)
        if not on_accelerator():  # where XLA computes a convolution twenty times slower inside a loop
            for number in range(count):
                state, loss = one_step(state, table, rows[number], mirrored[number], rates[number])
                total += loss
        else:
            state, total = all_steps(state, table, rows, mirrored, rates, count)
        for part, values in zip(parts, state, strict=True):
            for variable, value in zip(part, values, strict=True):
                variable.assign(value)
        return total

    return run


def _tensorflow_steps(model: TrainingModel, recipe: Recipe) -> Callable[..., Any]:
    import tensorflow as tf

    optimizer, with_value = model.optimizer, heads.has_value(model)

    def steps(table: Table, rows: Any, mirrored: Any, rates: Any, count: Any) -> Any:
        total = tf.constant(0.0)
        for number in tf.range(count):
            boards, targets, weight = batch_of(table, rows[number], mirrored[number], recipe, with_value)
            with tf.GradientTape() as tape:
                outputs = model(boards, training=True)
                loss = model.compute_loss(y=targets, y_pred=outputs, sample_weight=weight)
            optimizer.learning_rate.assign(rates[number])
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            total += loss
        return total

    compiled = tf.function(steps)
    return lambda table, *given: compiled(table, *map(tf.constant, given))

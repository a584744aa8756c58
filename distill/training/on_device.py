"""Training steps on an accelerator with JAX: the table lies on the device, and many steps run per call.

The host draws the rows of the batches as on a CPU (`batching.picks`) and sends their numbers. The device unpacks the
boards, mirrors them, makes the targets and updates the weights (`streams.batch_of`); the host waits for it once a call.
A table takes 60 bytes a board on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distill.training.streams import Columns, Table

if TYPE_CHECKING:
    from distill.training.step import TrainingModel

STEPS = 64
"""Largest number of steps in one call."""


def calls(
    model: TrainingModel, table: Table, steps: range, rate: Callable[[int], float], is_over: Callable[[], bool]
) -> Iterator[tuple[int, Any]]:
    """Start the steps, at most STEPS a call, as `step.fit` takes them.

    Yields for each call the number of its last step, and the sum of the losses. The sum is on the device: `float` of it
    waits for the steps.
    """
    for first in range(steps.start, steps.stop, STEPS):
        numbers = range(first, min(first + STEPS, steps.stop))
        yield numbers[-1], _start(model, table, [rate(number) for number in numbers])
        if is_over():
            return


def _start(model: TrainingModel, table: Table, rates: Sequence[float]) -> Any:
    """Start a step for each of these learning rates; returns the sum of their losses."""
    model.device_steps = model.device_steps or _compiled(model, table.batch)
    picks = [next(table.picks) for _ in rates]
    # Always STEPS entries, of which the first are used, so that one compiled function serves all calls.
    filled = picks + picks[:1] * (STEPS - len(picks))
    rows, mirrored = (np.stack([pick[part] for pick in filled]) for part in (0, 1))
    learning_rates = np.resize(np.array(rates, np.float32), STEPS)
    # What a step changes: all that it takes besides the batch.
    parts = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables)
    state = tuple([variable.value for variable in part] for part in parts)
    state, total = model.device_steps(
        state, table.columns, rows.astype(np.int32), mirrored, learning_rates, np.int32(len(picks))
    )
    for part, values in zip(parts, state, strict=True):
        for variable, value in zip(part, values, strict=True):
            variable.assign(value)
    return total


def _compiled(model: TrainingModel, batch: Callable[[Columns, Any, Any], Any]) -> Callable[..., Any]:
    """State, columns, rows, mirrored, rates and the number of steps → the state after them, and the sum of losses."""
    import jax

    optimizer = model.optimizer
    rate_at = [variable is optimizer._learning_rate for variable in optimizer.variables].index(True)

    def loss_of(trainable: Any, fixed: Any, boards: Any, targets: Any, weight: Any) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, boards, training=True)
        return model.compute_loss(y=targets, y_pred=outputs, sample_weight=weight), fixed

    def steps(state: Any, columns: Columns, rows: Any, mirrored: Any, rates: Any, count: Any) -> Any:
        def step(number: Any, before: Any) -> Any:
            (trainable, fixed, optimized), total = before
            examples = batch(columns, rows[number], mirrored[number])
            (loss, fixed), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable, fixed, *examples)
            optimized[rate_at] = rates[number]
            trainable, optimized = optimizer.stateless_apply(optimized, gradients, trainable)
            return (trainable, fixed, optimized), total + loss

        return jax.lax.fori_loop(0, count, step, (state, np.float32(0)))

    return jax.jit(steps, donate_argnums=0)

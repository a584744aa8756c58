"""One training step: the compiled model with its loss and optimizer, and what the network has learned after it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError, say_once
from distill.datasets import batching
from distill.networks import finding, heads, precision, saved
from distill.networks.copies import copy_weights
from distill.training import checkpoint
from distill.training.losses import Loss, default_loss, targets, weights
from distill.training.on_device import DeviceSteps
from distill.training.recipe import Recipe

if TYPE_CHECKING:
    from distill.training.policy_gradient import WithOpponents

TIMED_STEPS = 10
"""Steps between two looks at the clock where speed is measured."""

OUTPUT_LAYERS = ["logits", "read_out", "value_unit"]
"""Layers that give logits or the value. Muon, which equalizes all directions of a matrix, does not suit them."""


def make_repeatable(seed: int) -> None:
    """Same seed, same processor, same number of threads: same weights. Call before the network is built.

    On an accelerator only the seed is set: TensorFlow has no deterministic gradient of a depthwise convolution there.
    """
    keras.utils.set_random_seed(seed % 2**32)  # NumPy takes no larger one
    if networks.on_cpu():
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()  # costs nothing measurable on a CPU
    elif precision.on_accelerator():
        say_once("training on an accelerator: another run with the same seed may differ in the last digits")


def initial_network(arch: networks.Architecture, init: str | None, value_head: bool, seed: int) -> keras.Model:
    """A new network, or the one that `init` names. Raises UserError for one without the value head that is wanted."""
    make_repeatable(seed)
    if init is None:
        return networks.build(arch.name, value_head, **arch.arguments)
    core = saved.load_core(finding.network_file(init))
    if value_head:
        heads.require_value(core, init)
    return core


class TrainingModel(keras.Model):
    """A network with the legal mask that minimizes a loss of each board: boards int8 (B, 6, 7) → outputs by name."""

    recipe: Recipe
    loss_of_boards: Loss
    device_steps: DeviceSteps | None = None
    """How JAX computes steps on an accelerator, many a call; None: Keras computes them one by one."""

    @property
    def core(self) -> keras.Model:
        """The network itself, which shares its weights."""
        (core,) = (layer for layer in self.layers if isinstance(layer, keras.Model))
        return core

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The batch's mean of weight · loss."""
        return ops.mean(sample_weight * self.loss_of_boards(y, y_pred))


def compiled(core: keras.Model, recipe: Recipe, loss: Loss | None = None) -> TrainingModel:
    """The network with mask, loss and optimizer, ready for `train_step`."""
    played = heads.played(core)
    model = TrainingModel(played.input, played.output, name=played.name)
    model.recipe, model.loss_of_boards = recipe, loss or default_loss(recipe)
    optimizer = _optimizer(recipe)
    # XLA is seven times slower than TensorFlow's own kernels for these networks on a CPU.
    model.compile(optimizer, jit_compile=keras.backend.backend() != "tensorflow")
    optimizer.build(model.trainable_variables)  # now, because the first step would be traced twice otherwise
    # On a CPU, XLA computes a convolution twenty times slower inside a loop.
    if keras.backend.backend() == "jax" and precision.on_accelerator():
        model.device_steps = DeviceSteps(model)
    return model


def _optimizer(recipe: Recipe) -> keras.optimizers.Optimizer:
    average = {"use_ema": recipe.ema > 0, "ema_momentum": recipe.ema}
    decay = average | {"weight_decay": recipe.weight_decay}
    # Plain Adam, as published; the others decay weights, but neither biases nor norms.
    if recipe.optimizer == "adam":
        return keras.optimizers.Adam(recipe.lr, **average)
    if recipe.optimizer == "muon":
        own = {"adam_weight_decay": recipe.weight_decay, "exclude_layers": OUTPUT_LAYERS}
        optimizer = keras.optimizers.Muon(recipe.lr, **own, **decay)
    elif recipe.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(recipe.lr, global_clipnorm=1.0, **decay)
    else:
        optimizer = keras.optimizers.AdamW(recipe.lr, **decay)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def train_steps(
    model: TrainingModel,
    picks: Iterator[batching.Pick],
    examples: batching.Examples,
    steps: range,
    rate: Callable[[int], float],
    report: Callable[[int, float], None],
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[int, float]:
    """Train on the next batches of a table; returns the number of steps taken and their mean loss.

    Args:
      picks: the rows of these batches.
      steps: the numbers of the steps, from 0.
      rate: the learning rate by the number of the step.
      report: called after each step, or after many of them, with the number of the last one and the mean loss so far.
      is_over: asked between two steps, or between two calls of many; True ends the training early.

    Raises UserError if the loss becomes NaN or infinite.
    """
    total = mean = 0.0
    taken = 0
    for number, loss in _losses(model, picks, examples, steps, rate, is_over):
        total += loss
        taken = number + 1 - steps.start
        mean = total / taken
        require_number(mean, number, model.recipe)
        report(number, mean)
    return taken, mean


def _losses(
    model: TrainingModel,
    picks: Iterator[batching.Pick],
    examples: batching.Examples,
    steps: range,
    rate: Callable[[int], float],
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, float]]:
    """Take the steps; for each call, one step or many, the number of its last step and the sum of its losses."""
    device = model.device_steps
    if device is None:
        scale = 1 / float(weights(examples.count, model.recipe).mean())
        for number in steps:
            model.optimizer.learning_rate = rate(number)
            yield number, train_step(model, batching.batch_of(examples, *next(picks)), scale)
            if is_over():
                return
        return
    before: tuple[int, Any] | None = None
    for first in range(steps.start, steps.stop, device.at_once):
        numbers = range(first, min(first + device.at_once, steps.stop))
        total = device.run(examples, [next(picks) for _ in numbers], [rate(number) for number in numbers])
        # `float` waits for a call. So it comes after the start of the next one, and the device is never idle.
        if before:
            yield before[0], float(before[1])
        before = numbers[-1], total
        if is_over():
            break
    if before:
        yield before[0], float(before[1])


def require_number(loss: float, step: int, recipe: Recipe) -> None:
    """Raise UserError for a loss that is NaN or infinite."""
    if not math.isfinite(loss):
        again = f"start again with --restart and a smaller --lr than {recipe.lr:g}"
        raise UserError(f"the loss is not a number after step {step}; {again}")


def train_step(model: TrainingModel, batch: batching.Batch, scale: float) -> float:
    """One step; returns the batch's loss before it. `scale` is 1 / mean weight of the table."""
    wanted = targets(batch, model.recipe, heads.has_value(model))
    weight = weights(batch.count, model.recipe) * np.float32(scale)
    return float(model.train_on_batch(batch.boards, wanted, weight, return_dict=True)["loss"])


def steps_a_second(model: TrainingModel, examples: batching.Examples, over: Callable[[], bool]) -> float:
    """The speed of training steps, measured until `over()`; the model is left as it was."""
    before, recipe = checkpoint.snapshot(model), model.recipe
    picks = batching.picks(len(examples), recipe.batch_size, seed=recipe.seed)
    at_once = model.device_steps.at_once if model.device_steps else TIMED_STEPS

    def work() -> None:
        # Whatever the losses are: at the full rate, which training reaches slowly, they may become NaN.
        for _ in _losses(model, picks, examples, range(at_once), lambda _: recipe.lr):
            pass

    work()  # the first step compiles, the next ones fetch memory
    began, steps = time.monotonic(), 0
    while not steps or not over():
        work()
        steps += at_once
    speed = steps / (time.monotonic() - began)
    checkpoint.restore(model, before)
    return speed


def copy_learned(
    model: TrainingModel | WithOpponents,
    core: keras.Model,
    initial: Sequence[NDArray[np.float32]] = (),
    interpolate: float = 0,
) -> None:
    """Set `core` to what was learned: the weights' EMA where one is kept, interpolated with the `initial` weights.

    Args:
      model: the compiled model, whose `core` is a copy of the network; left as it was.
      interpolate: share of `initial` (WiSE-FT: Wortsman et al., Robust fine-tuning of zero-shot models, CVPR 2022).
    """
    # Keras replaces the weights by their EMA, so they are kept and put back.
    before = [ops.convert_to_numpy(variable) for variable in model.trainable_variables]
    model.optimizer.finalize_variable_values(model.trainable_variables)  # replaces them by their EMA
    copy_weights(model.core, core)
    for variable, array in zip(model.trainable_variables, before, strict=True):
        variable.assign(array)
    if interpolate:
        learned = zip(initial, core.get_weights(), strict=True)
        core.set_weights([np.float32(interpolate) * old + np.float32(1 - interpolate) * new for old, new in learned])

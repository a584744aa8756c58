"""The model that learns, with its loss and optimizer; `fit`, the one training loop; and what the network has learned.

`train`, self-play and REINFORCE differ in the stream of batches that they give to `fit` (`training/streams.py`).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError, file_hash, say_once
from distill.networks import backend, finding, heads, saved
from distill.networks.copies import copy_weights
from distill.training import losses, on_device, streams
from distill.training.recipe import Recipe

Rate: TypeAlias = Callable[[int], float]
"""The number of a step → its learning rate."""

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
    elif backend.on_accelerator():
        say_once("training on an accelerator: another run with the same seed may differ in the last digits")


def initial_network(
    arch: networks.Architecture,
    init: str | None,
    value_head: bool,
    seed: int,
    sha256: str | None,
    build: Callable[..., keras.Model] | None = None,
) -> keras.Model:
    """A new network, or that of `init`; where `arch` has arguments, a network that they build with its weights.

    It may have a value head that nobody asks for. Raises UserError for an initial network without the value head that
    is wanted, of another shape than the arguments build, or of another hash than `sha256`, that of the run's record.
    """
    file = finding.network_file(init) if init else None
    initial = saved.load_core(file) if file else None
    if file and sha256 not in (None, file_hash(file)):
        raise UserError(f"{file}: was replaced after the command began; start it again")
    if initial and value_head:
        heads.require_value(initial, str(init))
    make_repeatable(seed)  # weights are drawn when a network is built
    if initial and not arch.arguments:
        return initial
    core = (build or networks.build)(arch.name, heads.has_value(initial) if initial else value_head, **arch.arguments)
    if initial:
        try:
            core.set_weights(initial.get_weights())
        except ValueError as error:
            raise UserError(f"{init}: of another shape than --arch and arch.* build") from error
    return core


class TrainingModel(keras.Model):
    """A network with the legal mask that minimizes a loss of each board: boards int8 (B, 6, 7) → outputs by name.

    Attributes:
      device_steps: the compiled steps of `on_device`, once there are any.
    """

    recipe: Recipe
    loss_of_boards: losses.Loss
    device_steps: Callable[..., Any] | None = None

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


def compiled(
    core: keras.Model, recipe: Recipe, loss: losses.Loss | None = None, kind: type[TrainingModel] = TrainingModel
) -> TrainingModel:
    """The network with mask, loss and optimizer as a model of this kind, ready for `fit`."""
    played = heads.played(core)
    model = kind(played.input, played.output, name=played.name)
    model.recipe, model.loss_of_boards = recipe, loss or losses.default_loss(recipe)
    optimizer = _optimizer(recipe)
    # XLA is seven times slower than TensorFlow's own kernels for these networks on a CPU.
    model.compile(optimizer, jit_compile=keras.backend.backend() != "tensorflow")
    optimizer.build(model.trainable_variables)  # now, because the first step would be traced twice otherwise
    return model


def _optimizer(recipe: Recipe) -> keras.optimizers.Optimizer:
    average = {"use_ema": recipe.ema > 0, "ema_momentum": recipe.ema}
    decay = average | {"weight_decay": recipe.weight_decay}
    if recipe.optimizer == "muon":
        optimizer = keras.optimizers.Muon(
            recipe.lr, adam_weight_decay=recipe.weight_decay, exclude_layers=OUTPUT_LAYERS, **decay
        )
    elif recipe.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(recipe.lr, global_clipnorm=1.0, **decay)
    else:
        optimizer = keras.optimizers.AdamW(recipe.lr, **decay)
    # Weights decay, biases and norms do not.
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def fit(
    model: TrainingModel,
    stream: Iterator[streams.Batch],
    steps: range,
    rate: Rate,
    report: Callable[[int, float], None] = lambda _number, _mean: None,
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[int, dict[str, float]]:
    """Train on the next batches of a stream; returns the number of steps taken, and the means of `loss` and other logs.

    Args:
      steps: the numbers of the steps, from 0.
      report: called after each step, or after many of them, with the number of the last one and the mean loss so far.
      is_over: ends the training early, between two steps, or on an accelerator between two calls.

    Raises UserError if the loss becomes NaN or infinite.
    """
    taken, means = 0, {"loss": 0.0}
    sums: defaultdict[str, float] = defaultdict(float)
    for number, logs in _logs(model, stream, steps, rate, is_over):
        taken = number + 1 - steps.start
        for name, value in logs.items():
            sums[name] += value
        means = {name: total / taken for name, total in sums.items()}
        require_number(means["loss"], number, model.recipe)
        report(number, means["loss"])
    return taken, means


def _logs(
    model: TrainingModel, stream: Iterator[streams.Batch], steps: range, rate: Rate, is_over: Callable[[], bool]
) -> Iterator[tuple[int, dict[str, float]]]:
    """Take the steps; for each call, of one step or many, the number of its last step and the sums of its logs."""
    if isinstance(stream, streams.Table) and stream.on_device:
        calls = itertools.chain(on_device.calls(model, stream, steps, rate, is_over), [(steps.stop, None)])
        # `float` waits for a call. So it comes after the start of the next one, and the device is never idle.
        for (number, total), _ in itertools.pairwise(calls):
            yield number, {"loss": float(total)}
        return
    for number in steps:
        batch = next(stream)
        model.optimizer.learning_rate = rate(number)
        yield number, train_step(model, batch)
        if is_over():
            return


def train_step(model: TrainingModel, batch: streams.Batch) -> dict[str, float]:
    """One step; returns the batch's `loss` before it, and what else the model measures."""
    logs: dict[str, float] = model.train_on_batch(*batch, return_dict=True)
    return {name: float(value) for name, value in logs.items()}


def require_number(loss: float, step: int, recipe: Recipe) -> None:
    """Raise UserError for a loss that is NaN or infinite."""
    if not math.isfinite(loss):
        again = f"start again with --restart and a smaller --lr than {recipe.lr:g}"
        raise UserError(f"the loss is not a number after step {step}; {again}")


def learned_weights(model: TrainingModel) -> tuple[list[Any], list[Any]]:
    """The arrays of trainable and other variables for `stateless_call`: the EMA where one is kept, from step 1 on."""
    optimizer = model.optimizer
    averaged = optimizer.use_ema and int(optimizer.iterations)
    trainable = optimizer._model_variables_moving_average if averaged else model.trainable_variables
    return [variable.value for variable in trainable], [variable.value for variable in model.non_trainable_variables]


def copy_learned(
    model: TrainingModel, core: keras.Model, initial: Sequence[NDArray[np.float32]] = (), interpolate: float = 0
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

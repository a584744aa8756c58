"""The parts that all networks share: the encoding before the trunk, value head and legal mask after it.

Dimensions: B batch, A = 7 columns. Boards are int8 (B, 6, 7), +1 side to move, -1 opponent, 0 empty;
values are in [-1, 1] for the side to move.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

import keras
import numpy as np
from keras import layers, ops

from distill.common import UserError
from distill.game import encoding
from distill.game.rules import CELLS, COLUMNS, COLUMNS_FROM_CENTRE, ROWS

FULL_COLUMN_LOGIT = -1e9
"""Replaces a full column's logit: its softmax is exactly 0, and nothing becomes infinite."""

RANK_FROM_CENTRE = np.array([COLUMNS - COLUMNS_FROM_CENTRE.index(column) for column in range(COLUMNS)], np.int32)
"""int32 (A,): 7 for the centre column, 6 to 1 for the others in the order that breaks ties."""

NORM_MOMENTUM = 0.9
"""Momentum of batch norms' moving statistics. At Keras' 0.99 they still hold 3 % of their initial variance of 1 after
350 steps, many times the variance after a separable convolution, and a network trained on few games plays at random."""

VALUE_HIDDEN = 64
"""Units of the value head's hidden layer."""

Initializer: TypeAlias = Literal["keras", "pytorch"]
"""The library whose default a new network's weights follow. Keras draws kernels from Glorot's uniform distribution and
sets biases to 0; PyTorch draws both uniformly from ±1/√(inputs of a unit)."""

INPUTS = ([(ROWS, COLUMNS, 2)], [(ROWS, COLUMNS, 3)], [(CELLS,)])
OUTPUTS = ({"logits": (COLUMNS,)}, {"logits": (COLUMNS,), "value": ()})
"""Shapes of a network's inputs and outputs, without the batch."""


def planes_input(channels: int = 2) -> Any:
    """float32 (B, 6, 7, channels), the input of a convolutional network."""
    return keras.Input((ROWS, COLUMNS, channels), name="planes")


def tokens_input() -> Any:
    """int32 (B, 42), the input of a network that reads cells one by one."""
    return keras.Input((CELLS,), dtype="int32", name="tokens")


def value_head(features: Any, width: int = VALUE_HIDDEN, *, bias: bool = True, slope: float = 0.0) -> Any:
    """(B,) in (-1, 1): a hidden layer of this width, one unit, tanh, on features (B, F); `slope` is ReLU's below 0."""
    hidden = layers.Dense(width, activation=None if slope else "relu", use_bias=bias, name="value_hidden")(features)
    if slope:
        hidden = layers.ReLU(negative_slope=slope, name="value_hidden_relu")(hidden)
    squashed = layers.Dense(1, use_bias=bias, activation="tanh", name="value_unit")(hidden)
    return layers.Reshape((), name="value")(squashed)


def network(arch: str, inputs: Any, logits: Any, value: Any | None, initializer: Initializer = "keras") -> keras.Model:
    """The functional model with outputs by name; `value` None leaves that output out.

    With the initializer "pytorch" the weights of convolutions and dense layers are drawn again.
    """
    outputs = {"logits": logits} if value is None else {"logits": logits, "value": value}
    core = keras.Model(inputs, outputs, name=arch)
    if initializer not in get_args(Initializer):
        raise ValueError(f"initializer {initializer} is neither keras nor pytorch")
    if initializer == "pytorch":
        for layer in core.layers:
            if isinstance(layer, layers.Conv2D | layers.Dense):
                bound = 1 / math.sqrt(math.prod(layer.kernel.shape[:-1]))
                for weight in layer.weights:
                    weight.assign(keras.initializers.RandomUniform(-bound, bound)(weight.shape))
    return core


def require_network(core: Any, where: str) -> None:
    """Raise UserError that starts with `where` unless a functional model has a network's inputs and outputs."""
    inputs, output = getattr(core, "inputs", None), getattr(core, "output", None)  # absent from some kinds of model
    shapes = [tuple(tensor.shape)[1:] for tensor in inputs or []]
    outputs = {name: tuple(tensor.shape)[1:] for name, tensor in output.items()} if isinstance(output, dict) else {}
    if shapes not in INPUTS or outputs not in OUTPUTS:
        raise UserError(
            f"{where}: not a network of distill (inputs {shapes}, outputs {outputs}; expected planes (6, 7, 2) or "
            '(6, 7, 3), or tokens (42,), and {"logits": (7,)[, "value": ()]})'
        )


def has_value(model: keras.Model) -> bool:
    """Whether a network, bare or played, has the output "value"."""
    return "value" in model.output  # not output_names, which are the names of layers


def require_value(core: keras.Model, where: str) -> None:
    """Raise UserError that starts with `where` for a network without a value head."""
    if not has_value(core):
        raise UserError(f"{where}: this network has no value head; train one with --value-target blend")


def encode(core: keras.Model, boards: Any) -> Any:
    """Boards (B, 6, 7) as the planes or tokens that this network takes."""
    shape = core.inputs[0].shape
    if len(shape) == 2:
        return encoding.tokens(ops.cast(boards, "int32"), ops)
    return ops.cast(encoding.planes(boards, shape[-1], ops), "float32")


def legal_mask(boards: Any) -> Any:
    """bool (B, A) of boards (B, 6, 7): True where the column's top cell is empty."""
    return ops.equal(boards[:, 0, :], 0)


def played(core: keras.Model) -> keras.Model:
    """The network as it is trained and played: boards → {"logits": masked[, "value"]}; shares the core's weights."""
    boards = keras.Input((ROWS, COLUMNS), dtype="int8", name="board")
    outputs = {name: ops.cast(output, "float32") for name, output in core(encode(core, boards)).items()}
    outputs["logits"] = ops.where(legal_mask(boards), outputs["logits"], FULL_COLUMN_LOGIT)
    return keras.Model(boards, outputs, name=f"{core.name}_played")


def served(core: keras.Model) -> keras.Model:
    """The network as apps see it: boards → {"logits", "policy", "move"[, "value"]}, the contract that its card states.

    `policy` (B, A) sums to 1 and is exactly 0 on full columns; `move` int32 (B,) is its argmax, ties to the centre and
    then the lower column. A full board gives policy 0 and move -1.
    """
    boards = keras.Input((ROWS, COLUMNS), dtype="int8", name="board")
    outputs = dict(played(core)(boards))
    legal = legal_mask(boards)
    outputs["policy"] = ops.softmax(outputs["logits"]) * ops.cast(legal, "float32")
    outputs["move"] = ops.where(ops.any(legal, axis=-1), preferred(outputs["logits"]), -1)
    if "value" in outputs:
        outputs["value"] = ops.clip(outputs["value"], -1, 1)  # ONNX Runtime's tanh goes up to 1.0000001
    return keras.Model(boards, outputs, name=f"{core.name}_served")


def preferred(logits: Any) -> Any:
    """int32 (B,): the column of the largest of (B, A) logits, ties to the centre and then the lower column."""
    is_best = ops.equal(logits, ops.max(logits, axis=-1, keepdims=True))
    # Integers, because Keras' argmax of floats inspects their bits, which is not converted to ONNX, nor is a gather.
    return ops.argmax(ops.cast(is_best, "int32") * RANK_FROM_CENTRE, axis=-1)

"""What stands around every network's trunk: the encoding before it, value head and legal mask after it.

Dimensions: B batch, A = 7 columns. Boards are int8 (B, 6, 7), +1 side to move, -1 opponent, 0 empty;
values are in [-1, 1] for the side to move.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import layers, ops

from distill.game import encoding
from distill.game.rules import CELLS, COLUMNS, COLUMNS_FROM_CENTRE, ROWS

FULL_COLUMN_LOGIT = -1e9
"""Stands in place of a full column's logit: its softmax is exactly 0, and nothing becomes infinite."""

RANK_FROM_CENTRE = np.array([COLUMNS - COLUMNS_FROM_CENTRE.index(column) for column in range(COLUMNS)], np.int32)
"""int32 (A,): 7 for the centre, then less the later it comes in the order that breaks ties."""

NORM_MOMENTUM = 0.9
"""Of batch norms' moving statistics. At Keras' 0.99 they still hold 3 % of their initial variance of 1 after 350 steps,
many times the real one of a separable convolution, and a network trained on a few hundred games plays at random."""


class Form(NamedTuple):
    """How a trunk calculates: the layers of its blocks, what leads to the first of them and away from the last.

    `norm` is for shapes that have norms in them, `lines` for such as are told the lines.
    """

    convolution: Callable[..., layers.Layer]
    norm: Callable[..., layers.Layer] = layers.GroupNormalization
    lines: Callable[..., layers.Layer] = layers.Identity
    enter: Callable[[Any], Any] = lambda x: x
    leave: Callable[[Any], Any] = lambda x: x


PLAIN = Form(functools.partial(layers.Conv2D, kernel_size=3, padding="same"))


def planes_input(channels: int = 2) -> Any:
    """float32 (B, 6, 7, channels), the input of a convolutional network."""
    return keras.Input((ROWS, COLUMNS, channels), name="planes")


def tokens_input() -> Any:
    """int32 (B, 42), the input of a network that reads cells one by one."""
    return keras.Input((CELLS,), dtype="int32", name="tokens")


def value_head(features: Any) -> Any:
    """(B,) in (-1, 1): hidden layer, one unit, tanh, on features (B, F)."""
    hidden = layers.Dense(64, activation="relu", name="value_hidden")(features)
    squashed = layers.Dense(1, activation="tanh", name="value_unit")(hidden)
    return layers.Reshape((), name="value")(squashed)


def network(arch: str, inputs: Any, logits: Any, value: Any | None) -> keras.Model:
    """The functional model with outputs by name; `value` None leaves that output out."""
    outputs = {"logits": logits} if value is None else {"logits": logits, "value": value}
    return keras.Model(inputs, outputs, name=arch)


def has_value(model: keras.Model) -> bool:
    """Whether a network, bare or played, gives a value beside its logits."""
    return "value" in model.output  # not output_names, which are the names of layers


def encode(core: keras.Model, boards: Any) -> Any:
    """Boards (B, 6, 7) as the planes or tokens that this network's input asks for."""
    shape = core.inputs[0].shape
    if len(shape) == 2:
        return encoding.tokens(ops.cast(boards, "int32"), ops)
    return ops.cast(encoding.planes(boards, shape[-1], ops), "float32")


def legal_mask(boards: Any) -> Any:
    """bool (B, A) of boards (B, 6, 7): True where the column's top cell is empty."""
    return ops.equal(boards[:, 0, :], 0)


def played(core: keras.Model) -> keras.Model:
    """The network as it is trained and played: boards → {"logits": masked[, "value"]}; shares the core's weights."""
    if ":" in core.name:  # of a custom network, "module:build"; TensorFlow's scope names have no colon
        core = keras.Model(core.inputs[0], core.output, name=core.name.replace(":", "."))
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
    model = played(core)
    outputs = dict(model(boards))
    legal = legal_mask(boards)
    outputs["policy"] = ops.softmax(outputs["logits"]) * ops.cast(legal, "float32")
    outputs["move"] = ops.where(ops.any(legal, axis=-1), preferred(outputs["logits"]), -1)
    if "value" in outputs:
        outputs["value"] = ops.clip(outputs["value"], -1, 1)  # ONNX Runtime's tanh goes up to 1.0000001
    return keras.Model(boards, outputs, name=model.name.replace("_played", "_served"))


def preferred(logits: Any) -> Any:
    """int32 (B,): the column of the largest of (B, A) logits, ties to the centre and then the lower column."""
    is_best = ops.equal(logits, ops.max(logits, axis=-1, keepdims=True))
    # Of integers: Keras' argmax of floats looks at their bits, and neither that nor a gather reaches ONNX whole.
    return ops.argmax(ops.cast(is_best, "int32") * RANK_FROM_CENTRE, axis=-1)

"""Larger networks that see what `pillar` sees: wider and deeper convolutions, or attention between cells.

    name              its trunk
    lines-FxB         `pillar` with F features of each orientation and B residual blocks
    pooled-FxB        the same, each block also told the mean of its features over the board (KataGo's global pooling)
    attention-DxB     B blocks of attention between the 42 cells of D features, each head with a learned bias for every
                      relation of two cells (rows apart, columns apart), as in Leela's networks

Beside logits and value, a network for training may have auxiliary heads: `children`, the values of the seven positions
after a move, for the side that moved there; `reply`, logits of the opponent's next move. `without_heads` drops them.

Dimensions: B batch, T = 42 cells, W = 7 columns, D features, N = 8 heads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers, ops

from distill import networks
from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import heads
from distill.networks.pillar import Lines, MirrorConv, mirrored, swap_halves

HEADS, HIDDEN, COLUMN_FEATURES = 8, 256, 32
SHIPPED = {"lines-64x6": "pillar-large"}
"""Shapes that are built-in networks: their files have that network's name and layers."""
NAME = re.compile(r"(lines|pooled|attention)-(\d+)x(\d+)")


def build(name: str, auxiliary: Sequence[str] = ()) -> keras.Model:
    """The network of that name: planes (B, 6, 7, 2) → logits (B, 7), value (B,) and auxiliary heads (B, 7)."""
    found = NAME.fullmatch(name)
    if not found:
        raise ValueError(f"shape {name!r} is none of lines-FxB, pooled-FxB, attention-DxB")
    kind, width, blocks = found[1], int(found[2]), int(found[3])
    planes = heads.planes_input()
    lines = Lines(name="lines")(planes)
    hidden = layers.Dense(HIDDEN, activation="relu", name="hidden")
    if kind == "attention":
        seen = hidden(_attention_trunk(lines, width, blocks))
        outputs = {each: layers.Dense(COLUMNS, name=each)(seen) for each in ("logits", *auxiliary)}
    else:
        x = _trunk(lines, width, blocks, pooled=kind == "pooled")
        flatten = layers.Flatten(name="flatten")
        sides = hidden(flatten(x)), hidden(flatten(mirrored(x)))
        outputs = {each: _of_columns(each, *sides) for each in ("logits", *auxiliary)}
        seen = layers.Add(name="value_seen")(sides)
    if "children" in outputs:
        outputs["children"] = layers.Activation("tanh", name="children_value")(outputs["children"])
    return keras.Model(planes, outputs | {"value": heads.value_head(seen)}, name=name)


def without_heads(model: keras.Model) -> keras.Model:
    """The network as it is played: logits and value alone, with the same weights."""
    outputs = {name: model.output[name] for name in ("logits", "value")}
    return keras.Model(model.input, outputs, name=model.name)


def to_play(name: str) -> keras.Model:
    """The network of that name as its file stores it, in float32: without auxiliary heads."""
    keras.config.set_dtype_policy("float32")
    return networks.build(SHIPPED[name], value_head=True) if name in SHIPPED else build(name)


def _of_columns(name: str, seen: Any, seen_mirrored: Any) -> Any:
    """(B, W) from the features of a board and of its mirror image, with the same weights for both."""
    last = layers.Dense(COLUMNS, name=f"{name}_of_side")
    return layers.Add(name=name)([last(seen), ops.flip(last(seen_mirrored), axis=1)])


def _trunk(lines: Any, features: int, blocks: int, pooled: bool) -> Any:
    """planes (B, H, W, C) → one vector per column (B, 1, W, 2F)."""
    x = layers.ReLU(name="stem_relu")(MirrorConv(features, (3, 3), paired=False, name="stem")(lines))
    for number in range(1, blocks + 1):
        name = f"block{number}"
        y = MirrorConv(features, (3, 3), name=f"{name}_conv1")(x)
        if pooled:
            y = layers.Add(name=f"{name}_told")([y, PooledBias(features, name=f"{name}_pooled")(x)])
        y = layers.ReLU(name=f"{name}_relu1")(y)
        y = MirrorConv(features, (3, 3), initializer="zeros", name=f"{name}_conv2")(y)
        x = layers.ReLU(name=f"{name}_relu2")(layers.Add(name=f"{name}_add")([x, y]))
    x = MirrorConv(features, (ROWS, 1), padding="valid", name="columns")(x)
    return layers.ReLU(name="columns_relu")(x)


@keras.saving.register_keras_serializable(package="distill")
class PooledBias(layers.Layer):
    """features (B, H, W, 2F) → (B, 1, 1, 2F): a linear map of their mean over the board, which keeps the symmetry."""

    def __init__(self, features: int, **options: Any) -> None:
        super().__init__(**options)
        self.features = features

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.features), initializer="zeros")

    def call(self, x: Any) -> Any:
        mean = ops.mean(x, axis=(1, 2), keepdims=True)
        kernel = ops.cast(self.kernel, mean.dtype)
        return ops.concatenate([ops.matmul(mean, kernel), ops.matmul(swap_halves(mean), kernel)], axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "features": self.features}


def network(path: Path, precision: str = "float32") -> keras.Model:
    """The network of a `.keras` file, computing in float32 or bfloat16; its layers' names decide its shape."""
    stored = keras.models.load_model(path, compile=False)
    keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
    model = build(stored.name) if NAME.fullmatch(stored.name) else networks.build(stored.name, value_head=True)
    model.set_weights(stored.get_weights())
    return model


def _attention_trunk(lines: Any, width: int, blocks: int) -> Any:
    """planes (B, 6, 7, C) → (B, W · COLUMN_FEATURES): pre-norm blocks over cells, then each column read on its own."""
    x = layers.Reshape((CELLS, lines.shape[-1]), name="cells")(lines)
    x = CellEmbedding(name="embedding")(layers.Dense(width, name="stem")(x))
    for block in range(1, blocks + 1):
        attended = layers.LayerNormalization(name=f"block{block}_norm1")(x)
        x = layers.Add(name=f"block{block}_add1")([x, CellAttention(HEADS, name=f"block{block}_attention")(attended)])
        fed = layers.LayerNormalization(name=f"block{block}_norm2")(x)
        fed = layers.Dense(2 * width, activation="silu", name=f"block{block}_up")(fed)
        x = layers.Add(name=f"block{block}_add2")([x, layers.Dense(width, name=f"block{block}_down")(fed)])
    x = layers.LayerNormalization(name="last_norm")(x)
    x = layers.Reshape((ROWS, COLUMNS, width), name="board")(x)
    x = layers.Permute((2, 1, 3), name="by_column")(x)
    x = layers.Reshape((COLUMNS, ROWS * width), name="columns")(x)
    return layers.Flatten(name="flatten")(layers.Dense(COLUMN_FEATURES, activation="silu", name="column")(x))


@keras.saving.register_keras_serializable(package="distill")
class CellEmbedding(layers.Layer):
    """cells (B, T, D) → the same plus a learned vector for each cell."""

    def build(self, shape: Any) -> None:
        self.cells = self.add_weight(name="cells", shape=shape[1:], initializer="zeros")

    def call(self, cells: Any) -> Any:
        return cells + ops.cast(self.cells, cells.dtype)


@keras.saving.register_keras_serializable(package="distill")
class CellAttention(layers.Layer):
    """cells (B, T, D) → (B, T, D): attention of several heads, with a learned bias for each relation of two cells.

    A relation is rows apart, −5 to 5, and columns apart, −6 to 6: 143 of them. Its bias is added to the logits of the
    attention, so a head can look along a line before anything is learned about stones.
    """

    def __init__(self, heads: int, **options: Any) -> None:
        super().__init__(**options)
        self.heads = heads

    def build(self, shape: Any) -> None:
        width = shape[-1]
        self.qkv = self.add_weight(name="qkv", shape=(width, 3 * width), initializer="glorot_uniform")
        self.out = self.add_weight(name="out", shape=(width, width), initializer="zeros")
        self.relations = self.add_weight(
            name="relations", shape=((2 * ROWS - 1) * (2 * COLUMNS - 1), self.heads), initializer="zeros"
        )

    def call(self, cells: Any) -> Any:
        width = cells.shape[-1]
        size = width // self.heads
        packed = ops.reshape(ops.matmul(cells, ops.cast(self.qkv, cells.dtype)), (-1, CELLS, 3, self.heads, size))
        query, key, value = (ops.transpose(packed[:, :, part], (0, 2, 1, 3)) for part in range(3))  # (B, N, T, size)
        bias = ops.transpose(ops.take(self.relations, relation_of_cells(), axis=0), (2, 0, 1))  # (N, T, T)
        logits = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) * size**-0.5 + ops.cast(bias, cells.dtype)
        seen = ops.transpose(ops.matmul(ops.softmax(logits), value), (0, 2, 1, 3))
        return ops.matmul(ops.reshape(seen, (-1, CELLS, width)), ops.cast(self.out, cells.dtype))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "heads": self.heads}


def relation_of_cells() -> np.ndarray:
    """int32 (T, T): the number of the relation of two cells, counted row by row."""
    row, column = np.divmod(np.arange(CELLS), COLUMNS)
    down = row[None, :] - row[:, None] + ROWS - 1
    right = column[None, :] - column[:, None] + COLUMNS - 1
    return (down * (2 * COLUMNS - 1) + right).astype(np.int32)

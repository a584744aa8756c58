"""Larger networks that see what `pillar-lines` sees: wider and deeper convolutions, or attention between cells.

    name           its trunk                                                           parameters with value head
    lines-0.7m     `pillar-lines` twice as wide                                                           745,160
    lines-1.5m     the same with eight blocks in place of three                                         1,483,080
    attention      five blocks of attention between the 42 cells, each head with a learned bias
                   for every relation of two cells (rows apart, columns apart)                            772,992

Dimensions: B batch, T = 42 cells, W = 7 columns, D = 128 features, N = 8 heads.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import heads
from distill.networks.pillar import mirrored, read_out, trunk
from distill.networks.pillar_lines import Lines

CONVOLUTIONS = {"lines-0.7m": 3, "lines-1.5m": 8}
"""Residual blocks by name."""
CONVOLUTION_FEATURES, HIDDEN = 64, 256
FEATURES, HEADS, BLOCKS, FEED_FORWARD = 128, 8, 5, 256
COLUMN_FEATURES = 32
SHAPES = (*CONVOLUTIONS, "attention")


def build(name: str) -> keras.Model:
    """The network of that name, with a value head: planes (B, 6, 7, 2) → logits (B, 7) and value (B,)."""
    planes = heads.planes_input()
    lines = Lines(name="lines")(planes)
    if name in CONVOLUTIONS:
        x = trunk(lines, features=CONVOLUTION_FEATURES, blocks=CONVOLUTIONS[name])
        flatten, hidden = layers.Flatten(name="flatten"), layers.Dense(HIDDEN, activation="relu", name="hidden")
        logits, seen = read_out(hidden, flatten(x), flatten(mirrored(x)))
    else:
        seen = layers.Dense(HIDDEN, activation="relu", name="hidden")(_attention_trunk(lines))
        logits = layers.Dense(COLUMNS, name="logits")(seen)
    return heads.network(name, planes, logits, heads.value_head(seen))


def _attention_trunk(lines: Any) -> Any:
    """planes (B, 6, 7, C) → (B, W · COLUMN_FEATURES): pre-norm blocks over cells, then each column read on its own."""
    x = layers.Reshape((CELLS, lines.shape[-1]), name="cells")(lines)
    x = CellEmbedding(name="embedding")(layers.Dense(FEATURES, name="stem")(x))
    for block in range(1, BLOCKS + 1):
        attended = layers.LayerNormalization(name=f"block{block}_norm1")(x)
        x = layers.Add(name=f"block{block}_add1")([x, CellAttention(HEADS, name=f"block{block}_attention")(attended)])
        fed = layers.LayerNormalization(name=f"block{block}_norm2")(x)
        fed = layers.Dense(FEED_FORWARD, activation="silu", name=f"block{block}_up")(fed)
        x = layers.Add(name=f"block{block}_add2")([x, layers.Dense(FEATURES, name=f"block{block}_down")(fed)])
    x = layers.LayerNormalization(name="last_norm")(x)
    x = layers.Reshape((ROWS, COLUMNS, FEATURES), name="board")(x)
    x = layers.Permute((2, 1, 3), name="by_column")(x)
    x = layers.Reshape((COLUMNS, ROWS * FEATURES), name="columns")(x)
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

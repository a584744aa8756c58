"""Candidates beside `pillar`, each with as many parameters, and one idea what to do with them (`student.toml`).

    name               its idea                                                       parameters with value head
    looped-2           depth for no parameters: the blocks are gone through twice                         192,424
    looped-4           the same, four times                                                               192,424
    line-objects       each of the 69 lines of four has features, made of those of its cells and
                       told to them again; in place of the convolutions                                 192,088
    early-dense        fewer operations a parameter: one block, then two dense layers                     191,628
    narrow-deep        six blocks of 24 features in place of three of 32                                  192,496
    column-mixer       the columns, which were apart, see each other twice before the read-out            192,040
    column-attention   the same by attention, once                                                        192,352
    experts            three hidden layers, mixed by the number of stones                                 191,384
    wide-lines         not a candidate: `pillar` twice as wide, what so many would gain          745,160

All see the planes of `Lines` and answer a mirrored board with mirrored logits, for any weights.

Dimensions: B batch, H = 6, W = 7, F features of one orientation, D features of a hidden layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import layers, ops

from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import heads
from distill.networks.pillar import BLOCKS, FEATURES, Lines, MirrorConv, mirrored, read_out, swap_halves, trunk

NARROW = 24
WIDE = 2 * FEATURES
LINE_FEATURES = 32
LINE_BLOCKS = 4
WIDTHS = {
    "looped-2": 128, "looped-4": 128, "line-objects": 166, "early-dense": 195, "narrow-deep": 144,
    "column-mixer": 72, "column-attention": 95, "experts": 42, "wide-lines": 256,
}  # fmt: skip
"""D: what is left for the hidden layer."""


def build(name: str, value_head: bool = False) -> keras.Model:
    """The candidate of that name."""
    planes = heads.planes_input()
    through: Callable[..., Any] = TRUNKS.get(name, trunk)
    x = through(Lines(name="lines")(planes))
    hidden = layers.Dense(WIDTHS[name], activation="relu", name="hidden")
    if name == "early-dense":
        hidden = _twice(hidden)
    elif name == "column-attention":
        hidden = _attended(hidden)
    elif name == "experts":
        hidden = _experts(planes)
    flatten = layers.Flatten(name="flatten")
    own, other = (x, mirrored(x)) if name == "column-attention" else (flatten(x), flatten(mirrored(x)))
    logits, seen = read_out(hidden, own, other)
    return heads.network(name, planes, logits, heads.value_head(seen) if value_head else None)


def _twice(hidden: Any) -> Callable[[Any], Any]:
    second = layers.Dense(hidden.units, activation="relu", name="hidden2")
    return lambda x: second(hidden(x))


def _mixed(planes: Any) -> Any:
    """The trunk's columns, each of which sees all others relative to itself, twice with the same weights."""
    x = trunk(planes)
    first = MirrorConv(FEATURES, (1, 2 * COLUMNS - 1), name="mixer_conv1")
    second = MirrorConv(FEATURES, (1, 1), initializer="zeros", name="mixer_conv2")
    for _ in range(2):
        x = ops.relu(x + second(ops.relu(first(x))))
    return x


def _attended(hidden: Any) -> Callable[[Any], Any]:
    """columns (B, 1, W, 2F) → (B, D): attention of four heads over the columns, each of which knows its place."""
    places = Places(name="places")
    attention = layers.MultiHeadAttention(4, 2 * FEATURES // 4, name="attention")
    flatten = layers.Flatten(name="flatten")

    def answer(x: Any) -> Any:
        columns = places(ops.squeeze(x, axis=1))
        return hidden(flatten(columns + attention(columns, columns)))

    return answer


@keras.saving.register_keras_serializable(package="distill")
class Places(layers.Layer):
    """columns (B, W, C) → the same plus what is learned for each of them."""

    def build(self, shape: Any) -> None:
        self.places = self.add_weight(name="places", shape=shape[1:], initializer="zeros")

    def call(self, columns: Any) -> Any:
        return columns + self.places


def _experts(planes: Any) -> Callable[[Any], Any]:
    """(B, 7 · 2F) → (B, 3D): three hidden layers, weighed by how near the number of stones is to 0, 21 and 42."""
    width = WIDTHS["experts"]
    wide = layers.Dense(3 * width, activation="relu", name="hidden")
    stones = ops.sum(planes, axis=(1, 2, 3)) / CELLS
    near = [ops.relu(1 - ops.abs(2 * stones - place))[:, None] for place in (0, 1, 2)]
    weights = ops.concatenate([ops.repeat(each, width, axis=1) for each in near], axis=1)
    return lambda x: wide(x) * weights


def _line_objects(planes: Any) -> Any:
    """planes (B, H, W, C) → columns (B, 1, W, 2F): cells tell their lines, lines tell their cells."""
    x = ops.relu(MirrorConv(FEATURES, (3, 3), paired=False, name="stem")(planes))
    for number in range(1, LINE_BLOCKS + 1):
        told = [_line(x, kind, f"lines{number}_{kind}") for kind in ("across", "up", "slanting")]
        x = ops.relu(x + sum(told[1:], told[0]))
    x = MirrorConv(FEATURES, (ROWS, 1), padding="valid", name="columns")(x)
    return layers.ReLU(name="columns_relu")(x)


def _line(x: Any, kind: str, name: str) -> Any:
    """Features of all lines of one kind on the board, from their four cells, and what those tell each cell again.

    Of a slanting line and its mirror image the first F features see the one, the last F the other.
    """
    height, width = {"across": (1, 4), "up": (4, 1), "slanting": (4, 4)}[kind]
    conv = SlantingConv if kind == "slanting" else MirrorConv
    lines = ops.relu(conv(LINE_FEATURES // 2, (height, width), padding="valid", name=f"{name}_seen")(x))
    around = ops.pad(lines, ((0, 0), (height - 1, height - 1), (width - 1, width - 1), (0, 0)))
    told = conv(FEATURES, (height, width), "valid", kind != "slanting", initializer="zeros", name=f"{name}_told")
    return told(around)


@keras.saving.register_keras_serializable(package="distill")
class SlantingConv(MirrorConv):
    """A `MirrorConv` that sees one diagonal; the features of the mirror image see the other.

    Unpaired, the features of either orientation see those of their own alone.
    """

    def build(self, shape: Any) -> None:
        size, seen = self.kernel_size[0], shape[-1] if self.paired else shape[-1] // 2
        self.kernel = self.add_weight(name="kernel", shape=(size * seen, self.features), initializer=self.initializer)
        self.bias = self.add_weight(name="bias", shape=(self.features,), initializer="zeros")

    def call(self, x: Any) -> Any:
        size = self.kernel_size[0]
        diagonal = ops.cast(np.eye(size)[:, :, None, None], self.compute_dtype)
        own = ops.reshape(self.kernel, (size, 1, -1, self.features)) * diagonal
        if not self.paired:
            own = ops.concatenate([own, ops.zeros_like(own)], axis=2)
        kernel = ops.concatenate([own, swap_halves(ops.flip(own, axis=1), axis=2)], axis=-1)
        return ops.conv(x, kernel, padding=self.padding) + ops.concatenate([self.bias, self.bias], axis=-1)


TRUNKS: dict[str, Callable[..., Any]] = {
    "looped-2": partial(trunk, repeats=2),
    "looped-4": partial(trunk, repeats=4),
    "line-objects": _line_objects,
    "early-dense": partial(trunk, blocks=1),
    "narrow-deep": partial(trunk, features=NARROW, blocks=2 * BLOCKS),
    "column-mixer": _mixed,
    "wide-lines": partial(trunk, features=WIDE),
}

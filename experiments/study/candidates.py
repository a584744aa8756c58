"""Candidates beside `pillar-lines`, each with as many parameters, and one idea what to do with them (`student.toml`).

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
    made-threats       told which threats a stone would make, `MadeThreats`                               192,480
    answered-threats   told also what the answer to it would make                                        192,016
    wide-lines         not a candidate: `pillar-lines` twice as wide, what so many would gain          745,160

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
from numpy.typing import NDArray

from distill import nets
from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.nets import heads
from distill.nets.pillar import BLOCKS, FEATURES, PLAIN, MirrorConv, mirrored, read_out, swap_halves, trunk

NARROW = 24
WIDE = 2 * FEATURES
LINE_FEATURES = 32
LINE_BLOCKS = 4
WIDTHS = {
    "looped-2": 128, "looped-4": 128, "line-objects": 166, "early-dense": 195, "narrow-deep": 144,
    "column-mixer": 72, "column-attention": 95, "experts": 42, "wide-lines": 256,
    "made-threats": 127, "answered-threats": 125,
}  # fmt: skip
"""D: what is left for the hidden layer."""


def build(
    name: str, value_head: bool = False, precision: nets.Precision = "float32", form: heads.Form = PLAIN
) -> keras.Model:
    """The candidate of that name; `form` is that of its convolutions of boards."""
    with nets.arithmetic(precision):
        planes = heads.planes_input()
        through: Callable[..., Any] = TRUNKS.get(name, trunk)
        seen = form.lines(name="lines")(planes)
        if name in ("made-threats", "answered-threats"):
            made = MadeThreats(answers=name == "answered-threats", name="made")(planes)
            seen = ops.concatenate([seen, made], axis=-1)
        x = through(seen, form=form)
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


def _mixed(planes: Any, form: heads.Form) -> Any:
    """The trunk's columns, each of which sees all others relative to itself, twice with the same weights."""
    x = trunk(planes, form=form)
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


def _line_objects(planes: Any, **_: Any) -> Any:
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


@keras.saving.register_keras_serializable(package="distill")
class MadeThreats(layers.Layer):
    """planes (B, H, W, 2) → (B, H, W, 2 or 4): on the cell that a column's next stone falls on, what it would make.

    - for each side, how many columns it could then win in, or, once such a one is answered, above the answer: 0, a half
      for one, 1 for more, which wins unless the other side wins before;
    - with `answers`, for the side to move: whether the other side wins at once after it, and whether an answer, one
      that is not a loss at once, makes two such threats.

    No weights; small whole numbers and halves, so every precision gives the same planes.
    """

    def __init__(self, answers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.answers = answers

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "answers": self.answers}

    def call(self, planes: Any) -> Any:
        sides = ops.reshape(planes, (-1, CELLS, 2))
        own, other = sides[..., 0], sides[..., 1]
        empty = 1 - own - other
        playable = empty * (1 - ops.pad(empty, ((0, 0), (0, COLUMNS)))[:, COLUMNS:])
        lines = ops.cast(_cells_of_lines(), planes.dtype)
        on_lines = [ops.matmul(own - 4 * other, lines), ops.matmul(other - 4 * own, lines)]
        moves, after, empty_after = _moved(playable, empty)
        moved = ops.matmul(moves, lines)
        made = []
        for on_line in on_lines:
            winning, count = _made(on_line[:, None] + moved, after, empty_after, lines)
            made.append((winning, count))
        columns = [count / 2 for _, count in made]
        if self.answers:
            left = on_lines[1][:, None] - 4 * moved  # the other side's lines after a stone of the side to move
            lost = ops.max(_threats(left, empty_after, lines) * after, axis=-1)
            answers, later, empty_later = _moved(after, empty_after)
            _, count = _made(left[:, :, None] + ops.matmul(answers, lines), later, empty_later, lines)
            winning, _ = made[0]
            forced = ops.max(winning, axis=-1)[..., None]
            allowed = 1 - forced + ops.sum(answers * winning[:, :, None], axis=-1) * forced
            columns += [lost, ops.max(ops.relu(count - 1) * allowed, axis=-1)]
        on_cells = [ops.sum(moves * each[..., None], axis=1) for each in columns]
        return ops.reshape(ops.stack(on_cells, axis=-1), (-1, ROWS, COLUMNS, len(columns)))


def _moved(playable: Any, empty: Any) -> tuple[Any, Any, Any]:
    """(..., T) twice → the stone of each column, what is playable after it, and empty: (..., W, T)."""
    in_columns = ops.cast(np.arange(CELLS)[None, :] % COLUMNS == np.arange(COLUMNS)[:, None], playable.dtype)
    moves = playable[..., None, :] * in_columns
    return moves, playable[..., None, :] - moves + _below(moves), empty[..., None, :] - moves


def _below(cells: Any) -> Any:
    """(..., T) → what stands on the cell below each."""
    return ops.concatenate([cells[..., COLUMNS:], ops.zeros_like(cells[..., :COLUMNS])], axis=-1)


def _above(cells: Any) -> Any:
    """(..., T) → what stands on the cell above each."""
    return ops.concatenate([ops.zeros_like(cells[..., :COLUMNS]), cells[..., :-COLUMNS]], axis=-1)


def _threats(on_lines: Any, empty: Any, lines: Any) -> Any:
    """What a side has on each line (..., 69), −4 for a stone in its way → (..., T): 1 where a stone completes four."""
    return ops.clip(ops.matmul(ops.relu(on_lines - 2), ops.transpose(lines)), 0, 1) * empty


def _made(on_lines: Any, playable: Any, empty: Any, lines: Any) -> tuple[Any, Any]:
    """Cells on which a side wins with its next stone, (..., T), and how many, or above them, at most two, (...)."""
    threats = _threats(on_lines, empty, lines)
    winning = threats * playable
    stacked = ops.max(winning * _above(threats), axis=-1)
    return winning, ops.clip(ops.sum(winning, axis=-1) + stacked, 0, 2)


def _cells_of_lines() -> NDArray[np.float32]:
    """float32 (T, 69): 1 for the four cells of each line."""
    lines = []
    for down, right in ((0, 1), (1, 0), (1, 1), (-1, 1)):
        for row, column in np.ndindex(ROWS, COLUMNS):
            cells = [(row + step * down, column + step * right) for step in range(4)]
            if all(0 <= r < ROWS and 0 <= c < COLUMNS for r, c in cells):
                lines.append([r * COLUMNS + c for r, c in cells])
    found = np.zeros((CELLS, len(lines)), np.float32)
    for number, cells_of in enumerate(lines):
        found[cells_of, number] = 1
    return found


TRUNKS: dict[str, Callable[..., Any]] = {
    "looped-2": partial(trunk, passes=2),
    "looped-4": partial(trunk, passes=4),
    "line-objects": _line_objects,
    "early-dense": partial(trunk, blocks=1),
    "narrow-deep": partial(trunk, features=NARROW, blocks=2 * BLOCKS),
    "column-mixer": _mixed,
    "wide-lines": partial(trunk, features=WIDE),
}

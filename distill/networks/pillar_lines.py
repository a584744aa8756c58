"""`pillar` with seven planes that follow from the rules, which a small network takes long to learn; 184,103 parameters.

Dimensions: B batch, H = 6, W = 7.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads, pillar


def build(
    value_head: bool = False,
    *,
    features: int = pillar.FEATURES,
    blocks: int = pillar.BLOCKS,
    hidden: int = pillar.HIDDEN,
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where wanted, value (B,)."""
    planes = heads.planes_input()
    return pillar.network(
        "pillar-lines",
        planes,
        Lines(name="lines")(planes),
        value_head,
        features=features,
        blocks=blocks,
        hidden_units=hidden,
    )


@keras.saving.register_keras_serializable(package="distill")
class Lines(layers.Layer):
    """planes (B, H, W, 2) → (B, H, W, 9): the planes, and facts about each cell; no weights. In this order:

    - 1 plane: the cells on which the next stone of a column falls;
    - 1 plane: the rows that the side to move fills if both sides keep playing on top of each other;
    - 1 plane: 1 everywhere if the side to move moves second (the parity of stones decides endgames);
    - 2 planes: for each side, the empty cells where its stone completes four;
    - 2 planes: for each side, on empty cells, a quarter of the number of lines of four that hold two or three of its
      stones and no stone of the other.

    The values are small integers and quarters, so every precision gives the same planes.
    """

    def call(self, planes: Any) -> Any:
        stones = ops.sum(planes, axis=-1, keepdims=True)
        empty = 1 - stones
        playable = empty * ops.concatenate([stones[:, 1:], ops.ones_like(stones[:, :1])], axis=1)
        count = ops.sum(stones, axis=(1, 2), keepdims=True)
        # 1 if the side to move moves second: an odd number of stones.
        second = count - 2 * ops.floor(count / 2)
        odd = ops.cast(np.arange(ROWS, 0, -1)[:, None, None] % 2, planes.dtype)  # the lowest row is the first
        followed = odd + second - 2 * odd * second
        sums = ops.reshape(
            self.stones_on_lines(planes) + ops.cast(_off_board(), planes.dtype), (-1, ROWS, COLUMNS, 2, LINES)
        )
        # A sum of 3 means three own stones and no other; one stone of the other side makes it negative.
        three = ops.max(ops.relu(sums - 2), axis=-1) * empty
        two = ops.sum(ops.clip(sums - 1, 0, 1), axis=-1) * empty / 4
        on_all = ops.ones_like(stones)
        return ops.concatenate([planes, playable, followed * on_all, second * on_all, three, two], axis=-1)

    def stones_on_lines(self, planes: Any) -> Any:
        """The lines' sums around each cell as if the board had no edge: (B, H, W, 2 · LINES)."""
        return ops.conv(planes, ops.cast(line_kernels(), planes.dtype), padding="same")


LINES = 13
"""Lines of four through a cell. Only one is vertical, the one below it: no stone lies above an empty cell."""


def line_kernels() -> NDArray[np.float32]:
    """float32 (7, 7, 2, 2 · LINES): by side and line, 1 for its stones in the other three cells, else −3."""
    lines = [[(down, 0) for down in (1, 2, 3)]]
    for down, right in ((0, 1), (1, 1), (-1, 1)):
        for start in range(-3, 1):
            lines.append([(down * step, right * step) for step in range(start, start + 4) if step])
    kernels = np.zeros((7, 7, 2, 2, LINES), np.float32)
    for number, line in enumerate(lines):
        for down, right in line:
            kernels[3 + down, 3 + right, :, :, number] = [[1, -3], [-3, 1]]
    return kernels.reshape(7, 7, 2, -1)


def _off_board() -> NDArray[np.float32]:
    """float32 (H, W, 2 · LINES): −3 for each cell of a line that is not on the board, else 0."""
    inside = np.pad(np.ones((ROWS, COLUMNS), np.float32), 3)
    windows = np.lib.stride_tricks.sliding_window_view(inside, (7, 7))
    return -3 * np.tensordot(1 - windows, (line_kernels() != 0)[:, :, 0].astype(np.float32), axes=2)

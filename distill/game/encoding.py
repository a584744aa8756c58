"""The only place where a position becomes an array: boards, planes, tokens, and back.

Dimensions: B batch, H = 6 rows (row 0 on top), W = 7 columns, T = 42 cells in row-major order.
All encodings are seen from the side to move, so they say "own" and "opponent", never a colour.

    boards  int8  (B, H, W)      +1 own, -1 opponent, 0 empty
    planes  bool  (B, H, W, C)   C = 2: own, opponent;  C = 3: own, opponent, empty
    tokens  int8  (B, T)         0 empty, 1 own, 2 opponent

`planes` and `tokens` start from boards and take the array module to work with, NumPy by default:
inside a Keras graph the same lines run on `keras.ops`, so training and serving cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.game.rules import BITS_PER_COLUMN, CELLS, COLUMNS, ROWS, Bitboards, Position

ENCODING_VERSION = 1
"""Raised whenever a plane, a token or their order changes meaning."""

FULL_COLUMN = -128
"""In place of an exact score where a column is full."""

OPPONENT_TOKEN = 2

_CELL_BITS = np.array(
    [BITS_PER_COLUMN * column + ROWS - 1 - row for row in range(ROWS) for column in range(COLUMNS)], np.uint64
)
"""uint64 (T,), the bit of each cell in row-major order from the top."""
_CELL_WORDS, _CELL_SHIFTS = divmod(_CELL_BITS.astype(np.uint32), 32)
"""uint32 (T,), the word of each cell in `words`, and its bit there."""


def bitboards_of(positions: Iterable[Position]) -> tuple[Bitboards, Bitboards]:
    """current, mask: uint64 (B,) of positions."""
    current, mask = np.array([(p.current, p.mask) for p in positions], np.uint64).reshape(-1, 2).T.copy()
    return current, mask


def boards(current: ArrayLike, mask: ArrayLike) -> NDArray[np.int8]:
    """int8 (B, 6, 7) boards of bitboards `current` and `mask`, uint64 (B,). Raises ValueError for different shapes, and
    for stones of the side to move that are not in `mask`, which holds all stones."""
    if np.shape(current) != np.shape(mask):  # NumPy would repeat a single one
        raise ValueError(f"bitboards of shapes {np.shape(current)} and {np.shape(mask)}: they must have the same shape")
    current, mask = np.asarray(current, np.uint64), np.asarray(mask, np.uint64)
    if (current & ~mask).any():
        raise ValueError("stones of the side to move on empty cells: mask must hold all stones")
    return np.asarray(boards_of_bits(current, mask))


def boards_of_bits(current: Any, mask: Any) -> Any:
    """The same of two arrays of one shape, of NumPy or of JAX."""
    mover, stones = ((bits[..., None] >> _CELL_BITS & np.uint64(1)).astype(np.int8) for bits in (current, mask))
    return (2 * mover - stones).reshape(*current.shape, ROWS, COLUMNS)


def board(position: Position) -> NDArray[np.int8]:
    """int8 (6, 7), the board of one position."""
    return boards(position.current, position.mask)


def bitboards(boards: ArrayLike) -> tuple[Bitboards, Bitboards]:
    """current, mask: uint64 (B,) of int8 boards (B, 6, 7); the inverse of `boards`."""
    cells = np.asarray(boards)
    cells = cells.reshape(*cells.shape[:-2], CELLS)
    weights = np.uint64(1) << _CELL_BITS
    current = ((cells > 0) * weights).sum(-1, dtype=np.uint64)
    mask = ((cells != 0) * weights).sum(-1, dtype=np.uint64)
    return current, mask


def words(bits: Bitboards) -> NDArray[np.uint32]:
    """uint32 (B, 2) of bitboards (B,): their low and high 32 bits, for accelerators, which have no 64-bit integers."""
    return np.ascontiguousarray(bits, "<u8").view("<u4").reshape(-1, 2)


def boards_of_words(current: Any, mask: Any) -> Any:
    """int8 (B, 6, 7) boards of bitboards as `words` (B, 2), which may be arrays of NumPy or of JAX."""
    mover, stones = ((words[:, _CELL_WORDS] >> _CELL_SHIFTS & 1).astype(np.int8) for words in (current, mask))
    return (2 * mover - stones).reshape(-1, ROWS, COLUMNS)


def planes(boards: Any, channels: int = 2, ops: Any = np) -> Any:
    """bool (B, 6, 7, channels) planes of boards (B, 6, 7); `channels` is 2 or 3."""
    values = {2: (1, -1), 3: (1, -1, 0)}[channels]
    return ops.stack([ops.equal(boards, value) for value in values], axis=-1)


def tokens(boards: Any, ops: Any = np) -> Any:
    """(B, 42) tokens of boards (B, 6, 7), in the boards' dtype: 0 empty, 1 own, 2 opponent."""
    return ops.reshape(ops.where(ops.less(boards, 0), OPPONENT_TOKEN, boards), (-1, CELLS))

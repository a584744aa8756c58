"""Bitboards in compiled code: a uint64 is a set of cells, in the layout drawn in `game/rules.py`.

Constants are uint64 too: a uint64 mixed with a Python integer becomes a float in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from distill.game import mixing, rules
from distill.mcts.engine.jit import inline, jit

U = np.uint64
ZERO, ONE = U(0), U(1)
BOTTOM, FULL = U(rules.BOTTOM_ROW), U(rules.FULL_BOARD)
CELLS_OF_COLUMN = U(2**rules.ROWS - 1)
GOLDEN = U(mixing.GOLDEN)


def _popcount(_context: object, _bits: types.Type) -> tuple[types.Type, Callable[..., ir.Value]]:
    def generate(_: object, builder: ir.IRBuilder, _signature: types.Type, arguments: list[ir.Value]) -> ir.Value:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Callable[[np.uint64], np.uint64] = intrinsic(_popcount)
"""Number of set bits of a uint64: one instruction, for which Numba has no function."""


has_four = inline(rules.has_four)
winning_cells = inline(rules.winning_cells)
playable_cells = inline(rules.playable_cells)
mix = inline(mixing.mix)


@inline
def column_cells(column: int) -> np.uint64:
    """The six cells of a column."""
    return CELLS_OF_COLUMN << U(rules.BITS_PER_COLUMN * column)


@inline
def landing(mask: np.uint64, column: int) -> np.uint64:
    """The cell on which a stone in this column lands; none where the column is full."""
    return (mask + (ONE << U(rules.BITS_PER_COLUMN * column))) & column_cells(column)


@jit
def open_columns(mask: np.uint64) -> int:
    """Bit c is set where column c is not full."""
    columns = 0
    for column in range(rules.COLUMNS):
        if (mask + BOTTOM) & FULL & column_cells(column) != ZERO:
            columns |= 1 << column
    return columns


@jit
def losing_columns(current: np.uint64, mask: np.uint64) -> int:
    """Bit c is set where a stone in column c lets the opponent win at once."""
    threats = winning_cells(current ^ mask)
    columns = 0
    for column in range(rules.COLUMNS):
        stone = landing(mask, column)
        if stone != ZERO and threats & playable_cells(mask | stone) != ZERO:
            columns |= 1 << column
    return columns

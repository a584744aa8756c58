"""A node's row and the proof of a move: what the trees of UCT and PUCT share. The package's docstring draws the row.

**The proof of a move** stands in the row of its parent, in place of two numbers that a proven move no longer needs. Its
total becomes PROVEN if the side that plays it wins, and -PROVEN if that side loses. No sum of values reaches
PROVEN / 2, and later visits cannot pull a proven total below it. So one comparison with PROVEN // 2 tells what is
proven, and UCT's choice by score needs no further test. Its child becomes TERMINAL minus the plies to the end of the
game, the move included: -2 for a move that wins at once, -3 where the reply does. A full column has the total HOPELESS
and counts as lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distill.game.rules import BITS_PER_COLUMN, COLUMNS, ROWS
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.bits import ONE, ZERO, U
from distill.mcts.engine.jit import Int32s, Int64s, inline, int64

TOTAL, CHILD, PRIOR, WIDTH = SLOTS, 2 * SLOTS, 3 * SLOTS, 4 * SLOTS
"""Where totals, children and priors begin in a row, and its width in int32."""

TERMINAL = -1
"""The child of a move that ends the game, where no proof is kept."""
PROVEN = 2**30
"""The total of a proven win; minus this, of a proven loss."""
HOPELESS = -(2**31)
"""The total of a full column: below even a proven loss."""


def new_rows(number: int) -> Int32s:
    """int32 (number * WIDTH,), aligned to cache lines. Untouched rows cost no memory."""
    line = 64 // 4
    rows = np.empty(number * WIDTH + line, np.int32)
    offset = -rows.ctypes.data % 64 // 4  # NumPy aligns to 16 bytes only
    return rows[offset : offset + number * WIDTH]


def zeros(count: int, kind: type, *names: str) -> dict[str, Any]:
    """Arrays of zeros, (count,), by name."""
    return {name: np.zeros(count, kind) for name in names}


@inline
def clear_row(rows: Int32s, base: int, mask: np.uint64) -> None:
    """Make the row at `base` an unvisited node of a position with these stones."""
    for place in range(WIDTH):
        rows[base + place] = 0
    for column in range(SLOTS):
        if column == COLUMNS or mask >> U(BITS_PER_COLUMN * column + ROWS - 1) & ONE != ZERO:
            rows[base + column] = 1
            rows[base + TOTAL + column] = HOPELESS


@inline
def is_won(total: int) -> bool:
    """Whether the move with this total is proven to win for the side that plays it."""
    return total > PROVEN // 2


@inline
def is_lost(total: Any) -> Any:
    """Whether the move with this total is proven to lose, or its column is full; also of an array of totals."""
    return total < -PROVEN // 2


@inline
def is_proven(total: int) -> bool:
    """Whether the move with this total is won or lost."""
    return abs(int64(total)) > PROVEN // 2


@inline
def plies_to_end(child: int) -> int:
    """Plies to the end of the game after a proven move with this child; below 1 for a move that is not proven."""
    return TERMINAL - child


@inline
def write_proof(rows: Int32s, slot: int, wins: bool, plies: int) -> None:
    """The move whose count stands at `slot` wins or loses in so many plies."""
    rows[slot + TOTAL] = PROVEN if wins else -PROVEN
    rows[slot + CHILD] = TERMINAL - plies


@inline
def propagate_proof(rows: Int32s, path: Int64s, lane: int, level: int, wins: bool, plies: int) -> None:
    """The move at this level of the path wins or loses in so many plies: carry that proof towards the root.

    MCTS-Solver (Winands et al. 2008): a move wins if every reply to it is lost, and loses if one reply wins. The losing
    side resists as long as it can, so a win is as far away as the longest of the lost replies.
    """
    decided = True
    while decided and level >= 0:
        slot = path[level, lane]
        write_proof(rows, slot, wins, plies)
        if not wins:
            # The move before wins only if all replies lose; full columns count as lost.
            base = slot - slot % SLOTS
            for column in range(SLOTS):
                decided &= is_lost(rows[base + TOTAL + column])
                plies = max(plies, plies_to_end(int64(rows[base + CHILD + column])))
        wins, plies, level = not wins, plies + 1, level - 1

"""A node's row and the proof of a move: what the trees of UCT and PUCT share. The package's docstring draws the row."""

from __future__ import annotations

import numpy as np

from distill.game.rules import BITS_PER_COLUMN, COLUMNS, ROWS
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.bits import ONE, ZERO, U
from distill.mcts.engine.jit import Int32s, Int64s, inline, int64

TOTAL, CHILD, PRIOR, WIDTH = SLOTS, 2 * SLOTS, 3 * SLOTS, 4 * SLOTS
"""Where totals, children and priors begin in a row, and its width in int32."""

TERMINAL, PROVEN_WIN, PROVEN_LOSS = -1, -2, -3
"""Codes in the child slot: the move ends the game, or is proven to win or to lose for the side that plays it."""
PLY = -2
"""Added to the code of a proven move for each ply to the end of the game, the move included."""
PROVEN = 2**30
"""The total of a proven win; minus this, of a proven loss. No sum of values comes near it."""
HOPELESS = -(2**31)
"""The total of a full column: below even a proven loss."""


def new_rows(number: int) -> Int32s:
    """int32 (number * WIDTH,), aligned to cache lines. Untouched rows cost no memory."""
    line = 64 // 4
    rows = np.empty(number * WIDTH + line, np.int32)
    offset = -rows.ctypes.data % 64 // 4  # NumPy aligns to 16 bytes only
    return rows[offset : offset + number * WIDTH]


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
def is_loss(code: int) -> bool:
    """Whether the code of a proven move says that it loses."""
    return code & 1 == PROVEN_LOSS & 1


@inline
def plies_to_end(code: int) -> int:
    """Plies to the end of the game by the code of a proven move; below 1 for a move that is not proven."""
    return (PROVEN_WIN - code) // -PLY


@inline
def propagate_proof(rows: Int32s, path: Int64s, lane: int, level: int, wins: bool, plies: int) -> None:
    """The move at this level of the path wins or loses in so many plies: carry that proof towards the root.

    MCTS-Solver (Winands et al. 2008): a move wins if every reply to it is lost, and loses if one reply wins. The losing
    side resists as long as it can, so a win is as far away as the longest of the lost replies.
    """
    decided = True
    while decided and level >= 0:
        slot = path[level, lane]
        rows[slot + TOTAL] = PROVEN if wins else -PROVEN
        rows[slot + CHILD] = (PROVEN_WIN if wins else PROVEN_LOSS) + PLY * plies
        if not wins:
            # The move before wins only if all replies lose; full columns count as lost.
            base = slot - slot % SLOTS
            for column in range(SLOTS):
                decided &= rows[base + TOTAL + column] < -PROVEN // 2
                plies = max(plies, plies_to_end(int64(rows[base + CHILD + column])))
        wins, plies, level = not wins, plies + 1, level - 1

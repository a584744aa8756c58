"""Check boards from outside this package before a network evaluates them.

A network returns a move for any numbers. Given Kaggle's marks, a board upside down or one from the wrong point of view,
it would play badly without any error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.game import encoding, rules
from distill.game.rules import COLUMNS, ROWS

HINT = "; row 0 is the top row, 1 the side to move, -1 the opponent, 0 empty (docs/networks.md converts other boards)"
"""How a board is written: the end of every message."""


def boards(boards: ArrayLike) -> NDArray[np.int8]:
    """Boards (B, 6, 7), or one (6, 7), as int8, with row 0 on top: 1 the side to move, -1 the opponent, 0 empty.

    Raises ValueError, which says what was found, for another shape, other values, a stone above an empty cell, and
    stone counts that no game has with this side to move. A wrong side to move goes unnoticed where both sides have
    equally many stones.
    """
    array = np.asarray(boards)
    if array.ndim not in (2, 3) or array.shape[-2:] != (ROWS, COLUMNS):
        raise ValueError(f"boards have shape {array.shape}, not (B, {ROWS}, {COLUMNS}) or ({ROWS}, {COLUMNS}){HINT}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"boards hold values of type {array.dtype}, not numbers{HINT}")
    if (others := array[(array != 1) & (array != -1) & (array != 0)]).size:
        raise ValueError(f"boards hold {', '.join(f'{value:g}' for value in np.unique(others)[:3])}{HINT}")
    current, mask = encoding.bitboards(array)
    for faulty, what in rules.faults(current, mask):
        wrong = faulty & (mask != np.uint64(rules.FULL_BOARD))  # a full board has no side to move
        if wrong.any():
            name = "the board" if array.ndim == 2 else f"board {np.flatnonzero(wrong)[0]}"
            raise ValueError(f"{name}: {what}{HINT}")
    return array.astype(np.int8)

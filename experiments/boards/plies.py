"""Plies to the end of a game, from exact scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.game.rules import CELLS

HIGHEST = 22
"""The score of a win is this minus the winner's stones at the end."""


def moves_to_end(best: ArrayLike, ply: ArrayLike) -> NDArray[np.int64]:
    """Plies left under perfect play, int64 (B,), from the best score of each position and its stones.

    The winner has 22 − |best| stones at the end; the side to move has ply // 2 now and moves first.
    """
    best, ply = np.asarray(best, np.int64), np.asarray(ply, np.int64)
    current, opponent = ply // 2, ply - ply // 2
    win = 2 * (HIGHEST - best - current) - 1
    loss = 2 * (HIGHEST + best - opponent)
    return np.where(best > 0, win, np.where(best < 0, loss, CELLS - ply))

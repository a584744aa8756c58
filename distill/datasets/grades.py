"""Grades of moves by exact scores, without a solver.

Terms, for a board with scores s[0..6] (from the side to move), its legal columns L and the column m played:

    optimal     s[m] = max over L of s                        keeps the best score: wins soonest, loses latest
    outcome     sign s[m] = sign of that maximum              keeps win, draw or loss
    critical    outcome, over boards on which legal columns differ in it; on the others it cannot be lost
    blunder     not outcome

Dimensions: B boards, A = 7 columns. Scores are int8 (B, A), FULL_COLUMN for full columns.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.game.encoding import FULL_COLUMN

Scores: TypeAlias = NDArray[np.int8]


def best_scores(scores: Scores) -> NDArray[np.int64]:
    """int64 (B,), the score of perfect play, from scores (B, A)."""
    return scores.max(1).astype(np.int64)


def keeps_outcome(scores: Scores) -> NDArray[np.bool_]:
    """bool (B, A), True for moves that keep the outcome of perfect play."""
    return (scores != FULL_COLUMN) & (np.sign(scores) == np.sign(best_scores(scores))[:, None])


def is_critical(scores: Scores) -> NDArray[np.bool_]:
    """bool (B,), True where legal moves differ in outcome."""
    return ((scores != FULL_COLUMN) & ~keeps_outcome(scores)).any(1)


def grade_moves(scores: Scores, moves: NDArray[np.integer]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether moves (..., B) are optimal and keep the outcome, bool (..., B) each, by scores int8 (B, A).

    Raises ValueError for a move into a full column.
    """
    # Scores by board and move, also for moves of both orientations, (2, B).
    rows = np.arange(len(scores))
    played = scores[rows, moves]
    if (played == FULL_COLUMN).any():
        raise ValueError("a move falls into a full column")
    return played == best_scores(scores), keeps_outcome(scores)[rows, moves]

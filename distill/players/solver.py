"""Exact scores of every move, from the optional solver package `bitbully`: it grades, and never teaches.

The score of a move is an integer from the point of view of the side to move, before the move:

    score = 22 − stones of the winner when the game ends        the side to move wins
    score = 0                                                   a draw
    score = −(22 − stones of the winner when the game ends)     the side to move loses

under perfect play of both sides after the move, where perfect play wins as early and loses as late as
it can. So −18 ≤ score ≤ 18, its sign is the game-theoretic result, and on an empty board the centre scores 1: a win
with the first player's last stone. This is the convention of the package, and of Pascal Pons' solver.
A column that cannot be played scores FULL_COLUMN.

The package is AGPL-3 and not part of this project, which runs without it: the shipped benchmark
boards carry their scores.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import executors
from distill.common.progress import Advance, silent
from distill.common.provenance import extra
from distill.game import encoding
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import COLUMNS, ROWS, Bitboards, Position
from distill.players.player import Choices, Seeds, evenly


def is_installed() -> bool:
    """Whether the package is there; nothing is loaded."""
    return importlib.util.find_spec("bitbully") is not None


@functools.cache
def engine() -> tuple[Callable[[Any], Any], Any]:
    """The package's board and its solver, once a process, with its opening book (boards of at most 12 stones).

    Raises UserError with the install command where the package is missing.
    """
    with extra("solver", "perfect play"):
        import bitbully
    return bitbully.Board, bitbully.BitBully()


def scores(position: Position) -> list[int]:
    """The seven scores of a position that is not over; FULL_COLUMN for full columns. The first call takes 0.3 s.

    Raises UserError with the install command where the package is missing.
    """
    board, solver = engine()
    # The package takes six rows, the top row first: 1 the player who began, 2 the other one, 0 an empty cell.
    mover = 1 if position.ply % 2 == 0 else 2
    cells = encoding.boards([position.current], [position.mask]).reshape(ROWS, COLUMNS)
    grid = np.where(cells == 0, 0, np.where(cells > 0, mover, 3 - mover)).tolist()
    by_column = solver.score_all_moves(board(grid))
    return [by_column.get(column, FULL_COLUMN) for column in range(COLUMNS)]


_CHUNK = 64
"""Boards a process scores at a time: a few seconds at most, so that the last chunks end together."""


def score_boards(current: Bitboards, mask: Bitboards, workers: int = 1, advance: Advance = silent) -> NDArray[np.int8]:
    """int8 (B, 7) scores of bitboards (B,), shared between worker processes; the same for any number of them."""
    starts = range(0, len(current), _CHUNK)
    tasks = [(current[start : start + _CHUNK], mask[start : start + _CHUNK]) for start in starts]
    scored = np.empty((len(current), COLUMNS), np.int8)
    for number, part in executors.completed(executors.shared(workers if len(tasks) > 1 else 1), _score, tasks):
        scored[number * _CHUNK : (number + 1) * _CHUNK] = part
        advance(len(part))
    return scored


@dataclass(frozen=True, kw_only=True)
class SolverPlayer:
    """At random among the moves with the best exact score; its value is the result under perfect play."""

    name: str = "solver"
    workers: int = 1

    def __post_init__(self) -> None:
        engine()  # what is missing shows now

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        scored = score_boards(current, mask, self.workers)
        best = scored.max(1, keepdims=True)
        return evenly(scored == best, seeds, np.sign(best[:, 0]).astype(np.float64))


def _score(current: Bitboards, mask: Bitboards) -> NDArray[np.int8]:
    boards = zip(current.tolist(), mask.tolist(), strict=True)
    return np.array([scores(Position(*bits)) for bits in boards], np.int8)

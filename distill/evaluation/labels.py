"""How good the labels of a data folder are, by exact scores.

In: a folder of finished games. Out: the share of its labels that are optimal, or keep the outcome, in all and by ply.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError, Progress, say
from distill.evaluation.grading import grade_moves, is_critical
from distill.game.rules import canonicalise
from distill.games import reader
from distill.games.reader import RawRows
from distill.players.intervals import Estimate, share
from distill.players.player import Boards
from distill.players.solver import score_boards


@dataclass(frozen=True, kw_only=True)
class LabelQuality:
    """What the labels of a folder are worth.

    Attributes:
      rows, of: labels graded, and labels in the folder.
      optimal, outcome, critical: of the labels, as `grading.py` defines them; the row is the unit.
      by_ply: the same for every ply.
      boards, seconds: boards scored, distinct up to mirror, and the wall time it took.
    """

    rows: int
    of: int
    optimal: Estimate
    outcome: Estimate
    critical: Estimate
    by_ply: dict[int, dict[str, Any]]
    boards: int
    seconds: float


def sample(folder: Path, count: int | None, seed: int) -> tuple[RawRows, int]:
    """`count` random rows of a folder, all for None, and how many it holds; fewer are the first of more.

    Raises DataError for a folder that is no finished run, or holds no rows.
    """
    rows = reader.raw_rows([folder])
    if not len(rows):
        raise DataError(f"{folder}: holds no rows")
    return rows[np.random.default_rng(seed).permutation(len(rows))[:count]], len(rows)


def grade_labels(folder: Path, rows: int | None, seed: int, workers: int = 1) -> LabelQuality:
    """Grade a random sample of `rows` labels, all for None, with a progress bar.

    Raises DataError for a folder that is no finished run, UserError where the solver is not installed.
    """
    chosen, of = sample(folder, rows, seed)
    say(f"grading {len(chosen):,} labels of {folder} with the solver")
    began = time.perf_counter()
    scores, boards = score_once(chosen.current, chosen.mask, workers)
    seconds = time.perf_counter() - began
    optimal, outcome = grade_moves(scores, chosen.label.astype(np.int64))
    critical = is_critical(scores)

    def shares(where: NDArray[np.bool_]) -> dict[str, Estimate]:
        return {
            "optimal": share(optimal[where], trials=1),
            "outcome": share(outcome[where], trials=1),
            "critical": share(outcome[where & critical], trials=1),
        }

    by_ply = {
        ply: {"rows": int((chosen.ply == ply).sum())} | shares(chosen.ply == ply)
        for ply in np.unique(chosen.ply).tolist()
    }
    everywhere = shares(np.ones(len(chosen), np.bool_))
    return LabelQuality(rows=len(chosen), of=of, by_ply=by_ply, boards=boards, seconds=seconds, **everywhere)


def score_once(current: Boards, mask: Boards, workers: int = 1) -> tuple[NDArray[np.int8], int]:
    """int8 (B, 7) scores of boards that may be equal up to mirror, and the number of distinct ones, scored once."""
    small_current, small_mask, mirrored = canonicalise(current, mask)
    distinct, place = np.unique(np.stack([small_current, small_mask], 1), axis=0, return_inverse=True)
    columns = np.ascontiguousarray(distinct.T)
    with Progress(len(distinct), "boards") as progress:
        scores = score_boards(columns[0], columns[1], workers, progress.advance)[place.reshape(-1)]
    return np.where(mirrored[:, None], scores[:, ::-1], scores), len(distinct)

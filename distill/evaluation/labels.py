"""How good the labels of a data folder are, by exact scores.

In: a folder of finished games. Out: the share of its labels that are optimal, or keep the outcome, in all and by ply.
"""

from __future__ import annotations

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
    """How good the labels of a folder are.

    Attributes:
      rows, of: labels graded, and labels in the folder.
      optimal, outcome, critical: of the labels, as `grading.py` defines them; the row is the unit.
      by_ply: the same for every ply, with the number of `rows`.
    """

    rows: int
    of: int
    optimal: Estimate
    outcome: Estimate
    critical: Estimate
    by_ply: dict[int, dict[str, Any]]


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
    scores = score_once(chosen.current, chosen.mask, workers)
    optimal, outcome = grade_moves(scores, chosen.label.astype(np.int64))
    critical = is_critical(scores)

    def shares(where: NDArray[np.bool_]) -> dict[str, Any]:
        return {
            "rows": int(where.sum()),
            "optimal": share(optimal[where], trials=1),
            "outcome": share(outcome[where], trials=1),
            "critical": share(outcome[where & critical], trials=1),
        }

    by_ply = {ply: shares(chosen.ply == ply) for ply in np.unique(chosen.ply).tolist()}
    return LabelQuality(of=of, by_ply=by_ply, **shares(np.ones(len(chosen), np.bool_)))


def score_once(current: Boards, mask: Boards, workers: int = 1) -> NDArray[np.int8]:
    """int8 (B, 7) scores of boards (B,), of which those that are equal up to mirror are scored once."""
    *small, mirrored = canonicalise(current, mask)
    distinct, place = np.unique(np.stack(small, 1), axis=0, return_inverse=True)
    with Progress(len(distinct), "boards") as progress:
        scores = score_boards(distinct[:, 0], distinct[:, 1], workers, progress.advance)[place.reshape(-1)]
    return np.where(mirrored[:, None], scores[:, ::-1], scores)

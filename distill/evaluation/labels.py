"""How good the labels of a data folder are, by exact scores.

In: a folder of finished games. Out: the share of its labels that are optimal, or keep the outcome, in all and by ply.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distill.common import DataError, Progress, say
from distill.evaluation.grading import by_stones, grade_moves, is_critical
from distill.games import reader
from distill.games.reader import RawRows
from distill.players.intervals import Estimate
from distill.players.solver import score_boards


@dataclass(frozen=True, kw_only=True)
class LabelQuality:
    """How good the labels of a folder are.

    Attributes:
      rows, of: labels graded, and labels in the folder.
      optimal, outcome, critical: as `grading.py` defines them, by stones on the board and in all; the row is the unit.
    """

    rows: int
    of: int
    optimal: dict[str, Estimate]
    outcome: dict[str, Estimate]
    critical: dict[str, Estimate]


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
    with Progress(len(chosen), "boards") as progress:
        scores = score_boards(chosen.current, chosen.mask, workers, progress.advance)
    optimal, outcome = grade_moves(scores, chosen.label.astype(np.int64))
    critical = is_critical(scores)
    plies = [(ply, ply) for ply in np.unique(chosen.ply).tolist()]
    return LabelQuality(
        rows=len(chosen),
        of=of,
        optimal=by_stones(optimal, chosen.ply, 1, plies),
        outcome=by_stones(outcome, chosen.ply, 1, plies),
        critical=by_stones(outcome[critical], chosen.ply[critical], 1, plies),
    )

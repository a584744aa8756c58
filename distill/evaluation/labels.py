"""How good the labels of a data folder are, by exact scores.

In: a folder of finished games. Out: how many of its labels keep the best score and the class, by ply.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError, Progress, say
from distill.evaluation.grading import grade_moves
from distill.evaluation.strata import is_critical
from distill.game.rules import canonicalise
from distill.games import games
from distill.games.games import RawRows
from distill.players.intervals import Estimate, share
from distill.players.player import Boards
from distill.players.solver import score_boards


@dataclass(frozen=True, kw_only=True)
class LabelQuality:
    """What the labels of a folder are worth.

    Attributes:
      rows, of: labels graded, and labels in the folder.
      optimal, keeps, critical: of the labels, as `grading.py` defines them; the row is the unit.
      by_ply: the same for every ply.
      boards, seconds: unlike boards scored, up to mirror, and the wall time it took.
    """

    rows: int
    of: int
    optimal: Estimate
    keeps: Estimate
    critical: Estimate
    by_ply: dict[int, dict[str, Any]]
    boards: int
    seconds: float


def sample(folder: Path, count: int | None, seed: int) -> tuple[RawRows, int]:
    """`count` random rows of a folder, all for None, and how many it holds; fewer are the first of more.

    Raises DataError for a folder that is no finished run, or holds no rows.
    """
    run = games.open_run(folder)
    games.verify([run])
    if not run.rows:
        raise DataError(f"{folder}: holds no rows")
    return games.rows_at(run, np.random.default_rng(seed).permutation(run.rows)[:count]), run.rows


def grade_labels(folder: Path, rows: int | None, seed: int, workers: int = 1) -> LabelQuality:
    """Grade a random sample of `rows` labels, all for None, and show how far it is.

    Raises DataError for a folder that is no finished run, UserError where the solver is not installed.
    """
    chosen, of = sample(folder, rows, seed)
    label, ply = chosen.label.astype(np.int64), chosen.ply
    say(f"grading {len(chosen):,} labels of {folder} with the solver")
    began = time.perf_counter()
    scores, boards = score_once(chosen.current, chosen.mask, workers)
    seconds = time.perf_counter() - began
    optimal, keeps = grade_moves(scores, label)
    critical = is_critical(scores)
    by_ply = {
        int(number): {
            "rows": int((ply == number).sum()),
            "optimal": share(optimal[ply == number], trials=1),
            "outcome": share(keeps[ply == number], trials=1),
            "critical": share(keeps[(ply == number) & critical], trials=1),
        }
        for number in np.unique(ply)
    }
    return LabelQuality(
        rows=len(chosen),
        of=of,
        optimal=share(optimal, trials=1),
        keeps=share(keeps, trials=1),
        critical=share(keeps[critical], trials=1),
        by_ply=by_ply,
        boards=boards,
        seconds=seconds,
    )


def score_once(current: Boards, mask: Boards, workers: int = 1) -> tuple[NDArray[np.int8], int]:
    """int8 (B, 7) scores of boards of which many may be equal up to mirror, and how many unlike ones there were."""
    small_current, small_mask, mirrored = canonicalise(current, mask)
    unlike, place = np.unique(np.stack([small_current, small_mask], 1), axis=0, return_inverse=True)
    columns = np.ascontiguousarray(unlike.T)
    with Progress(len(unlike), "boards") as progress:
        scores = score_boards(columns[0], columns[1], workers, progress.advance)[place.reshape(-1)]
    return np.where(mirrored[:, None], scores[:, ::-1], scores), len(unlike)

"""Results of a study: many runs that each change one thing, graded on the same boards.

In: the grades of every run and of some players to compare them with. Out: a table as CSV and Markdown.

A difference is paired, board by board, with the interval of `intervals.difference` over boards; that of `top1` is over
games, because rows of one game depend on each other. The interval covers the choice of boards, not the randomness of
training; a run that changes only the seed shows the latter. The grade of a board is the mean over the seeds of a run.

Dimensions: B boards, two orientations each.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distill.common import write_atomically
from distill.common.tables import table
from distill.datasets.benchmark import GradedBoards
from distill.evaluation import grading
from distill.evaluation.report import percent
from distill.games.reader import RawRows
from distill.players.intervals import Estimate, difference, share
from distill.players.network import NetworkPlayer
from distill.players.player import Player
from distill.training.accuracy import answers

SHOWN = ("optimal", "outcome")
"""The metrics of every study."""


@dataclass(frozen=True, kw_only=True)
class Grades:
    """Grades of a player's moves, in [0, 1].

    optimal, outcome: float64 (2, B), on B boards as stored and mirrored.
    top1: float64 (N,), whether the move is the teacher's label, on N rows of games; N is 0 where the study has no rows.
    game: float64 (N,), the number of each row's game.
    """

    optimal: NDArray[np.float64]
    outcome: NDArray[np.float64]
    top1: NDArray[np.float64]
    game: NDArray[np.float64]


FIELDS = [field.name for field in fields(Grades)]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run of the study.

    Attributes:
      name, change, confounded: from the plan: what is changed, and what else changes with it.
      against: the run it is compared with, and the common seeds where one of them has more; None for the baseline.
      facts: numbers of the training run by name, of the first seed; `best_step` of each seed.
      shares: metric → share on the main set; of `top1` on the rows.
      gaps: metric → paired difference from `against`; empty if that run is missing.
      by_seed: metric → share of each seed.
      tactics: mean of optimal over the sets chosen for a tactical motif.
    """

    name: str
    change: str
    confounded: str
    against: str | None
    facts: Mapping[str, Any]
    shares: Mapping[str, Estimate]
    gaps: Mapping[str, Estimate]
    by_seed: Mapping[str, tuple[float, ...]]
    tactics: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A player that the runs are compared with: a line across the learning curve."""

    name: str
    shares: Mapping[str, Estimate]


def grade(
    player: Callable[[], Player], boards: GradedBoards, seed: int, file: Path, key: str, rows: RawRows | None = None
) -> Grades:
    """The player's grades: those in `file` if it has the same `key`; otherwise computed and stored there.

    `rows` are those of `top1`, for a network.
    """
    if (kept := _read(file, key)) is not None:
        return kept
    grader, top1, game = player(), np.zeros(0, np.bool_), np.zeros(0, np.int64)
    graded = grading.grade(grader, boards, seed)
    if rows is not None:
        assert isinstance(grader, NetworkPlayer)
        answered = answers(grader.predict, rows)
        top1, game = answered.move == answered.label, rows.game
    arrays: dict[str, Any] = {"optimal": graded.optimal, "outcome": graded.outcome, "top1": top1, "game": game}
    content = io.BytesIO()
    np.savez_compressed(content, key=key, **arrays)
    write_atomically(file, content.getvalue())
    return _grades(arrays)


def _read(file: Path, key: str) -> Grades | None:
    try:
        with np.load(file) as stored:
            if str(stored["key"]) == key:
                return _grades(stored)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # missing or damaged: graded again
    return None


def _grades(arrays: Mapping[str, NDArray[Any]]) -> Grades:
    return Grades(**{name: arrays[name].astype(np.float64) for name in FIELDS})


def mean(grades: Sequence[Grades]) -> Grades:
    """Board by board and row by row, over seeds."""
    return Grades(**{name: np.mean([getattr(one, name) for one in grades], axis=0) for name in FIELDS})


def shares(boards: GradedBoards, grades: Grades) -> dict[str, Estimate]:
    """Each metric of SHOWN on the main set, which is the first, and `top1` where the study has rows."""
    units = grading.set_units(boards, grades.optimal, grades.outcome, boards.sets[0])
    of_rows = {"top1": share(grades.top1, 1, grades.game)} if len(grades.top1) else {}
    return {metric: share(units[metric]) for metric in SHOWN} | of_rows


def gaps(boards: GradedBoards, one: Grades, other: Grades) -> dict[str, Estimate]:
    """How much better `one` is than `other`, in the metrics of `shares`, paired."""
    main = boards.sets[0]
    ours, theirs = (grading.set_units(boards, grades.optimal, grades.outcome, main) for grades in (one, other))
    of_rows = {"top1": difference(one.top1, other.top1, one.game)} if len(one.top1) else {}
    return {metric: difference(ours[metric], theirs[metric]) for metric in SHOWN} | of_rows


def tactics(boards: GradedBoards, grades: Grades) -> float:
    """Mean of optimal over the sets chosen for a tactical motif; NaN without such sets."""
    picked = [name for name in boards.sets if name not in grading.GENERAL]
    found = [float(grading.units(boards, grades.optimal, name).mean()) for name in picked]
    return float(np.mean(found)) if found else float("nan")


# Tables ---------------------------------------------------------------------------------------------------------------


def csv(results: Sequence[Result]) -> str:
    """One row a run, shares as fractions, an interval as two columns."""
    return pd.DataFrame([_row(result) for result in results]).to_csv(index=False, float_format="%.5f")


def _row(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"run": result.name, "change": result.change, **result.facts}
    for metric, estimate in result.shares.items():
        row |= _columns(metric, estimate)
    row |= {"tactics_optimal": result.tactics, "against": result.against}
    for metric in result.shares:
        row |= _columns(f"{metric}_difference", result.gaps.get(metric))
    by_seed = {metric: " ".join(f"{share:.5f}" for share in shares) for metric, shares in result.by_seed.items()}
    return row | {f"{metric}_by_seed": shares for metric, shares in by_seed.items()}


def labels_csv(quality: Mapping[str, Mapping[str, Estimate]]) -> str:
    """The grades of labels, one row a data set."""
    rows = []
    for name, graded in quality.items():
        row: dict[str, Any] = {"data": name, "games": graded["optimal"].units}
        for metric, estimate in graded.items():
            row |= _columns(metric, estimate)
        rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.5f")


def _columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    columns = (None, None, None) if estimate is None else (estimate.mean, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), columns, strict=True))


def markdown(results: Sequence[Result], lines: Sequence[Line]) -> str:
    """The table of the page: shares in percent, differences in points, a star if the interval does not contain 0."""
    with_loss = any("validation_loss" in result.facts for result in results)
    metrics = [*results[0].shares]
    header = ["run", "parameters", "boards", "epochs", *(["steps", "loss"] if with_loss else []), *metrics, "tactics"]
    header += [f"{metric}, difference" for metric in metrics] + ["from"]
    rows = []
    for result in results:
        numbers = [_number(result.facts.get(name)) for name in ("parameters", "training_boards", "epochs")]
        if with_loss:
            numbers += [_number(result.facts.get("steps")), f"{result.facts['validation_loss']:.4f}"]
        cells = [percent(result.shares[metric]) for metric in metrics] + [_percent(result.tactics)]
        cells += [_points(result.gaps.get(metric)) for metric in metrics] + [result.against or "–"]
        rows.append([result.name, *numbers, *cells])
    for line in lines:
        shown = {metric: percent(estimate) for metric, estimate in line.shares.items()}
        rows.append([line.name, *(shown.get(name, "–") for name in header[1:])])
    return table(header, rows)


def seeds(results: Sequence[Result]) -> str:
    """The shares of each seed; empty if every run has one seed."""
    several = [result for result in results if len(result.by_seed["optimal"]) > 1]
    rows = [
        [result.name, *(" · ".join(map(_percent, shares)) for shares in result.by_seed.values())] for result in several
    ]
    return table(["run", *(f"{metric}, by seed" for metric in several[0].by_seed)], rows) if rows else ""


def labels(quality: Mapping[str, Mapping[str, Estimate]]) -> str:
    """The grades of each data set's labels; empty if none were graded."""
    rows = [
        [name, f"{graded['optimal'].units:,}", *(percent(estimate) for estimate in graded.values())]
        for name, graded in quality.items()
    ]
    return table(["data", "games", *next(iter(quality.values()))], rows) if rows else ""


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if np.isfinite(share) else "–"


def _points(gap: Estimate | None) -> str:
    if gap is None:
        return "–"
    return f"{100 * gap.mean:+.1f} ±{50 * (gap.high - gap.low):.1f}" + (" *" if gap.low > 0 or gap.high < 0 else "")

"""Results of a study: many runs that each change one thing, graded on the same boards.

In: the grades of every run and of some players to compare them with. Out: a table as CSV and Markdown.

A difference is paired: board by board, with the interval of `intervals.difference` over boards. That interval covers
the choice of boards, not the randomness of training; a run that changes only the seed shows the latter. The grade of a
board is the mean over the seeds of a run.

Dimensions: B boards, two orientations each.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from distill.players.intervals import Estimate, difference, share
from distill.players.player import Player

SHOWN = ("optimal", "outcome")
"""The metrics of a study."""


@dataclass(frozen=True, kw_only=True)
class Grades:
    """Grades of the moves on B boards: float64 (2, B) each, as stored and mirrored, in [0, 1]."""

    optimal: NDArray[np.float64]
    outcome: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run of the study.

    Attributes:
      name, change, confounded: from the plan: what is changed, and what else changes with it.
      against: the run it is compared with; None for the baseline.
      facts: numbers of the training run by name, of the first seed.
      shares: metric → share on the main set.
      gaps: metric → paired difference from `against`; empty if that run is missing.
      by_seed: optimal of each seed.
      tactics: mean of optimal over the sets chosen for a tactical motif.
    """

    name: str
    change: str
    confounded: str
    against: str | None
    facts: Mapping[str, Any]
    shares: Mapping[str, Estimate]
    gaps: Mapping[str, Estimate]
    by_seed: tuple[float, ...]
    tactics: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A player that the runs are compared with: a line across the learning curve."""

    name: str
    shares: Mapping[str, Estimate]


def grade(player: Callable[[], Player], boards: GradedBoards, seed: int, file: Path, key: str) -> Grades:
    """The player's grades: those in `file` if it has the same `key`; otherwise computed and stored there."""
    if (kept := _read(file, key)) is not None:
        return kept
    graded = grading.grade(player(), boards, seed)
    content = io.BytesIO()
    np.savez_compressed(content, key=key, optimal=graded.optimal, outcome=graded.outcome)
    write_atomically(file, content.getvalue())
    return Grades(optimal=graded.optimal.astype(np.float64), outcome=graded.outcome.astype(np.float64))


def _read(file: Path, key: str) -> Grades | None:
    try:
        with np.load(file) as stored:
            if str(stored["key"]) == key:
                return Grades(
                    optimal=stored["optimal"].astype(np.float64), outcome=stored["outcome"].astype(np.float64)
                )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # missing or damaged: graded again
    return None


def mean(grades: Sequence[Grades]) -> Grades:
    """Board by board, over seeds."""
    return Grades(
        optimal=np.mean([each.optimal for each in grades], axis=0),
        outcome=np.mean([each.outcome for each in grades], axis=0),
    )


def shares(boards: GradedBoards, grades: Grades) -> dict[str, Estimate]:
    """Each metric of SHOWN on the main set, which is the first."""
    units = grading.set_units(boards, grades.optimal, grades.outcome, boards.sets[0])
    return {metric: share(units[metric]) for metric in SHOWN}


def gaps(boards: GradedBoards, one: Grades, other: Grades) -> dict[str, Estimate]:
    """How much better `one` is than `other` on the main set, paired."""
    ours, theirs = (grading.set_units(boards, each.optimal, each.outcome, boards.sets[0]) for each in (one, other))
    return {metric: difference(ours[metric], theirs[metric]) for metric in SHOWN}


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
    for metric in SHOWN:
        row |= _columns(metric, result.shares[metric])
    row |= {"tactics_optimal": result.tactics, "against": result.against}
    for metric in SHOWN:
        row |= _columns(f"{metric}_difference", result.gaps.get(metric))
    return row | {"optimal_by_seed": " ".join(f"{share:.5f}" for share in result.by_seed)}


def _columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    found = (None, None, None) if estimate is None else (estimate.mean, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def markdown(results: Sequence[Result], lines: Sequence[Line]) -> str:
    """The table of the page: shares in percent, differences in points, a star if the interval does not contain 0."""
    with_loss = any("validation_loss" in result.facts for result in results)
    header = ["run", "parameters", "boards", "epochs", *(["steps", "loss"] if with_loss else []), *SHOWN, "tactics"]
    header += [f"{metric}, difference" for metric in SHOWN] + ["from"]
    rows = []
    for result in results:
        numbers = [_number(result.facts.get(name)) for name in ("parameters", "training_boards", "epochs")]
        if with_loss:
            numbers += [_number(result.facts.get("steps")), f"{result.facts['validation_loss']:.4f}"]
        cells = [percent(result.shares[metric]) for metric in SHOWN] + [_percent(result.tactics)]
        cells += [_points(result.gaps.get(metric)) for metric in SHOWN] + [result.against or "–"]
        rows.append([result.name, *numbers, *cells])
    for line in lines:
        rows.append([line.name, *(len(header) - 7) * "–", *(percent(line.shares[metric]) for metric in SHOWN), *"––––"])
    return table(header, rows)


def seeds(results: Sequence[Result]) -> str:
    """Optimal of each seed; empty if every run has one seed."""
    several = [result for result in results if len(result.by_seed) > 1]
    rows = [[result.name, " · ".join(_percent(share) for share in result.by_seed)] for result in several]
    return table(["run", "optimal, seed by seed"], rows) if rows else ""


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

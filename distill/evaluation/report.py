"""Grades as tables, for the screen and for `report.md`, and as JSON values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distill.common.tables import table as table
from distill.datasets.benchmark import GradedBoards
from distill.evaluation.grading import GENERAL, HEADLINES, METRICS
from distill.evaluation.summary import Summary
from distill.players.intervals import Estimate

UNIFORM = "uniform random, exactly"

LEGEND = """\
*optimal*: the move keeps the best score; *outcome*: it keeps the win, draw or loss; *critical*: outcome, over boards
where legal moves differ in it. In percent, with half the width of the 95 % interval; every board is graded twice, as
stored and mirrored."""

Uniform = Mapping[str, Mapping[str, float]]
Pairs = Mapping[str, Mapping[str, Mapping[str, Estimate]]]


def percent(estimate: Estimate) -> str:
    """ "75.4 ±1.2", with half the width of the interval; a dash without any unit."""
    if not estimate.units:
        return "–"
    return f"{100 * estimate.mean:.1f} ±{50 * (estimate.high - estimate.low):.1f}"


def headline(summaries: Sequence[Summary], uniform: Uniform) -> str:
    """One row a player: the headline sets, the mean over the tactical sets, symmetry and first move."""
    main = headline_sets(list(uniform))
    tactical = [name for name in uniform if name not in GENERAL]
    header = ["player", *(f"{name} {metric}" for name in main for metric in METRICS)]
    header += ["tactics optimal", "mirrored moves", "opens in"]

    def mean(values: Sequence[float]) -> str:
        return f"{100 * float(np.mean(values)):.1f}" if values else "–"

    rows = [
        [
            one.name,
            *(percent(one.sets[name][metric]) for name in main for metric in METRICS),
            mean([one.sets[name]["optimal"].mean for name in tactical]),
            mean([one.mirrored_moves] if one.mirrored_moves is not None else []),
            str(one.empty_move + 1),
        ]
        for one in summaries
    ]
    expected = [f"{100 * uniform[name][metric]:.1f}" for name in main for metric in METRICS]
    expected.append(mean([uniform[name]["optimal"] for name in tactical]))
    return table(header, [*rows, [UNIFORM, *expected, "–", "–"]])


def headline_sets(names: Sequence[str]) -> list[str]:
    """Those of `grading.HEADLINES` among these sets, or else the first set."""
    return [name for name in HEADLINES if name in names] or list(names[:1])


def by_set(summaries: Sequence[Summary], uniform: Uniform, metric: str) -> str:
    """One row a set, one column a player."""
    rows = []
    for name, expected in uniform.items():
        estimates = [one.sets[name][metric] for one in summaries]
        shown = f"{100 * expected[metric]:.1f}" if estimates[0].units else "–"
        rows.append([name, str(estimates[0].units), *map(percent, estimates), shown])
    return table(["set", "boards", *(one.name for one in summaries), UNIFORM], rows)


def differences(pairs: Pairs, name: str) -> str:
    """Paired differences on one set, in points; a star where the interval leaves out 0."""
    rows = []
    for pair, sets in pairs.items():
        cells = []
        for gap in (sets[name][metric] for metric in METRICS):
            star = " *" if gap.low > 0 or gap.high < 0 else ""
            cells.append(f"{100 * gap.mean:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f}){star}")
        rows.append([pair, *cells])
    return table([f"{name}, points", *METRICS], rows)


def of_players(boards: GradedBoards, summaries: Sequence[Summary], uniform: Uniform, pairs: Pairs) -> list[str]:
    """The sections on the players, with the plot of `plots.plot_by_set`."""
    page = [LEGEND, headline(summaries, uniform), "![by set](by_set.png)"]
    for metric in METRICS:
        page += [f"## {metric.capitalize()}", by_set(summaries, uniform, metric)]
    if pairs:
        main = headline_sets(boards.sets)
        page += ["## On the same boards, paired", *(differences(pairs, name) for name in main)]
    return page


def by_stones(shares: Mapping[str, Mapping[str, Estimate]]) -> str:
    """One column a title, one row a number of stones on the board."""
    first = next(iter(shares.values()))
    rows = [[band, f"{first[band].units:,}", *(percent(one[band]) for one in shares.values())] for band in first]
    return table(["stones", "rows", *shares], rows)


def plain(value: Any) -> Any:
    """Results as JSON values: dataclasses become objects, arrays lists, a missing number null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value

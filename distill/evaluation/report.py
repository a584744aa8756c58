"""Grades as tables, for the screen and for `report.md`, and as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from distill.common.tables import table
from distill.datasets.benchmark import HEADLINES
from distill.evaluation.grading import GENERAL, METRICS, BySet
from distill.game.rules import COLUMNS
from distill.players.intervals import Estimate
from distill.training.accuracy import FIRST_ROWS

LEGEND = """\
*optimal*: the move keeps the best score; *outcome*: it keeps the win, draw or loss; *critical*: outcome, over boards
where legal moves differ in it. In percent, with half the width of the 95 % interval; every board is graded twice, as
stored and mirrored."""

Players = Mapping[str, BySet]
"""Grades by the player's name, or differences by the names of two."""


def percent(estimate: Estimate) -> str:
    """ "75.4 ±1.2", with half the width of the interval; a dash without any unit."""
    if not estimate.units:
        return "–"
    return f"{100 * estimate.mean:.1f} ±{50 * (estimate.high - estimate.low):.1f}"


def headline(players: Players) -> str:
    """One row a player: the headline sets, and the mean over the tactical sets."""
    main = headline_sets(players)
    header = ["player", *(f"{name} {metric}" for name in main for metric in METRICS), "tactics optimal"]
    rows = []
    for player, sets in players.items():
        tactics = [grades["optimal"].mean for name, grades in sets.items() if name not in GENERAL]
        cells = [percent(sets[name][metric]) for name in main for metric in METRICS]
        rows.append([player, *cells, f"{100 * float(np.mean(tactics)):.1f}" if tactics else "–"])
    return table(header, rows)


def headline_sets(players: Players) -> list[str]:
    """Those of HEADLINES that were graded, or else the first set."""
    names = [*next(iter(players.values()))]
    return [name for name in HEADLINES if name in names] or names[:1]


def by_set(players: Players, metric: str) -> str:
    """One row a set, one column a player."""
    rows = []
    for name in next(iter(players.values())):
        estimates = [sets[name][metric] for sets in players.values()]
        rows.append([name, str(estimates[0].units), *map(percent, estimates)])
    return table(["set", "boards", *players], rows)


def differences(pairs: Players, name: str) -> str:
    """Paired differences on one set, in points; a star where the interval leaves out 0."""
    rows = []
    for pair, sets in pairs.items():
        cells = []
        for gap in (sets[name][metric] for metric in METRICS):
            star = " *" if gap.low > 0 or gap.high < 0 else ""
            cells.append(f"{100 * gap.mean:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f}){star}")
        rows.append([pair, *cells])
    return table([f"{name}, points", *METRICS], rows)


def of_players(players: Players, pairs: Players) -> list[str]:
    """The sections on the players."""
    page = [LEGEND, headline(players)]
    for metric in METRICS:
        page += [f"## {metric.capitalize()}", by_set(players, metric)]
    if pairs:
        main = headline_sets(players)
        page += ["## On the same boards, paired", *(differences(pairs, name) for name in main)]
    return page


def against(compared: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A table of networks against labels, from `labels.against`, and the sections that follow it."""
    rows = []
    for name, one in compared.items():
        top = [percent(one["top1"]), percent(one["first_rows"]), *(f"{100 * one[k]:.1f}" for k in ("top2", "top3"))]
        kappa = "–" if one["kappa"] is None else f"{one['kappa']:.3f}"
        rows.append([name, *top, f"{one['log_loss']:.3f}", kappa])
    first = f"top-1, first {FIRST_ROWS} rows of a game"
    page = [table(["network", "top-1", first, "top-2", "top-3", "log loss", "Cohen's kappa"], rows)]
    columns = [str(column + 1) for column in range(COLUMNS)]
    for name, one in compared.items():
        matrix = [
            [label, *(f"{count:,}" for count in row)] for label, row in zip(columns, one["confusion"], strict=True)
        ]
        page += [f"### {name}: rows by the label (down) and by its column (across)", table(["label", *columns], matrix)]
        for head, curve in one["calibration"].items():
            cells = [[f"{share:.3f}" for share in pair] for pair in curve]
            page += [f"### {name}: calibration of the {head}", table(["predicted", "observed"], cells)]
    return page


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Results as JSON values: dataclasses become objects, NumPy's numbers plain ones, a missing number null."""
    return dict(to_jsonable_python(value, inf_nan_mode="null", fallback=lambda item: item.tolist()))

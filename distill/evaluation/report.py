"""Grades as tables, for the screen and for `report.md`, as a plot, and as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_jsonable_python

from distill.common.pictures import new_figure, picture
from distill.common.tables import table
from distill.datasets.benchmark import HEADLINES
from distill.evaluation.grading import GENERAL, METRICS, BySet
from distill.game.rules import COLUMNS
from distill.players.intervals import Estimate

GRID = "#d9d9d9"

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
    """The sections on the players, with the plot of `plot`."""
    page = [LEGEND, headline(players), "![by set](by_set.png)"]
    for metric in METRICS:
        page += [f"## {metric.capitalize()}", by_set(players, metric)]
    if pairs:
        main = headline_sets(players)
        page += ["## On the same boards, paired", *(differences(pairs, name) for name in main)]
    return page


def by_stones(shares: Mapping[str, Mapping[str, Estimate]]) -> str:
    """One column a title, one row a number of stones on the board."""
    first = next(iter(shares.values()))
    rows = [[band, f"{first[band].units:,}", *(percent(one[band]) for one in shares.values())] for band in first]
    return table(["stones", "rows", *shares], rows)


def against(compared: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The sections on networks against labels, from `accuracy.compare` by the network's name."""
    rows = [
        [name, f"{one['top2']:.1%}", f"{one['top3']:.1%}", f"{one['log_loss']:.3f}", _number(one["kappa"])]
        for name, one in compared.items()
    ]
    page = [table(["network", "top-2", "top-3", "log loss", "Cohen's kappa"], rows)]
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


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def in_percent(estimates: Sequence[Estimate]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Means, and how far the intervals reach below and above them."""
    low, means, high = 100 * np.array([(one.low, one.mean, one.high) for one in estimates]).reshape(-1, 3).T
    return means, [means - low, high - means]


@picture
def plot(path: Path, players: Players) -> None:
    """Optimal and outcome for every set, one colour a player, bars of 95 %."""
    from matplotlib import colormaps

    names = [*next(iter(players.values()))]
    figure, axes = new_figure(1, 2, 11, 2 + 0.42 * len(names))
    places = np.arange(len(names), dtype=float)
    colours = colormaps["tab10" if len(players) <= 10 else "tab20"]
    for axis, metric in zip(axes, ("optimal", "outcome"), strict=True):
        offsets = np.linspace(-0.3, 0.3, len(players)) if len(players) > 1 else np.zeros(len(players))
        for index, (player, offset) in enumerate(zip(players, offsets, strict=True)):
            means, errors = in_percent([players[player][name][metric] for name in names])
            axis.errorbar(means, places + offset, xerr=errors, fmt="o", color=colours(index), label=player)
        axis.set_yticks(places, names if metric == "optimal" else [""] * len(names))
        axis.invert_yaxis()
        axis.set(xlabel=f"{metric}, %", xlim=(0, 102))
        axis.grid(color=GRID)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    figure.suptitle("Moves by set (bars: 95 %)")
    figure.savefig(path)


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Results as JSON values: dataclasses become objects, NumPy's numbers plain ones, a missing number null."""
    return dict(to_jsonable_python(value, inf_nan_mode="null", fallback=lambda item: item.tolist()))

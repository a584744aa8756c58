"""Pictures of a study: a learning curve, bars, and the differences of all runs from what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from distill.common.pictures import new_figure
from distill.players.intervals import Estimate
from experiments.charts import GRID, in_percent
from experiments.study.results import SHOWN, Line, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, RED, BLUE = "#222222", "#d62728", "#2b5fa8"
COLOURS = {"optimal": RED, "outcome": BLUE}


def learning_curve(path: Path, results: Sequence[Result], lines: Sequence[Line]) -> None:
    """Shares over games, which are each result's fact `games`; a dotted line for every player."""
    results = sorted(results, key=lambda result: result.facts["games"])
    games = [result.facts["games"] for result in results]
    figure, axes = new_figure(1, 2, 10, 4.4)
    for axis, metric in zip(axes, SHOWN, strict=True):
        found = [result.shares[metric] for result in results]
        _with_bars(axis, games, found, COLOURS[metric])
        for number, line in enumerate(lines):
            level = 100 * line.shares[metric].mean
            axis.axhline(level, color=INK, linewidth=1, linestyle=":")
            place, side = ((0.01, "left"), (0.99, "right"))[number % 2]  # so that near levels stay readable
            axis.annotate(
                line.name, (place, level), xycoords=("axes fraction", "data"), fontsize=8, ha=side, va="bottom"
            )
        axis.set_xscale("log")
        axis.set_xticks(games, [f"{number:,}" for number in games])
        axis.minorticks_off()
        axis.set(xlabel="games", ylabel=f"{metric}, %")
        axis.grid(color=GRID)
    figure.suptitle("More games (bars: 95 %)")
    figure.savefig(path)


def _with_bars(axis: Axes, places: Sequence[float], found: Sequence[Estimate], colour: str) -> None:
    means, errors = in_percent(found)
    axis.errorbar(places, means, yerr=errors, color=colour, marker="o", markersize=5, capsize=3)


def over_time(path: Path, histories: Mapping[str, pd.DataFrame]) -> None:
    """What each run's history says, over the minutes that it trained."""
    measured = {
        "validation_loss": "validation loss",
        "optimal": "optimal, midgame, %",
        "outcome": "outcome, midgame, %",
        "heldout_optimal": "optimal, heldout, %",
        "heldout_outcome": "outcome, heldout, %",
    }
    figure, axes = new_figure(2, 3, 14, 9)
    axes[-1].set_axis_off()
    for axis, (column, title) in zip(axes, measured.items(), strict=False):
        for name, history in histories.items():
            scale = 1 if column == "validation_loss" else 100
            axis.plot(history["seconds"].cumsum() / 60, scale * history[column], marker=".", label=name)
        axis.set(xlabel="minutes", ylabel=title)
        axis.grid(color=GRID)
    axes[0].legend(fontsize=8)
    figure.suptitle("The first seed of each run, over its own minutes (optimal, outcome: dev halves)")
    figure.savefig(path)


def bars(path: Path, title: str, results: Sequence[Result]) -> None:
    """A bar a run for both shares, from well below the lowest, so that differences can be seen."""
    figure, axes = new_figure(1, 2, 10, 4.4)
    places = np.arange(len(results))
    for axis, metric in zip(axes, SHOWN, strict=True):
        means, errors = in_percent([result.shares[metric] for result in results])
        axis.bar(places, means, yerr=errors, capsize=3, width=0.6, color=COLOURS[metric])
        for place, value, above in zip(places, means, errors[1], strict=True):
            axis.annotate(f"{value:.1f}", (place, value + above), ha="center", va="bottom", fontsize=9)
        lowest, highest = float((means - errors[0]).min()), float((means + errors[1]).max())
        span = max(highest - lowest, 1.0)
        axis.set_ylim(max(0.0, lowest - span), highest + 0.3 * span)  # 100 is no bound: a label stands above the bar
        axis.set_xticks(places, [result.name for result in results], rotation=15, ha="right")
        axis.set_ylabel(f"{metric}, %")
        axis.grid(color=GRID, axis="y")
        axis.set_axisbelow(True)
    figure.suptitle(f"{title} (bars: 95 %; the axis does not start at 0)")
    figure.savefig(path)


def differences(path: Path, results: Sequence[Result]) -> None:
    """Every paired difference with its interval, the best change on top."""
    shown = sorted((result for result in results if result.gaps), key=lambda result: -result.gaps["optimal"].mean)
    figure, axes = new_figure(1, 2, 11, 1.4 + 0.34 * len(shown))
    places = np.arange(len(shown))
    for axis, metric in zip(axes, SHOWN, strict=True):
        means, errors = in_percent([result.gaps[metric] for result in shown])
        axis.axvline(0, color=INK, linewidth=1)
        axis.errorbar(means, places, xerr=errors, fmt="o", markersize=5, capsize=3, color=COLOURS[metric])
        axis.set_yticks(
            places, [f"{result.name} − {result.against}" for result in shown] if metric == "optimal" else []
        )
        axis.set_ylim(len(shown) - 0.5, -0.5)
        axis.set_xlabel(f"{metric}, points")
        axis.grid(color=GRID)
        axis.set_axisbelow(True)
    figure.suptitle("One change at a time, on the same boards (bars: 95 %, paired)")
    figure.savefig(path)

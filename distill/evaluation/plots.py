"""The plot of players' grades by set of boards, and what all plots here have in common."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distill.common import write_atomically
from distill.common.pictures import picture
from distill.evaluation.summary import Summary
from distill.players.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, GRID = "#222222", "#ffffff", "#d9d9d9"
FIRST, SECOND, BOARD = "#d62728", "#f2c12e", "#2b5fa8"


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    axes: list[Axes] = list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())
    return figure, axes


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    write_atomically(path, drawn.getvalue())


def in_percent(found: Sequence[Estimate]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Means, and how far the intervals reach below and above them."""
    low, means, high = 100 * np.array([(each.low, each.mean, each.high) for each in found]).reshape(-1, 3).T
    return means, [means - low, high - means]


@picture
def plot_by_set(path: Path, players: Sequence[Summary], uniform: Mapping[str, Mapping[str, float]]) -> None:
    """Optimal and outcome for every set, one colour a player, bars of 95 %; a tick marks uniform random."""
    from matplotlib import colormaps

    names = list(uniform)
    figure, axes = new_figure(1, 2, 11, 2 + 0.42 * len(names))
    places = np.arange(len(names), dtype=float)
    colours = [colormaps["tab10" if len(players) <= 10 else "tab20"](index) for index in range(len(players))]
    for axis, metric in zip(axes, ("optimal", "outcome"), strict=True):
        expected = [100 * uniform[name][metric] for name in names]
        axis.scatter(expected, places, marker="|", s=220, color=INK, label="uniform random, exactly")
        offsets = np.linspace(-0.3, 0.3, len(players)) if len(players) > 1 else np.zeros(len(players))
        for player, colour, offset in zip(players, colours, offsets, strict=True):
            means, errors = in_percent([player.sets[name][metric] for name in names])
            axis.errorbar(means, places + offset, xerr=errors, fmt="o", markersize=4, color=colour, label=player.name)
        axis.set_yticks(places, names if metric == "optimal" else [""] * len(names))
        axis.invert_yaxis()
        axis.set_xlabel(f"{metric}, %")
        axis.set_xlim(0, 102)
        axis.grid(color=GRID)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    figure.suptitle("Moves by set (bars: 95 %)")
    save_figure(figure, path)

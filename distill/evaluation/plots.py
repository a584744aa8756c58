"""Plots of players' grades: by ply, by set, calibration.

Every function takes what `grading.py` computed and writes one PNG file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.common import write_atomically
from distill.common.pictures import picture
from distill.evaluation.grading import METRICS, Calibration
from distill.evaluation.summary import Summary
from distill.players.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, GRID = "#222222", "#ffffff", "#d9d9d9"
FIRST, SECOND, BOARD = "#d62728", "#f2c12e", "#2b5fa8"

Pictures = dict[str, Callable[[Path], None]]
"""File name → function that draws the plot into a file."""


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    axes: list[Axes] = list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())
    return figure, axes


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG of 256 colours, a third of the size of one with all of them."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    write_atomically(path, small.getvalue())


def in_percent(found: Sequence[Estimate]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Means, and how far the intervals reach below and above them."""
    low, means, high = 100 * np.array([(each.low, each.mean, each.high) for each in found]).reshape(-1, 3).T
    return means, [means - low, high - means]


def _colours(count: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["tab10" if count <= 10 else "tab20"](index) for index in range(count)]


@picture
def plot_by_ply(path: Path, players: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
    """Lines of optimal, outcome and critical over plies, one colour a player, with 95 % bands."""
    figure, axes = new_figure(3, 1, 9, 10)
    for axis, metric in zip(axes, METRICS, strict=True):
        for (name, plies), colour in zip(players.items(), _colours(len(players)), strict=True):
            shown = [ply for ply in plies if plies[ply][metric].units]
            means, (below, above) = in_percent([plies[ply][metric] for ply in shown])
            axis.plot(shown, means, color=colour, label=name, marker="o", markersize=3)
            axis.fill_between(shown, means - below, means + above, color=colour, alpha=0.12, linewidth=0)
        axis.set_ylabel(f"{metric}, %")
        axis.grid(color=GRID)
        axis.set_ylim(None, 101)
        axis.locator_params("x", integer=True)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    axes[0].set_title("Moves by stones on the board (bands: 95 %)")
    axes[-1].set_xlabel("stones on the board")
    save_figure(figure, path)


@picture
def plot_by_set(
    path: Path, players: Mapping[str, Mapping[str, Mapping[str, Estimate]]], uniform: Mapping[str, Mapping[str, float]]
) -> None:
    """Optimal and outcome for every set, one colour a player, bars of 95 %; a tick marks uniform random."""
    names = list(uniform)
    figure, axes = new_figure(1, 2, 11, 2 + 0.42 * len(names))
    places = np.arange(len(names), dtype=float)
    for axis, metric in zip(axes, ("optimal", "outcome"), strict=True):
        expected = [100 * uniform[name][metric] for name in names]
        axis.scatter(expected, places, marker="|", s=220, color=INK, label="uniform random, exactly")
        offsets = np.linspace(-0.3, 0.3, len(players)) if len(players) > 1 else [0.0]
        for (player, sets), colour, offset in zip(players.items(), _colours(len(players)), offsets, strict=True):
            means, errors = in_percent([sets[name][metric] for name in names])
            axis.errorbar(means, places + offset, xerr=errors, fmt="o", markersize=4, color=colour, label=player)
        axis.set_yticks(places, names if metric == "optimal" else [""] * len(names))
        axis.invert_yaxis()
        axis.set_xlabel(f"{metric}, %")
        axis.set_xlim(0, 102)
        axis.grid(color=GRID)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    figure.suptitle("Moves by set (bars: 95 %)")
    save_figure(figure, path)


@picture
def plot_calibration(path: Path, policy: Mapping[str, Calibration], value: Mapping[str, Calibration]) -> None:
    """Probability of the move against how often it is optimal, and value against the outcome of perfect play."""
    figure, axes = new_figure(1, 2, 10, 4.6)
    names = list(dict.fromkeys([*policy, *value]))
    colours = dict(zip(names, _colours(len(names)), strict=True))
    for axis, found, low, labels in (
        (axes[0], policy, 0, ("probability of the move played", "share optimal")),
        (axes[1], value, -1, ("value", "mean outcome under perfect play")),
    ):
        axis.plot([low, 1], [low, 1], color=INK, linewidth=0.8, linestyle=":")
        for name, bins in found.items():
            label = f"{name}, error {bins.error:.3f}"
            axis.plot(bins.predicted, bins.observed, marker="o", markersize=4, color=colours[name], label=label)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
        axis.grid(color=GRID)
        if found:
            axis.legend(fontsize=8)
    figure.suptitle("Calibration")
    save_figure(figure, path)


def of_players(summaries: Sequence[Summary], uniform: Mapping[str, Mapping[str, float]]) -> Pictures:
    """The plots of `report.of_players`."""
    policies = {one.name: one.policy_calibration for one in summaries if one.policy_calibration}
    values = {one.name: one.value_calibration for one in summaries if one.value_calibration}
    sets, plies = {one.name: one.sets for one in summaries}, {one.name: one.plies for one in summaries}
    return {
        "by_set.png": lambda file: plot_by_set(file, sets, uniform),
        "by_ply.png": lambda file: plot_by_ply(file, plies),
        "calibration.png": lambda file: plot_calibration(file, policies, values),
    }

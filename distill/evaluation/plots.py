"""Pictures of a verdict: accuracy by ply and by set, confusion by column, calibration, worst mistakes.

Every function takes what `grading.py` computed and writes one PNG file. Columns are shown as 1 to 7.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.common import write_atomically
from distill.common.pictures import picture
from distill.datasets.benchmark import FULL_COLUMN, GradedBoards
from distill.evaluation.grading import Calibration, Graded, confusion, worst
from distill.evaluation.verdict import Verdict
from distill.game.encoding import boards as to_cells
from distill.game.rules import CELLS
from distill.games.census import Census
from distill.players.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, GRID = "#222222", "#ffffff", "#d9d9d9"
FIRST, SECOND, BOARD = "#d62728", "#f2c12e", "#2b5fa8"
COLUMN_NAMES = [str(number) for number in range(1, 8)]

Pictures = dict[str, Callable[[Path], None]]
"""By its file's name, what draws a picture into a file."""


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
    low, means, high = 100 * np.array([(each.low, each.mean, each.high) for each in found]).T
    return means, [means - low, high - means]


def _colours(count: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["tab10" if count <= 10 else "tab20"](index) for index in range(count)]


@picture
def plot_by_ply(path: Path, players: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
    """Lines of optimal, outcome and critical over plies, one colour a player, with 95 % bands."""
    metrics = ("optimal", "outcome", "critical")
    figure, axes = new_figure(3, 1, 9, 10)
    for axis, metric in zip(axes, metrics, strict=True):
        for (name, plies), colour in zip(players.items(), _colours(len(players)), strict=True):
            shown = [ply for ply in plies if plies[ply][metric].units]
            estimates = [plies[ply][metric] for ply in shown]
            axis.plot(shown, [100 * e.mean for e in estimates], color=colour, label=name, marker="o", markersize=3)
            low, high = [100 * e.low for e in estimates], [100 * e.high for e in estimates]
            axis.fill_between(shown, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.set_ylabel(f"{metric}, %")
        axis.grid(color=GRID)
        axis.set_ylim(None, 101)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    axes[0].set_title("Moves by stones on the board (bands: 95 %)")
    axes[-1].set_xlabel("stones on the board")
    for axis in axes:
        axis.locator_params("x", integer=True)
    save_figure(figure, path)


@picture
def plot_by_set(
    path: Path, players: Mapping[str, Mapping[str, Mapping[str, Estimate]]], uniform: Mapping[str, Mapping[str, float]]
) -> None:
    """Exact and class for every set, one colour a player, bars of 95 %; a tick marks uniform random."""
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
def plot_confusion(path: Path, boards: GradedBoards, players: Sequence[Graded]) -> None:
    """For each player, where the one best column is (row) and which was played, in percent of the row."""
    across = min(3, len(players))
    down = -(-len(players) // across)
    figure, axes = new_figure(down, across, 4.2 * across, 4.3 * down)
    for axis, graded in zip(axes, players, strict=False):
        table = confusion(boards, graded)
        percent = 100 * table / np.maximum(table.sum(1, keepdims=True), 1)
        axis.imshow(percent, cmap="Blues", vmin=0, vmax=100)
        for (row, column), value in np.ndenumerate(percent):
            axis.text(
                column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=PAPER if value > 55 else INK
            )
        axis.set_xticks(range(7), COLUMN_NAMES)
        axis.set_yticks(range(7), COLUMN_NAMES)
        axis.set_xlabel("column played")
        axis.set_ylabel("the one best column")
        axis.set_title(graded.name, fontsize=10)
    for axis in axes[len(players) :]:
        axis.set_axis_off()
    figure.suptitle("Columns confused, % of each row")
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


@picture
def plot_mistakes(path: Path, boards: GradedBoards, graded: Graded) -> None:
    """The most costly moves of a player: red began, a ring marks the move played, a cross the best ones."""
    rows = worst(boards, graded)
    figure, axes = new_figure(2, 3, 10, 7.6)
    for axis, row in zip(axes, rows, strict=False):
        scores, move = boards.scores[row], int(graded.moves[0, row])
        best = scores == scores.max()
        _draw_board(axis, boards.current[row], boards.mask[row], scores, move, best)
        side = "yellow" if boards.ply[row] % 2 else "red"
        good = ", ".join(str(column + 1) for column in np.flatnonzero(best))
        axis.set_title(
            f"{boards.set[row]}: {side} to move\nplayed {move + 1} ({_outcome(scores[move])}), "
            f"best {good} ({_outcome(scores.max())})",
            fontsize=9,
        )
    for axis in axes[len(rows) :]:
        axis.set_axis_off()
    figure.suptitle(f"{graded.name}: worst mistakes" if rows else f"{graded.name}: no mistake on these sets")
    save_figure(figure, path)


def _outcome(score: int) -> str:
    return f"{('loses', 'draws', 'wins')[int(np.sign(score)) + 1]}, {int(score):+d}" if score else "draws"


def _draw_board(axis: Axes, current: Any, mask: Any, scores: NDArray[np.int8], move: int, best: NDArray[Any]) -> None:
    """A board seen from the front, the exact score of each column under it."""
    from matplotlib.patches import Circle, Rectangle

    cells = to_cells([current], [mask])[0]
    own, opponent = (FIRST, SECOND) if (cells != 0).sum() % 2 == 0 else (SECOND, FIRST)
    axis.add_patch(Rectangle((-0.5, -0.5), 7, 6, color=BOARD))
    for (row, column), cell in np.ndenumerate(cells):
        colour = {0: PAPER, 1: own, -1: opponent}[int(cell)]
        axis.add_patch(Circle((column, 5 - row), 0.42, facecolor=colour, edgecolor="none"))
    for column in range(7):
        height = int((cells[:, column] != 0).sum())
        if column == move:
            axis.add_patch(Circle((column, height), 0.36, fill=False, edgecolor=INK, linewidth=2.5))
        if best[column]:
            axis.plot(column, height, marker="x", markersize=9, markeredgewidth=2.5, color="#1a7f37")
        text = "full" if scores[column] == FULL_COLUMN else f"{scores[column]:+d}" if scores[column] else "0"
        axis.text(column, -1.0, text, ha="center", va="center", fontsize=8, fontweight="bold" if best[column] else None)
    axis.set_xlim(-0.6, 6.6)
    axis.set_ylim(-1.4, 5.6)
    axis.set_aspect("equal")
    axis.set_axis_off()


def of_players(
    boards: GradedBoards,
    everybody: Sequence[Graded],
    verdicts: Sequence[Verdict],
    uniform: Mapping[str, Mapping[str, float]],
) -> Pictures:
    """The pictures of `report.of_players`, drawn once asked for."""
    policies = {one.name: one.policy_calibration for one in verdicts if one.policy_calibration}
    values = {one.name: one.value_calibration for one in verdicts if one.value_calibration}
    sets, plies = {one.name: one.sets for one in verdicts}, {one.name: one.plies for one in verdicts}
    return {
        "by_set.png": lambda file: plot_by_set(file, sets, uniform),
        "by_ply.png": lambda file: plot_by_ply(file, plies),
        "confusion.png": lambda file: plot_confusion(file, boards, everybody),
        "calibration.png": lambda file: plot_calibration(file, policies, values),
    } | {
        f"mistakes_{number}.png": partial(plot_mistakes, boards=boards, graded=graded)
        for number, graded in enumerate(everybody, start=1)
    }


@picture
def plot_rows(path: Path, census: Census) -> None:
    """Of a data card: rows and unlike boards, the share of rows on a repeated board, and games by length."""
    figure, axes = new_figure(3, 1, 9, 9)
    plies = list(census.plies)
    rows = np.array([census.plies[ply].rows for ply in plies])
    axes[0].bar(plies, rows, color=GRID, edgecolor=INK, linewidth=0.5, label="rows")
    boards = [census.plies[ply].boards for ply in plies]
    axes[0].plot(plies, boards, color=BOARD, marker="o", markersize=3, label="unlike boards, up to mirror")
    axes[0].set_ylabel("rows, boards")
    axes[0].legend(fontsize=8)
    repeated = np.array([census.plies[ply].repeated for ply in plies])
    axes[1].plot(plies, 100 * repeated / rows, color=FIRST, marker="o", markersize=3)
    axes[1].set_ylabel("rows on a repeated board, %")
    axes[1].set_ylim(0, 101)
    axes[1].set_xlabel("stones on the board")
    axes[2].bar(list(census.lengths), list(census.lengths.values()), color=BOARD)
    axes[2].set_ylabel("games")
    axes[2].set_xlabel("stones on the board at the end")
    for axis in axes:
        axis.set_xlim(-0.7, CELLS + 0.7)
        axis.locator_params("x", integer=True)
        axis.grid(color=GRID)
        axis.set_axisbelow(True)
    save_figure(figure, path)

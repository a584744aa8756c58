"""Draws the pictures of the pages into docs/figures/: `python docs/figures.py`, or with names of pictures.

Visits, scores, planes, policies and numbers of weights in them are computed: by searches of a position, from the
shipped boards and grades, and from the networks. The pictures of results are drawn from recorded evaluations by the
code that drew them first. Those of explanations are as wide as a phone, so their text is read there, too. All have a
background of their own, so they are read in light and in dark mode. Run it from the top of a checkout. `film.py` makes
the pictures of the page itself, and `pipelines/time_to_strength.py` those of a recorded run.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from pydantic import TypeAdapter

import distill
from distill import networks
from distill.common import run_folder
from distill.common.pictures import new_figure
from distill.datasets import benchmark
from distill.evaluation.grading import BySet
from distill.game import encoding, rules
from distill.mcts import uct
from distill.mcts.settings import UctSettings
from experiments.charts import GRID, in_percent
from experiments.habits import report as drawn
from experiments.habits.measure import Habits

FOLDER = Path(__file__).with_name("figures")
WIDTH = 5.4
"""In inches. A phone shows this at two thirds of its size, so no text is smaller than 10.5 points."""
OWN, OTHER, EMPTY, BLUE, GREEN, GREY, INK = "#e0a500", "#c23b3b", "#dfe5ee", "#33629b", "#4f8a4f", "#8a8f98", "#1d2530"
POSITION = rules.from_moves("33443")
MANY_STONES = "3444555522617"
"""The first position of the page's tour (`distill/web/page/tour.json`)."""


# Explanations ---------------------------------------------------------------------------------------------------------


def simulation() -> None:
    """The four steps of one simulation on a small tree."""
    places = {"": (3, 3), "a": (1.6, 2), "b": (3, 2), "c": (4.4, 2), "ba": (2.4, 1), "bb": (3.6, 1), "baa": (2.4, 0)}
    titles = ("1  select", "2  expand", "3  evaluate: a rollout", "4  backup")
    figure, grid = plt.subplots(2, 2, figsize=(WIDTH, 5.4))
    for step, (axes, title) in enumerate(zip(grid.flat, titles, strict=True)):
        axes.set(xlim=(0.9, 5.3), ylim=(-1.7, 3.4), aspect="equal")
        axes.set_title(title, loc="left", fontweight="bold")
        axes.axis("off")
        shown = [name for name in places if step or name != "baa"]
        path = ["", "b", "ba"] + (["baa"] if step else [])
        for name in shown[1:]:
            (x, y), (above_x, above_y) = places[name], places[name[:-1]]
            on_path = name in path
            axes.plot(
                [above_x, x], [above_y, y], color=BLUE if on_path else GREY, linewidth=3 if on_path else 1, zorder=1
            )
        for name in shown:
            color = GREEN if name == "baa" else BLUE if name in path else EMPTY
            axes.add_patch(plt.Circle(places[name], 0.28, color=color, zorder=2))
        x, y = places["baa"]
        if step == 2:
            axes.plot(
                x + 0.13 * np.sin(np.linspace(0, 12, 60)), np.linspace(y - 0.25, -1.4, 60), color=GREEN, linewidth=1.5
            )
            axes.text(x + 0.3, -1.5, "the mover loses: −1", va="center", color=INK)
        if step == 3:
            for name, sign in zip(reversed(path), ("−1", "+1", "−1", "+1"), strict=True):
                axes.text(places[name][0] - 0.35, places[name][1], sign, ha="right", va="center", color=INK)
    save(figure, "simulation")


def teacher() -> None:
    """Three searches of one position, their votes, the label."""
    settings = UctSettings(simulations=10_000, votes=1)
    results = [uct.search([POSITION], settings, seeds=seed)[0] for seed in (1, 2, 3)]
    votes = [int(result.votes[0]) for result in results]
    label = max(votes, key=lambda vote: (votes.count(vote), sum(result.visits[vote] for result in results)))
    figure, grid = plt.subplots(2, 2, figsize=(WIDTH, 4.4))
    draw_board(grid[0, 0], POSITION, f"label: column {label + 1}")
    for number, (axes, result) in enumerate(zip(grid.flat[1:], results, strict=True), start=1):
        bars(axes, result.visits, f"search {number} votes for {result.votes[0] + 1}")
        axes.set(ylim=(0, 10_000), yticks=(0, 5000, 10_000))
    save(figure, "teacher")


def targets() -> None:
    """Three targets of one row, and the policies of two networks."""
    [result] = uct.search([POSITION], UctSettings(simulations=10_000, votes=3), seeds=1)
    visits = np.asarray(result.visits) / np.sum(result.visits)
    vote = np.eye(7)[result.label]
    policies = {name: distill.load_pretrained(name)(distill.board(POSITION))["policy"] for name in ("cnn", "pillar")}
    figure, grid = plt.subplots(3, 2, figsize=(WIDTH, 5.6))
    draw_board(grid[0, 0], POSITION, "yellow to move")
    for axes, (name, share) in zip(
        grid.flat[1:4], {"visits": visits, "vote": vote, "blend": (visits + vote) / 2}.items(), strict=True
    ):
        bars(axes, share, f"target: {name}")
    for axes, (name, share) in zip(grid.flat[4:], policies.items(), strict=True):
        bars(axes, share, f"policy of {name}", GREEN)
    for axes in grid.flat[1:]:
        axes.set_ylim(0, 1)
    save(figure, "targets")


def planes() -> None:
    """The nine planes of `pillar` for one position, as its layer computes them."""
    from distill.networks import pillar

    position = rules.from_moves(MANY_STONES)
    board = distill.board(position)[None]
    values = np.asarray(pillar.Lines()(np.asarray(encoding.planes(board), np.float32)))[0]
    titles = (
        "own stones", "opponent's stones", "next stones", "rows that I fill", "I move second",
        "I complete four", "they complete four", "my open lines", "their open lines",
    )  # fmt: skip
    figure, grid = plt.subplots(3, 3, figsize=(WIDTH, 5.4))
    for plane, (axes, title) in enumerate(zip(grid.flat, titles, strict=True)):
        axes.imshow(values[:, :, plane], cmap="Blues", vmin=0, vmax=1.5)
        rows, columns = np.nonzero(board[0])
        colors = [OWN if board[0, row, column] > 0 else OTHER for row, column in zip(rows, columns, strict=True)]
        axes.scatter(columns, rows, s=30, c=colors)
        axes.vlines(np.arange(0.5, 6), -0.5, 5.5, color=EMPTY, linewidth=0.8, zorder=1)
        axes.hlines(np.arange(0.5, 5), -0.5, 6.5, color=EMPTY, linewidth=0.8, zorder=1)
        axes.set(xticks=[], yticks=[])
        axes.set_title(title, fontsize=11)
    save(figure, "planes")


def distillation() -> None:
    """Three kinds of players on the set `heldout`: searches, networks, and searches guided by a network."""
    with Path(__file__).with_name("benchmark.csv").open(encoding="utf-8") as file:
        grades = {row["player"]: row for row in csv.DictReader(file)}
    names = (
        "uct:100", "uct:1000", "uct:10000", "transformer", "cnn", "cnn-strong", "pillar", "pillar-large",
        "pillar@puct:50", "pillar@puct:200", "pillar@puct:800",
    )  # fmt: skip
    colors = [GREY if name.startswith("uct") else GREEN if "@" in name else BLUE for name in names]
    figure, axes = plt.subplots(figsize=(WIDTH, 4.4))
    for name, color in zip(names, colors, strict=True):
        mean, low, high = (100 * float(grades[name][column]) for column in ("optimal", "optimal_low", "optimal_high"))
        axes.plot([low, high], [name, name], color=color, linewidth=2)
        axes.plot(mean, name, "o", color=color, markersize=8)
        axes.text(high + 0.8, name, f"{mean:.1f}", va="center")
    axes.set(xlim=(55, 97), xlabel="best moves on heldout, %")
    axes.grid(axis="y", color=EMPTY)
    axes.set_axisbelow(True)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (GREY, BLUE, GREEN)]
    labels = ("search without a network", "network without search", "search guided by a network")
    figure.legend(handles, labels, loc="upper center", fontsize=10.5, frameon=False, ncols=2)
    save(figure, "distillation", top=0.9)


def selfplay() -> None:
    """The loop as four boxes."""
    boxes = {
        (0.22, 0.78): "play\na search guided\nby the network",
        (0.78, 0.78): "rows\nposition, visits,\nvalue, result",
        (0.78, 0.22): "train\non the latest rows,\nmerged, mirrored",
        (0.22, 0.22): "choose\nan arena, or the\nEMA of the weights",
    }
    figure, axes = plt.subplots(figsize=(WIDTH, 3.4))
    axes.axis("off")
    for (x, y), text in boxes.items():
        style = {"boxstyle": "round,pad=0.6", "facecolor": EMPTY, "edgecolor": BLUE}
        axes.text(x, y, text, ha="center", va="center", fontsize=12.5, bbox=style)
    arrows = [
        ((0.42, 0.78), (0.58, 0.78)), ((0.78, 0.6), (0.78, 0.4)),
        ((0.58, 0.22), (0.42, 0.22)), ((0.22, 0.4), (0.22, 0.6)),
    ]  # fmt: skip
    for start, end in arrows:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": BLUE, "linewidth": 2})
    axes.text(0.5, 0.5, "one iteration", ha="center", va="center", fontsize=12.5, color=BLUE)
    save(figure, "selfplay")


def evaluation() -> None:
    """One graded board: the exact score of each column, and a network's policy."""
    boards = benchmark.read(half="dev", sets=["midgame"])
    scores = np.asarray(boards.scores)
    ranks = (scores > 0).sum(1) * 10 + (scores < 0).sum(1)  # a board where few columns win and many lose
    chosen = int(np.argmax((ranks == 25) & (scores > -128).all(1)))
    position = rules.Position(int(boards.current[chosen]), int(boards.mask[chosen]))
    is_best = scores[chosen] == scores[chosen].max()
    colors = [GREEN if best else OTHER for best in is_best]
    policy = distill.load_pretrained("pillar")(distill.board(position))["policy"]
    figure, grid = plt.subplot_mosaic("AB;CD", figsize=(WIDTH, 4.6))
    draw_board(grid["A"], position, "yellow to move")
    bars(grid["B"], scores[chosen], "exact score", colors)
    grid["B"].axhline(0, color=INK, linewidth=0.8)
    bars(grid["C"], policy, "policy of pillar", colors)
    grid["D"].axis("off")
    grid["D"].text(0.05, 0.7, "■ best move", color=GREEN, fontsize=12.5)
    grid["D"].text(0.05, 0.45, "■ gives the win away", color=OTHER, fontsize=12.5)
    save(figure, "evaluation")


# Architectures --------------------------------------------------------------------------------------------------------

Box = tuple[str, tuple[str, ...], str, str]
"""A part of a network: what it does, with {} for its weights; how the names of its layers begin; the shape of its
output; its colour."""

STACKS: dict[str, Sequence[Box]] = {
    "cnn": (
        ("2 planes: own and opponent's stones", (), "6 × 7 × 2", EMPTY),
        ("4 × separable convolution 5 × 5,\nbatch norm, ReLU: {}", ("conv", "norm"), "6 × 7 × 192", BLUE),
        ("mean over the 42 cells", (), "192", OTHER),
        ("dense, ReLU, dropout: {}", ("hidden",), "320", BLUE),
        ("dense: {}", ("logits",), "7 logits", GREEN),
    ),
    "transformer": (
        ("42 tokens: empty, own or opponent's", (), "42", EMPTY),
        ("embedding of cell and place, CLS first:\n{}", ("embedding",), "43 × 64", BLUE),
        ("4 × attention of 4 heads, then\nfeed-forward of 128: {}", ("layer",), "43 × 64", BLUE),
        ("CLS alone", (), "64", OTHER),
        ("dense: {}", ("logits",), "7 logits", GREEN),
    ),
    "pillar": (
        ("9 planes: stones and computed facts", (), "6 × 7 × 9", EMPTY),
        ("mirrored convolution 3 × 3, ReLU:\n{}", ("stem",), "6 × 7 × 64", BLUE),
        ("3 residual blocks of two such\nconvolutions: {}", ("block",), "6 × 7 × 64", BLUE),
        ("convolution 6 × 1: {}", ("columns",), "7 columns × 64", BLUE),
        ("columns side by side, also mirrored:\ndense, ReLU, {}", ("hidden",), "2 × 128", OTHER),
        ("dense, the second turned back, sum:\n{}", ("read_out",), "7 logits", GREEN),
    ),
}


def stack(arch: str) -> None:
    """Parts of a network from input to output, from top to bottom."""
    core, boxes = networks.build(arch), STACKS[arch]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.85 * len(boxes)))
    axes.set(xlim=(0, 10), ylim=(-len(boxes) + 0.35, 0.65))
    axes.axis("off")
    for place, (text, layers, shape, color) in enumerate(boxes):
        weights = sum(layer.count_params() for layer in core.layers if layers and layer.name.startswith(layers))
        inner = "white" if color != EMPTY else INK
        axes.add_patch(plt.Rectangle((0.1, -place - 0.33), 6.9, 0.68, color=color))
        axes.text(3.55, -place, text.format(f"{weights:,} weights"), ha="center", va="center", color=inner, fontsize=11)
        axes.text(7.2, -place, shape, va="center", color=INK, fontsize=11.5)
        if place:
            arrow = {"arrowstyle": "-|>", "color": GREY}
            axes.annotate("", (3.55, -place + 0.35), (3.55, -place + 0.68), arrowprops=arrow)
    save(figure, arch)


# Results --------------------------------------------------------------------------------------------------------------


def by_set() -> None:
    """The grades of all networks that ship on every set, from their recorded evaluations."""
    grades: dict[str, Any] = {}
    for folder in sorted(Path("models/reference").iterdir()):
        for name, record in run_folder.read(folder / "evaluation").result["players"].items():
            grades[name.rpartition("/")[2]] = record
    names = ("pillar-large", "pillar", "cnn-strong", "cnn", "transformer-strong", "transformer", "uct:1000")
    by_set_of = {name: TypeAdapter(BySet).validate_python(grades[name]["sets"]) for name in names}
    sets = [*by_set_of[names[0]]]
    figure, axes = new_figure(1, 2, 11, 2 + 0.42 * len(sets))
    for axis, metric in zip(axes, ("optimal", "outcome"), strict=True):
        for name, offset in zip(names, np.linspace(-0.3, 0.3, len(names)), strict=True):
            means, errors = in_percent([by_set_of[name][one][metric] for one in sets])
            axis.errorbar(means, np.arange(len(sets)) + offset, xerr=errors, fmt="o", label=name)
        axis.set_yticks(range(len(sets)), sets if metric == "optimal" else [""] * len(sets))
        axis.invert_yaxis()
        axis.set(xlabel=f"{metric}, %", xlim=(0, 102))
        axis.grid(color=GRID)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    figure.suptitle("Moves by set (bars: 95 %)")
    figure.savefig(FOLDER / "by_set.png")


def habits() -> None:
    """How networks open, and how well they play by the number of stones, as measured by experiments.habits."""
    measured = TypeAdapter(dict[str, Habits]).validate_json(Path("experiments/habits/measured.json").read_bytes())
    drawn.openings(FOLDER / "habits_openings.png", measured)
    title = "outcome kept where moves differ in it, by stones, %"
    drawn.dots(FOLDER / "habits_stones.png", title, {name: one.stones for name, one in measured.items()})


def from_scratch() -> None:
    """Grades during self-play without a teacher, and those of a search of 1,000 simulations."""
    with Path("dev/selfplay-from-scratch.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6))
    for metric, search, color in (("outcome", 93.2, BLUE), ("optimal", 74.4, GREEN)):
        axes.plot([100 * float(row[metric]) for row in rows], color=color, label=metric)
        axes.axhline(search, color=color, linestyle="--", linewidth=1)
    axes.set(xlabel="iterations of 400 games", ylabel="% of the boards (dashed: uct:1000)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    save(figure, "from_scratch")


# Parts ----------------------------------------------------------------------------------------------------------------


def draw_board(axes: Any, position: rules.Position, title: str) -> None:
    """The board with the stones of the side to move in yellow."""
    board = distill.board(position)
    for row in range(6):
        for column in range(7):
            color = {1: OWN, -1: OTHER, 0: EMPTY}[int(board[row, column])]
            axes.add_patch(plt.Circle((column + 1, 5 - row), 0.42, color=color))
    axes.set(xlim=(0.4, 7.6), ylim=(-0.6, 5.6), aspect="equal", xticks=range(1, 8), yticks=[], title=title)
    axes.spines[:].set_visible(False)


def bars(axes: Any, heights: Any, title: str, color: Any = BLUE) -> None:
    """One bar a column of the board."""
    axes.bar(range(1, 8), heights, color=color)
    axes.set(xticks=range(1, 8), title=title)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Any, name: str, top: float = 1.0) -> None:
    figure.tight_layout(rect=(0, 0, 1, top))
    figure.savefig(FOLDER / f"{name}.svg", facecolor="white", metadata={"Date": None})
    plt.close(figure)


EXPLANATIONS = (simulation, teacher, targets, planes, distillation, selfplay, evaluation)
PICTURES: dict[str, Callable[[], None]] = {
    draw.__name__: draw for draw in (*EXPLANATIONS, by_set, habits, from_scratch)
}
PICTURES |= {arch: partial(stack, arch) for arch in STACKS}

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "distill", "font.size": 12, "axes.titlesize": 12.5}
"""Of all pictures but those that the package and the experiments draw."""

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        with plt.rc_context({} if name in ("by_set", "habits") else STYLE):
            PICTURES[name]()

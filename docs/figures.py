"""Draws the pictures of the explanation pages into docs/figures/: `python docs/figures.py`.

Visits, scores and policies in them are computed: a search of the position, the shipped boards, the shipped networks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import distill
from distill.datasets import benchmark
from distill.game import rules
from distill.mcts import uct
from distill.mcts.settings import UctSettings

FOLDER = Path(__file__).with_name("figures")
OWN, OTHER, EMPTY, BLUE = "#e0a500", "#c23b3b", "#e8ecf2", "#33629b"
POSITION = rules.from_moves("44432")


def draw_board(axes: Any, position: rules.Position, title: str) -> None:
    """The board with the stones of the side to move in yellow."""
    board = distill.board(position)
    for row in range(6):
        for column in range(7):
            color = {1: OWN, -1: OTHER, 0: EMPTY}[int(board[row, column])]
            axes.add_patch(plt.Circle((column + 1, 5 - row), 0.42, color=color))
    axes.set(xlim=(0.4, 7.6), ylim=(-0.6, 5.6), aspect="equal", xticks=range(1, 8), yticks=[], title=title)


def bars(axes: Any, heights: Any, title: str, color: str = BLUE) -> None:
    """One bar a column of the board."""
    axes.bar(range(1, 8), heights, color=color)
    axes.set(xticks=range(1, 8), title=title)
    axes.spines[["top", "right"]].set_visible(False)


def teacher() -> None:
    """Three searches of one position, their votes, the label."""
    settings = UctSettings(simulations=10_000, votes=1)
    results = [uct.search([POSITION], settings, seeds=seed)[0] for seed in (1, 2, 3)]
    figure, axes = plt.subplots(1, 5, figsize=(12, 2.6), width_ratios=[1.2, 1, 1, 1, 0.8])
    draw_board(axes[0], POSITION, "position; yellow to move")
    for number, (place, result) in enumerate(zip(axes[1:4], results, strict=True), start=1):
        bars(place, result.visits, f"search {number}: visits\nvote: column {result.votes[0] + 1}")
    votes = [int(result.votes[0]) for result in results]
    label = max(votes, key=lambda vote: (votes.count(vote), sum(result.visits[vote] for result in results)))
    axes[4].axis("off")
    text = f"votes\n{', '.join(str(vote + 1) for vote in votes)}\n\nlabel\ncolumn {label + 1}"
    axes[4].text(0.5, 0.5, text, ha="center", va="center", fontsize=13)
    save(figure, "teacher")


def targets() -> None:
    """Three targets of one row, and the policies of two networks."""
    [result] = uct.search([POSITION], UctSettings(simulations=10_000, votes=3), seeds=1)
    visits = np.asarray(result.visits) / np.sum(result.visits)
    vote = np.eye(7)[np.argmax(visits)]
    board = distill.board(POSITION)
    figure, axes = plt.subplots(1, 6, figsize=(13, 2.4), sharey=False, width_ratios=[1.3, 1, 1, 1, 1, 1])
    draw_board(axes[0], POSITION, "position; yellow to move")
    shares = {"visits": visits, "vote": vote, "blend": (visits + vote) / 2}
    answers = {name: distill.load_pretrained(name)(board)["policy"] for name in ("cnn", "pillar")}
    for place, (name, share) in zip(axes[1:4], shares.items(), strict=True):
        bars(place, share, f"target: {name}")
    for place, (name, share) in zip(axes[4:], answers.items(), strict=True):
        bars(place, share, f"policy of {name}", "#5b8c5a")
    for place in axes[1:]:
        place.set_ylim(0, 1)
    save(figure, "targets")


def evaluation() -> None:
    """One graded board: the exact score of each column, and a network's policy."""
    boards = benchmark.read(half="dev", sets=["midgame"])
    scores = np.asarray(boards.scores)
    ranks = (scores > 0).sum(1) * 10 + (scores < 0).sum(1)  # a board where few columns win and many lose
    chosen = int(np.argmax((ranks == 25) & (scores > -128).all(1)))
    position = rules.Position(int(boards.current[chosen]), int(boards.mask[chosen]))
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), width_ratios=[1.1, 1, 1])
    draw_board(axes[0], position, "graded board; yellow to move")
    bars(axes[1], scores[chosen], "exact score of each column")
    axes[1].axhline(0, color="black", linewidth=0.8)
    best = np.flatnonzero(scores[chosen] == scores[chosen].max())
    policy = distill.load_pretrained("pillar")(distill.board(position))["policy"]
    named = " or ".join(str(column + 1) for column in best)
    bars(axes[2], policy, f"policy of pillar; optimal: column {named}", "#5b8c5a")
    save(figure, "evaluation")


def selfplay() -> None:
    """The loop as four boxes."""
    boxes = {
        (0.17, 0.72): "play\nPUCT search guided\nby the network",
        (0.83, 0.72): "rows\nposition, visits,\nvalue, result",
        (0.83, 0.2): "train\non the latest rows,\nmerged and mirrored",
        (0.17, 0.2): "choose\narena with a gate,\nor EMA of the weights",
    }
    figure, axes = plt.subplots(figsize=(7, 3.2))
    axes.axis("off")
    for (x, y), text in boxes.items():
        style = {"boxstyle": "round,pad=0.6", "facecolor": EMPTY, "edgecolor": BLUE}
        axes.text(x, y, text, ha="center", va="center", fontsize=11, bbox=style)
    arrows = [
        ((0.33, 0.72), (0.68, 0.72)), ((0.83, 0.54), (0.83, 0.38)),
        ((0.67, 0.2), (0.34, 0.2)), ((0.17, 0.38), (0.17, 0.54)),
    ]  # fmt: skip
    for start, end in arrows:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": BLUE, "linewidth": 2})
    axes.text(0.5, 0.46, "one iteration", ha="center", fontsize=11, color=BLUE)
    save(figure, "selfplay")


def save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(FOLDER / f"{name}.svg", facecolor="white", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "distill", "font.size": 9, "font.family": "sans-serif"}
    FOLDER.mkdir(exist_ok=True)
    for draw in (teacher, targets, selfplay, evaluation):
        draw()

"""The tables and the pictures, with one column or one colour for each player."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from distill.common.pictures import new_figure
from distill.common.tables import table
from distill.evaluation.report import percent
from distill.game.rules import COLUMNS
from experiments.charts import GRID, in_percent
from experiments.habits.article import STATEMENTS, signed
from experiments.habits.measure import PLACES, Habits, Rate


def tables(habits: Mapping[str, Habits]) -> str:
    """All tables, with one column a player."""
    players = list(habits)

    def rates(title: str, of: Callable[[Habits], Mapping[str, Rate]]) -> str:
        measured = {name: of(one) for name, one in habits.items()}
        rows = [
            [
                name,
                *(percent(measured[player][name].rate) for player in players),
                f"{100 * np.mean([measured[player][name].chance for player in players]):.1f}",
            ]
            for name in measured[players[0]]
        ]
        return table([f"{title}, %", *players, "chance"], rows)

    def policy(shares: Sequence[float]) -> str:
        return " ".join(f"{100 * one:.0f}" for one in shares)

    openings = [
        [name, *(policy(one.openings[line]) for one in habits.values())]
        for name, line in {"empty board": "", **{f"after a stone in {line}": line for line in "1234567"}}.items()
    ]
    statements = [
        [f"{who}: {what}", *(": ".join(judged(one)) for one in habits.values()), rule]
        for (who, what), (rule, judged) in STATEMENTS.items()
    ]
    return "\n\n".join(
        [
            table(["policy on columns 1 to 7, %", *players], openings),
            rates("lines completed and blocked", lambda one: one.threes),
            table(["", *players], [["left less right", *(signed(one.left_less_right) for one in habits.values())]]),
            rates("outcome kept", lambda one: one.traps),
            rates("outcome kept, by stones", lambda one: one.stones),
            rates("moves in games", lambda one: one.games),
            table(["the article's statements", *players, "holds here if"], statements),
        ]
    )


def draw(folder: Path, habits: Mapping[str, Habits]) -> None:
    """The four pictures."""
    openings(folder / "habits-openings.png", habits)
    places = [f"{task} {place}" for task in ("win", "block") for place in PLACES]
    threes = {name: {place: one.threes[place] for place in places} for name, one in habits.items()}
    dots(folder / "habits-threes.png", "horizontal threes completed (win) and blocked, %", threes)
    dots(
        folder / "habits-stones.png",
        "outcome kept where moves differ in it, by stones, %",
        {name: one.stones for name, one in habits.items()},
    )
    dots(folder / "habits-games.png", "moves in games, %", {name: one.games for name, one in habits.items()})


def openings(path: Path, habits: Mapping[str, Habits]) -> None:
    """The policies as shades: a row for the empty board, each first stone, and each reply to the first move."""
    figure, axes = new_figure(1, len(habits), 1.2 + 1.5 * len(habits), 3.6)
    for axis, (name, one) in zip(axes, habits.items(), strict=True):
        shares = np.array(list(one.openings.values()))
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for row, column in zip(range(len(shares)), shares.argmax(1), strict=True):
            axis.plot(column, row, ".", color="white", markersize=3)
        axis.set_xticks(range(COLUMNS), range(1, COLUMNS + 1), fontsize=7)
        axis.set_yticks(range(len(shares)), [line or "–" for line in one.openings], fontsize=7)
        axis.set_title(name, fontsize=8)
    figure.suptitle("policy after these moves (dot: most probable column)", fontsize=9)
    figure.savefig(path)


def dots(path: Path, title: str, rates: Mapping[str, Mapping[str, Rate]]) -> None:
    """Rates with their intervals, one row a habit and one colour a player; a cross is the chance level."""
    names = list(next(iter(rates.values())))
    figure, [axis] = new_figure(1, 1, 6.4, 0.9 + 0.42 * len(names))
    for number, (player, measured) in enumerate(rates.items()):
        places = [row + 0.7 * (number + 0.5) / len(rates) - 0.35 for row in range(len(names))]
        means, errors = in_percent([measured[name].rate for name in names])
        axis.errorbar(means, places, xerr=errors, fmt="o", markersize=3, linewidth=1, label=player)
        axis.plot([100 * measured[name].chance for name in names], places, "x", color="#999999", markersize=3)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 101)
    axis.grid(color=GRID)
    axis.legend(fontsize=7)
    axis.set_title(f"{title} (cross: by chance)", fontsize=9)
    figure.savefig(path)

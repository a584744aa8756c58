"""Let scripted people play every level of the page: is the default opponent an even match, and are the steps even?

    python -m experiments.page.people                  # some minutes

In: the levels (`players/levels.py`). Out: a table of scores in percent (wins and half the draws) of three scripted
people against every level, and of every level against the next, with the distance in Elo that follows from this score.
Every pair plays from the same random openings of three stones, both sides of each.

    misses diagonals         takes a win and blocks one where the line is not diagonal; else prefers the centre
    always wins and blocks   the same with all lines, and avoids a column that lets the opponent win on top of it
    search of depth 5        sees every win and loss within five stones; else prefers the centre
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from pydantic import Field

from distill.common import cli
from distill.common.settings import CommandLine, Seed, Settings
from distill.common.tables import table
from distill.game.rules import COLUMNS, Bitboards, Position, is_over, is_won, legal_columns, legal_mask, next_position
from distill.game.tactics import Columns, wins, wins_in
from distill.players.intervals import Estimate, share
from distill.players.levels import LEVELS, PRIOR, lets_win_on_top
from distill.players.match import openings, paired, play_games, results_of
from distill.players.names import make
from distill.players.player import Choices, Player, Seeds, draw_by

OPENING_STONES = 3


class Config(Settings):
    """Let scripted people play every level of the page."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("games", "seed"))
    games: int = Field(20, ge=2, multiple_of=2, description="games of each pair, half of them from either side")
    seed: Seed = Field(0, description="seed of openings and random moves")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Wins if it can, blocks if it must, and else plays near the centre, by chance.

    Attributes:
      sees_diagonals: whether it sees diagonal lines, and whether a stone lets the opponent win on top of it.
    """

    name: str
    sees_diagonals: bool

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        opponent = current ^ mask
        legal = legal_mask(mask)
        wished = [self._seen(current, mask), self._seen(opponent, mask)]
        if self.sees_diagonals:
            wished.append(legal & ~lets_win_on_top(current, mask))
        columns = legal
        for better in reversed(wished):  # the first that there is decides
            columns = np.where(better.any(1, keepdims=True), better, columns)
        return _drawn(columns, seeds)

    def _seen(self, stones: Bitboards, mask: Bitboards) -> Columns:
        if self.sees_diagonals:
            return wins(stones, mask)
        return wins_in(stones, mask, "horizontal") | wins_in(stones, mask, "vertical")


@dataclass(frozen=True, kw_only=True)
class Lookahead:
    """Sees every win and loss within so many stones, and else plays near the centre, by chance."""

    name: str
    depth: int

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        best = np.zeros((len(mask), COLUMNS), np.bool_)
        for row, pair in enumerate(zip(current.tolist(), mask.tolist(), strict=True)):
            position = Position(*pair)
            values = {
                column: -_value(next_position(position, column), self.depth - 1) for column in legal_columns(position)
            }
            for column, value in values.items():
                best[row, column] = value == max(values.values())
        return _drawn(best, seeds)


def _value(position: Position, depth: int, alpha: int = -99, beta: int = 99) -> int:
    """For the side to move, by alpha-beta: a win is 1 and more, a sooner one more; a loss −1 and less; else 0."""
    if is_won(position):
        return -1 - depth
    if depth == 0 or is_over(position):
        return 0
    for column in sorted(legal_columns(position), key=lambda column: abs(column - COLUMNS // 2)):
        alpha = max(alpha, -_value(next_position(position, column), depth - 1, -beta, -alpha))
        if alpha >= beta:
            break
    return alpha


def _drawn(columns: Columns, seeds: Seeds) -> Choices:
    """One of these columns, near the centre more often, as the levels that ignore the board."""
    shares = columns * PRIOR
    shares /= shares.sum(1, keepdims=True)
    return Choices(moves=draw_by(shares, seeds), policy=shares)


PEOPLE = (
    Person(name="misses diagonals", sees_diagonals=False),
    Person(name="always wins and blocks", sees_diagonals=True),
    Lookahead(name="search of depth 5", depth=5),
)


def run(config: Config) -> str:
    """Play all pairs and print the tables."""
    levels = [make(name, fast=True) for name in LEVELS]
    rows = [[level.name, *(_percent(_score(person, level, config)) for person in PEOPLE)] for level in levels]
    print(table(("against", *(person.name for person in PEOPLE)), rows), end="\n\n")
    steps = []
    for lower, higher in pairwise(levels):
        scored = _score(higher, lower, config)
        steps.append((f"{higher.name} against {lower.name}", _percent(scored), f"{_elo(scored.mean):+.0f}"))
    print(table(("step", "score", "Elo"), steps))
    return f"{config.games} games of each pair"


def _score(one: Player, other: Player, config: Config) -> Estimate:
    pairings = paired(0, 1, openings(config.games // 2, OPENING_STONES, config.seed))
    results = results_of(play_games([one, other], pairings, config.seed), pairings)
    return share((results + 1) / 2)


def _percent(score: Estimate) -> str:
    return f"{100 * score.mean:.0f}"


def _elo(score: float) -> float:
    return float(400 * np.log10(score / (1 - score))) if 0 < score < 1 else float(np.copysign(np.inf, score - 0.5))


main = cli.Command("experiments page.people", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())

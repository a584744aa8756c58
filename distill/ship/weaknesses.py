"""What a network overlooks, measured without a judge: wins in one move, threats to block, its own mirror image.

In: `predict(boards)` as `nets.saved` gives it. Out: shares, and boards on which it goes wrong, for the card. The
positions are those of random play, the same for every network: harder than those of sensible games, and unfamiliar.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from distill.game import encoding, rules
from distill.nets.saved import Predict

GAMES = 100
SHOWN = 2
"""Boards of each kind that are kept to be shown."""


@dataclass(kw_only=True)
class Tally:
    """How often the network found the move: `found` of `asked` positions, and some where it did not with its move."""

    asked: int = 0
    found: int = 0
    missed: list[tuple[rules.Position, int]] = field(default_factory=list)

    def count(self, position: rules.Position, move: int, right: bool) -> None:
        """Add one position with the network's move there."""
        self.asked += 1
        self.found += right
        if not right and len(self.missed) < SHOWN:
            self.missed.append((position, move))


@dataclass(frozen=True, kw_only=True)
class Weaknesses:
    """What was asked of a network.

    Attributes:
      wins: positions with a win in one move.
      blocks: positions without one, where a single column stops the opponent's win in one move.
      mirrored: positions whose mirror image must get the mirrored move.
    """

    wins: Tally
    blocks: Tally
    mirrored: Tally


def measure(predict: Predict, games: int = GAMES) -> Weaknesses:
    """Ask a network for its move in every position of `games` random games."""
    positions = list(_random_positions(games))
    moves, mirrored_moves = _moves(predict, positions), _moves(predict, [rules.mirror(p) for p in positions])
    wins, blocks, mirrored = Tally(), Tally(), Tally()
    for position, move, mirrored_move in zip(positions, moves, mirrored_moves, strict=True):
        winning = _columns_where(position, rules.is_won)
        threats = _columns_where(rules.Position(position.opponent, position.mask), rules.is_won)
        if winning:
            wins.count(position, move, move in winning)
        elif len(threats) == 1:
            blocks.count(position, move, move in threats)
        if rules.mirror(position) != position:
            mirrored.count(position, move, mirrored_move == rules.COLUMNS - 1 - move)
    return Weaknesses(wins=wins, blocks=blocks, mirrored=mirrored)


def _random_positions(games: int) -> Iterator[rules.Position]:
    dice = random.Random(0)
    for _ in range(games):
        position = rules.EMPTY
        while not rules.is_over(position):
            yield position
            position = rules.play(position, dice.choice(rules.legal_columns(position)))


def _columns_where(position: rules.Position, holds: Callable[[rules.Position], bool]) -> list[int]:
    """Columns whose move leads to a position of which something holds."""
    return [column for column in rules.legal_columns(position) if holds(rules.play(position, column))]


def _moves(predict: Predict, positions: list[rules.Position]) -> list[int]:
    boards = encoding.boards([p.current for p in positions], [p.mask for p in positions])
    return np.asarray(predict(boards)["move"]).tolist()

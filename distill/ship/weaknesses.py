"""What a network overlooks, measured without a judge: wins in one move, threats to block, its own mirror image.

In: `predict(boards)` as `nets.saved` gives it. Out: shares, and boards on which it goes wrong, for the card. The
positions are those of random play, the same for every network: harder than those of sensible games, and unfamiliar.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distill.game import encoding, rules, tactics
from distill.nets.predict import Predict

GAMES = 100
SHOWN = 2
"""Boards of each kind that are kept to be shown."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often the network found the move: `found` of `asked` positions, and some where it did not with its move."""

    asked: int
    found: int
    missed: list[tuple[rules.Position, int]]


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
    current, mask = (np.array([getattr(p, name) for p in positions], np.uint64) for name in ("current", "mask"))
    moves = np.asarray(predict(encoding.boards(current, mask))["move"])
    of_mirror = np.asarray(predict(encoding.boards(rules.mirror_bits(current), rules.mirror_bits(mask)))["move"])
    winning, threats = tactics.wins(current, mask), tactics.wins(current ^ mask, mask)

    def tally(asked: NDArray[np.bool_], right: NDArray[np.bool_]) -> Tally:
        missed = np.flatnonzero(asked & ~right)[:SHOWN]
        shown = [(positions[row], int(moves[row])) for row in missed]
        return Tally(asked=int(asked.sum()), found=int((asked & right).sum()), missed=shown)

    rows, wins_now = np.arange(len(moves)), np.asarray(winning.any(1))
    return Weaknesses(
        wins=tally(wins_now, winning[rows, moves]),
        blocks=tally(~wins_now & (threats.sum(1) == 1), threats[rows, moves]),
        mirrored=tally(~rules.is_own_mirror(current, mask), np.asarray(of_mirror == rules.COLUMNS - 1 - moves)),
    )


def _random_positions(games: int) -> Iterator[rules.Position]:
    dice = random.Random(0)
    for _ in range(games):
        position = rules.EMPTY
        while not rules.is_over(position):
            yield position
            position = rules.play(position, dice.choice(rules.legal_columns(position)))

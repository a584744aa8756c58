"""What a network overlooks, measured without a solver: wins in one move, threats to block, its own mirror image.

In: `predict(boards)` as `networks.predict` defines it. Out: counts for the card. The positions
come from random games, the same for every network; they are harder than those of sensible games.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game import encoding, rules, tactics
from distill.networks.predict import Predict

GAMES = 2000
"""Number of random games."""
MOST = 5000
"""Largest number of positions per kind, all distinct."""


class Tally(NamedTuple):
    """In `right` of `total` positions the network found the move."""

    right: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Weaknesses:
    """The three tallies.

    Attributes:
      wins: positions with a win in one move.
      blocks: positions without one in which a single column stops the opponent's win in one move. Positions in which
        the opponent then wins on top of that stone are left out, since every move loses equally soon.
      mirrored: asymmetric positions whose mirror image must get the mirrored move.
    """

    wins: Tally
    blocks: Tally
    mirrored: Tally


def measure(predict: Predict, games: int = GAMES) -> Weaknesses:
    """Count the network's mistakes in positions of `games` random games."""
    current, mask = np.array(_random_positions(games), np.uint64).T.copy()
    opponent = current ^ mask
    winning, threats = tactics.wins(current, mask), tactics.wins(opponent, mask)
    blocked = mask | np.where(threats, rules.landing(mask), np.uint64(0)).sum(1, dtype=np.uint64)
    stoppable = (threats.sum(1) == 1) & ~tactics.wins(opponent, blocked).any(1)

    def moves(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.integer]:
        return np.asarray(predict(encoding.boards(current, mask))["move"])

    def tally(rows: NDArray[np.intp], right: NDArray[np.bool_]) -> Tally:
        """How often the network plays a right column in these rows; `right`: bool (rows, 7), True = a right column."""
        return Tally(int(right[np.arange(len(rows)), moves(current[rows], mask[rows])].sum()), len(rows))

    kinds = (winning.any(1), stoppable & ~winning.any(1), ~rules.is_own_mirror(current, mask))
    wins, blocks, asymmetric = (np.flatnonzero(kind)[:MOST] for kind in kinds)
    of_mirror = moves(rules.mirror_bits(current[asymmetric]), rules.mirror_bits(mask[asymmetric]))
    return Weaknesses(
        wins=tally(wins, winning[wins]),
        blocks=tally(blocks, threats[blocks]),
        mirrored=tally(asymmetric, np.eye(rules.COLUMNS, dtype=np.bool_)[rules.COLUMNS - 1 - of_mirror]),
    )


@functools.cache
def _random_positions(games: int) -> list[tuple[int, int]]:
    """The distinct positions (current, mask) of random games, in the order in which they arise."""
    dice = random.Random(0)
    found: dict[tuple[int, int], None] = {}
    for _ in range(games):
        position = rules.EMPTY
        while not rules.is_over(position):
            found[position.current, position.mask] = None
            position = rules.play(position, dice.choice(rules.legal_columns(position)))
    return list(found)

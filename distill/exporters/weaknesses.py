"""What a network overlooks, measured without a judge: wins in one move, threats to block, its own mirror image.

In: `predict(boards)` as `networks.saved` gives it. Out: shares, and boards on which it goes wrong, for the card. The
positions are those of random play, the same for every network: harder than those of sensible games, and unfamiliar.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game import encoding, rules, tactics
from distill.networks.predict import Predict

GAMES = 2000
"""Their positions hold more than `ASKED` of each kind."""
ASKED = 5000
"""Positions of each kind at most, all different."""
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
      blocks: positions without one, where a single column stops the opponent's win in one move. Where the opponent
        wins on top of the stone that stops it, every move loses equally soon, so nothing is asked.
      mirrored: positions whose mirror image must get the mirrored move.
    """

    wins: Tally
    blocks: Tally
    mirrored: Tally


def measure(predict: Predict, games: int = GAMES) -> Weaknesses:
    """Ask a network for its move in positions of `games` random games."""
    of_games = _questions(games)
    positions, current, mask = of_games.positions, of_games.current, of_games.mask

    def moves(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.integer]:
        return np.asarray(predict(encoding.boards(current, mask))["move"])

    def tally(rows: NDArray[np.intp], right: NDArray[np.bool_]) -> Tally:
        """Of the positions in these rows, whose right columns are bool (rows, 7)."""
        chosen = moves(current[rows], mask[rows])
        found = right[np.arange(len(rows)), chosen]
        missed = np.flatnonzero(~found)[:SHOWN]
        shown = [(positions[rows[miss]], int(chosen[miss])) for miss in missed]
        return Tally(asked=len(rows), found=int(found.sum()), missed=shown)

    wins, blocks, lopsided = of_games.wins, of_games.blocks, of_games.lopsided
    of_mirror = moves(rules.mirror_bits(current[lopsided]), rules.mirror_bits(mask[lopsided]))
    return Weaknesses(
        wins=tally(wins, tactics.wins(current[wins], mask[wins])),
        blocks=tally(blocks, tactics.wins(current[blocks] ^ mask[blocks], mask[blocks])),
        mirrored=tally(lopsided, np.eye(rules.COLUMNS, dtype=np.bool_)[rules.COLUMNS - 1 - of_mirror]),
    )


class _Questions(NamedTuple):
    """Positions, their bits, and the rows of each kind that are asked about."""

    positions: list[rules.Position]
    current: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    wins: NDArray[np.intp]
    blocks: NDArray[np.intp]
    lopsided: NDArray[np.intp]


@functools.cache
def _questions(games: int) -> _Questions:
    """The same for every network."""
    positions = list(dict.fromkeys(_random_positions(games)))
    current, mask = (np.array([getattr(p, name) for p in positions], np.uint64) for name in ("current", "mask"))
    winning, threats = tactics.wins(current, mask), tactics.wins(current ^ mask, mask)
    blocked = mask | np.where(threats, rules.landing(mask), np.uint64(0)).sum(1, dtype=np.uint64)
    wins_now = np.asarray(winning.any(1))
    stoppable = (threats.sum(1) == 1) & ~tactics.wins(current ^ mask, blocked).any(1)
    kinds = (wins_now, ~wins_now & stoppable, ~rules.is_own_mirror(current, mask))
    return _Questions(positions, current, mask, *(np.flatnonzero(kind)[:ASKED] for kind in kinds))


def _random_positions(games: int) -> Iterator[rules.Position]:
    dice = random.Random(0)
    for _ in range(games):
        position = rules.EMPTY
        while not rules.is_over(position):
            yield position
            position = rules.play(position, dice.choice(rules.legal_columns(position)))

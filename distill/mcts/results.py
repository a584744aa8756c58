"""What goes into a search, and what comes out: positions and random numbers, the record of games, and results.

They are the same for UCT and PUCT. Compiled code fills in the record of PUCT's games, and `uct.py` that of UCT's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.game import inputs
from distill.game.encoding import bitboards, bitboards_of
from distill.game.rules import COLUMNS, ROWS, Bitboards, Position, are_over, faults

Positions: TypeAlias = Sequence[Position] | NDArray[np.int8]
"""Positions, or boards int8 (B, 6, 7): row 0 on top, +1 the side to move, −1 the opponent, 0 empty."""


def as_bitboards(positions: Positions) -> tuple[Bitboards, Bitboards]:
    """`current` and `mask`, uint64 (B,).

    Raises ValueError for what is no position, and where the game is over: compiled code checks nothing.
    """
    items: Any = positions if isinstance(positions, np.ndarray) else list(positions)
    if isinstance(items, list) and all(isinstance(item, Position) for item in items):
        current, mask = bitboards_of(items)
    else:
        current, mask = bitboards(inputs.boards(items).reshape(-1, ROWS, COLUMNS))
    over = are_over(current, mask), "the game is over, so there is nothing to search"
    for wrong, what in (*faults(current, mask), over):
        if wrong.any():
            raise ValueError(f"position {wrong.argmax()}: {what}")
    return current, mask


def seeds_of_games(seeds: Any, number: int, games: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """(seed, game), the source of the random numbers, for each of `number` positions.

    Args:
      seeds: one seed for all positions, or a seed for each.
      games: the game of each position; None: 0, 1, ... with one seed, and 0 with a seed for each.

    Raises ValueError for another number of seeds, and TypeError for one that is no whole number.
    """
    if np.ndim(seeds) == 0:
        seeds, games = [seeds] * number, range(number) if games is None else games
    return list(zip(map(operator.index, seeds), [0] * number if games is None else games, strict=True))


def generator(seed: int, game: int, stream: int) -> np.random.Generator:
    """Independent random numbers for each (run seed, game, stream): Philox, counter-based, no state shared."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, game], np.uint64), counter=[0, 0, 0, stream]))


# Games and results ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """What the search of one position found.

    Args:
      votes: the column that each independent search chose; PUCT has one search.
      label: the best column: the majority of the votes.
      visits: int32 (7,), root visits summed over the searches; of a Gumbel root its policy, in thousandths.
      value: mean root value in [-1, 1] for the side to move.
      simulations: of all searches together.
    """

    votes: tuple[int, ...]
    label: int
    visits: NDArray[np.int32]
    value: float
    simulations: int


class GameRecord(NamedTuple):
    """G games of at most S searched positions, K votes a position (PUCT: one). A = 7 columns."""

    current: NDArray[np.uint64]  # (G, S)
    mask: NDArray[np.uint64]  # (G, S)
    votes: NDArray[np.int8]  # (G, S, K) the column that each search chose
    label: NDArray[np.int8]  # (G, S) the best column: the majority of the votes
    move: NDArray[np.int8]  # (G, S) the column played: the label, or drawn at random as the settings say
    visits: NDArray[np.int32]  # (G, S, A) root visits of all searches; of a Gumbel root, its policy in POLICY_UNITS
    simulations: NDArray[np.int32]  # (G, S) of all searches
    value: NDArray[np.float64]  # (G, S) mean root value of the searches, or what a proof says, for the side to move
    length: NDArray[np.int64]  # (G,) positions recorded; 0 until the game has ended
    result: NDArray[np.int8]  # (G,) 1 if the last move won, else 0

    @classmethod
    def starting(cls, current: Bitboards, mask: Bitboards, steps: int, votes: int = 1) -> Self:
        """The empty record of games that start at (current, mask), uint64 (G,), and last at most `steps` positions."""
        shape = (len(current), steps)
        record = cls(
            current=np.zeros(shape, np.uint64),
            mask=np.zeros(shape, np.uint64),
            votes=np.full((*shape, votes), -1, np.int8),
            label=np.full(shape, -1, np.int8),
            move=np.full(shape, -1, np.int8),
            visits=np.zeros((*shape, COLUMNS), np.int32),
            simulations=np.zeros(shape, np.int32),
            value=np.zeros(shape),
            length=np.zeros(len(current), np.int64),
            result=np.zeros(len(current), np.int8),
        )
        record.current[:, 0], record.mask[:, 0] = current, mask
        return record

    def first_results(self) -> list[SearchResult]:
        """What the search of each game's first position found."""
        names = ("votes", "label", "value", "simulations")
        rows = zip(*(getattr(self, name)[:, 0].tolist() for name in names), self.visits[:, 0], strict=True)
        return [
            SearchResult(votes=tuple(votes), label=label, value=value, simulations=simulations, visits=visits)
            for votes, label, value, simulations, visits in rows
        ]


Ended: TypeAlias = Callable[[GameRecord, NDArray[np.int64]], None]
"""Called with the record and the indices of games that have ended; each game is reported once."""

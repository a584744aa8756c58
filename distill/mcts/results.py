"""What goes into a search, and what comes out: the same for UCT and PUCT."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.game import inputs
from distill.game.encoding import bitboards, bitboards_of
from distill.game.rules import COLUMNS, ROWS, Bitboards, Position, are_over, faults
from distill.mcts.engine.record import GameRecord

Positions: TypeAlias = Sequence[Position] | NDArray[np.int8]
"""Positions, or boards int8 (B, 6, 7): row 0 on top, +1 the side to move, −1 the opponent, 0 empty."""


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


def as_bitboards(positions: Positions) -> tuple[Bitboards, Bitboards]:
    """`current` and `mask`, uint64 (B,). Raises ValueError for boards that are none."""
    items: Any = positions if isinstance(positions, np.ndarray) else list(positions)
    if isinstance(items, list) and all(isinstance(item, Position) for item in items):
        return bitboards_of(items)
    return bitboards(inputs.boards(items).reshape(-1, ROWS, COLUMNS))


def check_starts(current: Bitboards, mask: Bitboards) -> None:
    """Raise ValueError for what is no position, or where the game is over: compiled code checks nothing."""
    over = are_over(current, mask), "the game is over, so there is nothing to search"
    for wrong, what in (*faults(current, mask), over):
        if wrong.any():
            raise ValueError(f"position {wrong.argmax()}: {what}")


def streams(seeds: Any, number: int, games: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """(seed, game), the source of the random numbers, for each of `number` positions.

    Args:
      seeds: one seed for all positions, or a seed for each.
      games: the game of each position; None: 0, 1, ... with one seed, and 0 with a seed for each.

    Raises ValueError for another number of seeds, and TypeError for one that is no whole number.
    """
    if np.ndim(seeds) == 0:
        seeds, games = [seeds] * number, range(number) if games is None else games
    if len(seeds) != number:
        raise ValueError(f"{len(seeds)} seeds given, {number} needed, one for each position")
    return list(zip(map(operator.index, seeds), [0] * number if games is None else games, strict=True))


def results_of(record: GameRecord) -> list[SearchResult]:
    """The results of a record of one position a game."""
    return [
        SearchResult(
            votes=tuple(record.votes[i, 0].tolist()),
            label=int(record.label[i, 0]),
            visits=record.visits[i, 0],
            value=float(record.value[i, 0]),
            simulations=int(record.simulations[i, 0]),
        )
        for i in range(len(record.label))
    ]


def generator(seed: int, game: int, stream: int) -> np.random.Generator:
    """Independent random numbers for each (run seed, game, stream): Philox, counter-based, no state shared."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, game], np.uint64), counter=[0, 0, 0, stream]))

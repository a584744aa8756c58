"""What goes into a search of single positions, and what comes out: the same for UCT and PUCT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.game import inputs
from distill.game.encoding import bitboards
from distill.game.rules import COLUMNS, ROWS, Bitboards, Position
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


def checked_bitboards(positions: Positions) -> tuple[Bitboards, Bitboards]:
    """`current` and `mask`, uint64 (B,). Raises ValueError for what is neither positions nor boards."""
    items: Any = positions
    if not isinstance(items, Iterable):
        raise ValueError(f"positions are one {type(items).__name__}, not a list of positions or boards")
    items = list(items) if isinstance(items, Iterator) else items
    if isinstance(items, np.ndarray) or not all(isinstance(item, Position) for item in items):
        return bitboards(inputs.boards(items).reshape(-1, ROWS, COLUMNS))
    current, mask = (np.array([getattr(item, name) for item in items]) for name in ("current", "mask"))
    return current, mask  # of any type: `arguments.starts` checks them


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


def gamma_variates(random: np.random.Generator, alpha: float, steps: int) -> NDArray[np.float64]:
    """float64 (S, 7): gamma variates of `steps` positions; divided by the sum over open columns, Dirichlet noise.

    Below an alpha of 0.02 all of a position may underflow to 0, so they are drawn as logarithms, log G(α) =
    log G(α + 1) + log(U) / α, and divided by the largest. Differences of neighbours end at 100, because a share of
    e^-100 changes no sum: then any columns that are open keep their order.
    """
    if alpha >= 0.02:
        return random.standard_gamma(alpha, (steps, COLUMNS))
    logarithms = np.log(random.standard_gamma(alpha + 1, (steps, COLUMNS)))
    logarithms += np.log1p(-random.random((steps, COLUMNS))) / max(alpha, 1e-300)
    order = np.argsort(-logarithms, axis=1)
    ordered = np.take_along_axis(logarithms, order, axis=1)
    differences = np.maximum(np.diff(ordered, axis=1, prepend=ordered[:, :1]), -100.0)
    np.put_along_axis(logarithms, order, differences.cumsum(axis=1), axis=1)
    return np.exp(logarithms)

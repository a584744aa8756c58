"""Plays games by the textbook (`reference.py`, `reference_puct.py`) in place of the engine: setting `engine`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.rules import COLUMNS, Position, is_over, is_won
from distill.game.rules import play as after
from distill.mcts import reference, reference_puct
from distill.mcts.engine.record import Ended, GameRecord
from distill.mcts.engine.uct_games import UctDraws
from distill.mcts.evaluator import BitboardEvaluator
from distill.mcts.settings import PuctSettings, UctSettings

Search = Callable[[Position], reference.Found]
"""The search of one position, with its settings and random numbers."""


def source_hash() -> str:
    """A hash of the textbook's source: part of the identity of a run that it plays."""
    files = (reference.__file__, reference_puct.__file__)
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:16]


def play(record: GameRecord, games: Iterable[Iterable[Search]], simulations: int, ended: Ended | None = None) -> None:
    """Fill the record, whose first positions are given, as the engine does, one game after the other.

    Args:
      games: the searches of each game, at most one a position.
      simulations: of one position.
    """
    for game, searches in enumerate(games):
        position = Position(int(record.current[game, 0]), int(record.mask[game, 0]))
        for step, search in enumerate(searches):
            found = search(position)
            record.current[game, step], record.mask[game, step] = position.current, position.mask
            for name in ("votes", "label", "visits", "value", "move"):
                getattr(record, name)[game, step] = getattr(found, name)
            record.simulations[game, step], record.length[game] = simulations, step + 1
            position = after(position, found.move)
            if is_over(position):
                break
        record.result[game] = is_won(position)
        if ended is not None:
            ended(record, np.array([game]))


def uct_searches(draws: UctDraws, settings: UctSettings) -> Iterator[Iterator[Search]]:
    """The searches of the games that `uct.play` plays."""
    # The engine's eighth slot belongs to no column.
    draws = draws._replace(order=draws.order[..., :COLUMNS])
    for game in zip(*(numbers.tolist() for numbers in draws), strict=True):
        yield (
            partial(reference.label, settings=settings, keys=keys, orders=orders, gammas=gammas, move=move)
            for keys, orders, gammas, move in zip(*game, strict=True)
        )


def puct_searches(
    chances: Iterable[Mapping[str, NDArray[np.float64]]], settings: PuctSettings, evaluate: BitboardEvaluator
) -> Iterator[Iterator[Search]]:
    """The searches of the games that `puct.play` plays; `chances` are the results of `puct.draw` for each game."""

    def evaluate_one(position: Position) -> tuple[Sequence[float], float]:
        current, mask = np.array([position.current], np.uint64), np.array([position.mask], np.uint64)
        logits, value = outputs.evaluation(evaluate(current, mask), mask)
        return logits[0].tolist(), float(value[0])

    search = partial(reference_puct.search, settings=settings, evaluate=evaluate_one)
    for chance in chances:
        steps = zip(*(chance[name].tolist() for name in ("gamma", "gumbel", "uniform")), strict=True)
        yield (partial(search, gamma=gamma, gumbel=gumbel, uniform=uniform) for gamma, gumbel, uniform in steps)

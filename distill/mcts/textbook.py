"""Plays games by the textbook (`reference.py`, `reference_puct.py`) in place of the engine: setting `engine`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from distill.game import outputs
from distill.game.encoding import bitboards_of
from distill.game.rules import Position, is_over, is_won, next_position
from distill.mcts import reference, reference_puct
from distill.mcts.engine.puct_tree import PuctDraws
from distill.mcts.engine.record import Ended, GameRecord
from distill.mcts.engine.uct_games import UctDraws
from distill.mcts.evaluator import BitboardEvaluator


def source_hash() -> str:
    """A hash of the textbook's source: part of the identity of a run that it plays."""
    files = (reference.__file__, reference_puct.__file__)
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:16]


def play_games(
    record: GameRecord,
    draws: UctDraws | PuctDraws,
    search: Callable[..., reference.Result],
    simulations: int,
    ended: Ended | None = None,
) -> None:
    """Fill the record, whose first positions are given, as the engine does, one game after the other.

    Args:
      draws: the random numbers of the searches.
      search: searches a position, with the random numbers of one search.
      simulations: of one position.
    """
    for game, numbers in enumerate(zip(*(part.tolist() for part in draws), strict=True)):
        position = Position(int(record.current[game, 0]), int(record.mask[game, 0]))
        for step, drawn in enumerate(zip(*numbers, strict=True)):
            result = search(position, *drawn)
            record.current[game, step], record.mask[game, step] = position.current, position.mask
            for name in ("votes", "label", "visits", "value", "move"):
                getattr(record, name)[game, step] = getattr(result, name)
            record.simulations[game, step], record.length[game] = simulations, step + 1
            position = next_position(position, result.move)
            if is_over(position):
                break
        record.result[game] = is_won(position)
        if ended is not None:
            ended(record, np.array([game]))


def one_by_one(evaluate: BitboardEvaluator) -> reference_puct.EvaluateOne:
    """The evaluator for one position at a time."""

    def evaluate_one(position: Position) -> tuple[Sequence[float], float]:
        current, mask = bitboards_of([position])
        logits, value = outputs.evaluation(evaluate(current, mask), mask)
        return logits[0].tolist(), float(value[0])

    return evaluate_one

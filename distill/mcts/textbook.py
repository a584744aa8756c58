"""Plays games by the textbook (`reference.py`, `reference_puct.py`) in place of the engine: setting `engine`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.rules import COLUMNS, Position, is_won, play
from distill.mcts import reference, reference_puct
from distill.mcts.engine.record import Ended, GameRecord
from distill.mcts.engine.uct_games import UctDraws
from distill.mcts.evaluator import BitboardEvaluator
from distill.mcts.settings import PuctSettings, UctSettings


def source_hash() -> str:
    """A hash of the textbook's source: part of the identity of a run that it plays."""
    files = (reference.__file__, reference_puct.__file__)
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:16]


def play_uct(record: GameRecord, draws: UctDraws, settings: UctSettings) -> None:
    """Fill the record, whose first positions are given, as `uct.play` does, one game after the other."""
    draws = draws._replace(order=draws.order[..., :COLUMNS])
    for game in range(len(record.length)):
        chance = UctDraws(*(numbers[game] for numbers in draws))
        found = reference.play(_start(record, game), settings, chance)
        _write(record, game, found, settings.votes * settings.simulations)


def play_puct(
    record: GameRecord,
    settings: PuctSettings,
    evaluate: BitboardEvaluator,
    chances: Iterable[reference_puct.Chance],
    ended: Ended | None,
) -> None:
    """Fill the record, whose first positions are given, as `puct.play` does, one game after the other."""

    def evaluate_one(position: Position) -> tuple[NDArray[np.float32], float]:
        current, mask = np.array([position.current], np.uint64), np.array([position.mask], np.uint64)
        logits, value = outputs.evaluation(evaluate(current, mask), mask)
        return logits[0], float(value[0])

    for game, chance in enumerate(chances):
        found = reference_puct.play(_start(record, game), settings, evaluate_one, chance)
        _write(record, game, found, settings.simulations)
        if ended is not None:
            ended(record, np.array([game]))


def _start(record: GameRecord, game: int) -> Position:
    return Position(int(record.current[game, 0]), int(record.mask[game, 0]))


def _write(record: GameRecord, game: int, found: Sequence[reference.Found], simulations: int) -> None:
    position = _start(record, game)
    for step, each in enumerate(found):
        record.current[game, step], record.mask[game, step] = position.current, position.mask
        for name in ("votes", "label", "visits", "value", "move"):
            getattr(record, name)[game, step] = getattr(each, name)
        record.simulations[game, step] = simulations
        position = play(position, each.move)
    record.length[game], record.result[game] = len(found), is_won(position)

"""Arithmetic stand-ins for networks, and boards, for the tests of PUCT."""

from collections.abc import Callable
from typing import Any

import numpy as np
from helpers import bits, low

from distill.game import rules
from distill.game.rules import COLUMNS, Position, from_moves
from distill.mcts import puct
from distill.mcts.puct import PuctSettings
from distill.mcts.reference import Result
from distill.mcts.results import GameRecord


def hashed(word: int) -> float:
    """A pseudo-random number in [0, 1), a hash of the word."""
    word = (word ^ (word >> 31)) * 0x9E3779B97F4A7C15 % 2**64
    word = (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9 % 2**64
    return (word ^ (word >> 32)) % 2**53 / 2**53


def one_answer(current: int, mask: int) -> tuple[list[float], float]:
    """Logits and value of a stand-in network: hashes of the position."""
    word = current * 3 + mask * 5
    return [3 * hashed(word + 1000 * column) for column in range(COLUMNS)], 1.6 * hashed(word + 1) - 0.8


def predict(current: Any, mask: Any) -> tuple[Any, Any]:
    answers = [one_answer(*pair) for pair in zip(current.tolist(), mask.tolist(), strict=True)]
    return np.array([logits for logits, _ in answers], np.float32), np.array(
        [value for _, value in answers], np.float32
    )


def uniform(current: Any, mask: Any) -> tuple[Any, Any]:
    """A network with equal logits and value 0."""
    return np.zeros((len(current), COLUMNS), np.float32), np.zeros(len(current), np.float32)


def look(settings: PuctSettings, *positions: Position, network: Any = uniform, seed: int = 5) -> Any:
    """The results of one search per position."""
    return puct.play(*bits(*positions), network, settings, seeds=range(seed, seed + len(positions)), steps=1)


def assert_the_textbook_plays(starts: Any, record: GameRecord, draws: Any, search: Callable[..., Result]) -> None:
    """The compiled games are those that the textbook's search plays from the starts with the same random numbers."""
    for game, position in enumerate(starts):
        for step in range(record.length[game]):
            assert Position(record.current[game, step], record.mask[game, step]) == position
            result = search(position, *(part[game, step].tolist() for part in draws))
            for name in ("votes", "label", "visits", "value", "move"):
                ours, theirs = getattr(record, name)[game, step], getattr(result, name)
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7 * (name == "value"), err_msg=name)
            position = rules.next_position(position, result.move)
        assert record.result[game] == rules.is_won(position)
        assert rules.is_over(position) or record.length[game] == record.label.shape[1]


STARTS = [from_moves(moves) for moves in ("", "4", "44442", "123", "443526", "33334444")]


WIN = low("""
    O O . . . . .
    X X X . . . O
""")
LOST = low("""
    . . O O . . .
    . . X X X . .
""")
BLOCK = low("""
    X . . . . . .
    X O O O . . X
""")
WINS = {
    "vertical": low("""
        X . . . . . .
        X O . . . . .
        X O . O . . .
    """),
    "horizontal": low("""
        O . O . . . .
        X . X X . . O
    """),
    "rising": low("""
        . . X O . . .
        . X O O . . .
        X O O X X . .
    """),
    "falling": low("""
        . . . O X . .
        . . . O O X .
        . . X X O O X
    """),
}
WINNING_COLUMN = {"vertical": 0, "horizontal": 1, "rising": 3, "falling": 3}

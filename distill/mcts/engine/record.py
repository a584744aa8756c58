"""The record of games that a search plays against itself, filled in by compiled code or by `uct.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.engine.bits import FULL, has_four, landing
from distill.mcts.engine.jit import Float64s, Int8s, Int32s, Int64s, UInt64s, inline


class GameRecord(NamedTuple):
    """G games of at most S searched positions, K votes a position (PUCT: one). A = 7 columns."""

    current: UInt64s  # (G, S)
    mask: UInt64s  # (G, S)
    votes: Int8s  # (G, S, K) the column that each search chose
    label: Int8s  # (G, S) the best column: the majority of the votes
    move: Int8s  # (G, S) the column played: the label, or drawn at random as the settings say
    visits: Int32s  # (G, S, A) root visits of all searches; of a Gumbel root, its policy in POLICY_UNITS
    simulations: Int32s  # (G, S) of all searches
    value: Float64s  # (G, S) mean root value of the searches, or what a proof says, for the side to move
    length: Int64s  # (G,) positions recorded; 0 until the game has ended
    result: Int8s  # (G,) 1 if the last move won, else 0


Ended: TypeAlias = Callable[[GameRecord, Int64s], None]
"""Called with the record and the indices of games that have ended; each game is reported once."""


def new_record(current: UInt64s, mask: UInt64s, steps: int, votes: int = 1) -> GameRecord:
    """The empty record of games that start at (current, mask), uint64 (G,), and last at most `steps` positions."""
    shape = (len(current), steps)
    record = GameRecord(
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


@inline
def play_move(record: GameRecord, game: int, step: int, move: int) -> bool:
    """Record the move in a position of a game, and the position after it; False where the game ends."""
    current, mask = record.current[game, step], record.mask[game, step]
    record.move[game, step] = move
    stone = landing(mask, move)
    won = has_four(current | stone)
    if won or mask | stone == FULL or step + 1 == record.label.shape[1]:
        record.result[game], record.length[game] = won, step + 1
        return False
    record.current[game, step + 1], record.mask[game, step + 1] = current ^ mask, mask | stone
    return True

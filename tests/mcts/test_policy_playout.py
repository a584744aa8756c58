"""Leaves valued by playouts of the network's moves (`mcts/policy_playout.py`). Properties:

- a playout ends with the game's result, and forced games have forced values;
- it depends on the position and the seed alone, whatever else is in its batch;
- a search whose leaves are valued so blocks a threat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers import bits, random_positions
from puct_helpers import BLOCK, look, uniform

from distill.game import rules
from distill.game.rules import COLUMNS, Position, parse_board
from distill.mcts.policy_playout import by_playouts
from distill.mcts.puct import PuctSettings, quiet


def test_a_playout_by_the_network_ends_with_the_result_of_the_game():
    def plays_to_the_right(current: Any, mask: Any) -> Any:
        logits, value = uniform(current, mask)
        return logits + 80 * np.arange(COLUMNS, dtype=np.float32), value

    def result(position: Position) -> int:
        """For the side to move, when both always play the last column that is open."""
        if rules.is_won(position):
            return -1
        columns = rules.legal_columns(position)
        return -result(rules.play(position, columns[-1])) if columns else 0

    positions = random_positions(20, 12, 12) + random_positions(10, 33, 33)
    logits, value = by_playouts(plays_to_the_right, seed=1)(*bits(*positions))
    assert value.tolist() == [result(position) for position in positions]
    assert set(value.tolist()) >= {-1.0, 1.0}
    assert logits[0].tolist() == [0, 80, 160, 240, 320, 400, 480]


def test_a_playout_depends_on_the_position_and_the_seed_alone():
    positions = random_positions(30, 8, 8)
    together = by_playouts(uniform, seed=1)(*bits(*positions))[1]
    alone = [by_playouts(uniform, seed=1)(*bits(position))[1][0] for position in positions]
    assert together.tolist() == alone
    assert together.tolist() != by_playouts(uniform, seed=2)(*bits(*positions))[1].tolist()


def test_playouts_value_the_leaves_of_a_search():
    settings = quiet(PuctSettings(simulations=100))
    record = look(settings, parse_board(BLOCK), network=by_playouts(uniform))
    assert record.label[0, 0] == 4

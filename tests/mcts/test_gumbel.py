"""A Gumbel root (`mcts/gumbel.py`; whole games against the textbook: `test_puct.py`). Properties:

- halving gives the columns left equally many visits, and never asks for a column that there is not;
- with few simulations the search improves on the policy: the best of the considered columns gets the most.
"""

from __future__ import annotations

from typing import Any

import pytest
from puct_helpers import BLOCK, look, uniform

from distill.game.rules import parse_board
from distill.mcts.gumbel import halving_schedule
from distill.mcts.puct import PuctSettings


@pytest.mark.parametrize(("simulations", "considered"), [(16, 4), (32, 7), (7, 7), (5, 7), (100, 7), (3, 1)])
def test_halving_gives_those_left_equally_many_visits(simulations: int, considered: int):
    turns = halving_schedule(simulations, considered)
    assert len(turns) == simulations
    visits = [0] * considered
    for turn in turns:  # the schedule never asks for a column that no column could be
        visits[visits.index(turn)] += 1
    assert sum(visits) == simulations
    if simulations >= 2 * considered and considered > 1:
        assert sorted(visits)[-2] >= sorted(visits)[-1] - 1  # two finalists
    assert min(visits) >= (1 if simulations >= considered else 0)


def test_a_gumbel_root_of_few_simulations_improves_on_the_policy():
    """The value of a lost reply is seen in one visit a column, and the policy recorded turns away from it."""
    position = parse_board(BLOCK)

    def wants_column_6(current: Any, mask: Any) -> Any:
        logits, value = uniform(current, mask)
        logits[:, 6] = 5.0
        return logits, value

    settings = PuctSettings(simulations=7, root="gumbel", noise_fraction=0.0, c_scale=1.0)
    record = look(settings, position, network=wants_column_6)
    assert record.label[0, 0] == 4
    assert record.visits[0, 0, 4] > 990
    assert record.visits[0, 0].sum() == 1000
    assert abs(record.value[0, 0]) < 0.05  # that of the reply, though six of seven visits saw a loss

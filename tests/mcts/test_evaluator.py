"""Evaluators (`mcts/evaluator.py`). Properties:

- a function of boards, which may return the same arrays again, guides a search as its equivalent on bitboards does;
- output that no search can use is one line that names it (`test_outputs`: which output), before compiled code sees it;
- a rollout ends with the game's result, and depends on the position and the seed alone.
"""

from typing import Any

import numpy as np
import pytest
from helpers import bits, random_positions
from puct_helpers import STARTS, look, predict, uniform

from distill.common import OutputError
from distill.game import encoding, rules
from distill.game.rules import COLUMNS, Position
from distill.mcts import puct
from distill.mcts.evaluator import by_rollouts
from distill.mcts.puct import PuctSettings


def test_a_function_of_boards_guides_a_search():
    logits, value = np.zeros((len(STARTS), COLUMNS), order="F"), np.zeros(len(STARTS))

    def predict_boards(boards: Any) -> Any:
        """The same network, in another type and layout, which writes into the same arrays each time."""
        logits[: len(boards)], value[: len(boards)] = predict(*encoding.bitboards(boards))
        return logits[: len(boards)], value[: len(boards)]

    settings = PuctSettings(simulations=30)
    expected = look(settings, *STARTS, network=predict)
    for positions in (STARTS, encoding.boards(*bits(*STARTS))):
        results = puct.search(positions, predict_boards, settings, seeds=range(5, 5 + len(STARTS)))
        assert [result.visits.tolist() for result in results] == expected.visits[:, 0].tolist()
        assert [result.votes for result in results] == [(label,) for label in expected.label[:, 0].tolist()]
    first, second = (puct.search([STARTS[1]] * 2, predict_boards, settings, seed) for seed in (1, 2))
    assert first[0].visits.tolist() != first[1].visits.tolist() != second[1].visits.tolist()


@pytest.mark.parametrize("wrap", [lambda network: network, by_rollouts], ids=["value", "rollout"])
@pytest.mark.parametrize(
    ("logits", "value", "line"),
    [
        (np.nan, 0, "a logit that is NaN or infinite on 1 of 1 boards"),
        (-np.inf, 0, "no finite logit for a legal column"),
        (0, np.nan, "a value outside"),
    ],
)
def test_output_that_no_search_can_use_is_refused_before_compiled_code(wrap, logits, value, line):
    """NaN logits leave the compiled search without a best column; it crashed the process."""

    def network(current: Any, mask: Any) -> Any:
        return np.full((len(current), COLUMNS), logits, np.float32), np.full(len(current), value, np.float32)

    with pytest.raises(OutputError, match=line):
        look(PuctSettings(simulations=20), rules.EMPTY, network=wrap(network))


def test_a_rollout_ends_with_the_result_of_the_game():
    def plays_to_the_right(current: Any, mask: Any) -> Any:
        logits, value = uniform(current, mask)
        return logits + 80 * np.arange(COLUMNS, dtype=np.float32), value

    def result(position: Position) -> int:
        """For the side to move, when both always play the last column that is open."""
        if rules.is_won(position):
            return -1
        columns = rules.legal_columns(position)
        return -result(rules.next_position(position, columns[-1])) if columns else 0

    positions = random_positions(20, 12, 12) + random_positions(10, 33, 33)
    logits, value = by_rollouts(plays_to_the_right, seed=1)(*bits(*positions))
    assert value.tolist() == [result(position) for position in positions]
    assert set(value.tolist()) >= {-1.0, 1.0}
    assert logits[0].tolist() == [0, 80, 160, 240, 320, 400, 480]


def test_a_rollout_depends_on_the_position_and_the_seed_alone():
    positions = random_positions(30, 8, 8)
    together = by_rollouts(uniform, seed=1)(*bits(*positions))[1]
    alone = [by_rollouts(uniform, seed=1)(*bits(position))[1][0] for position in positions]
    assert together.tolist() == alone
    assert together.tolist() != by_rollouts(uniform, seed=2)(*bits(*positions))[1].tolist()

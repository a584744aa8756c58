"""Evaluators (`mcts/evaluator.py`). Properties:

- a function of boards guides a search as its equivalent on bitboards does; wrong output is one line that names it;
- a rollout ends with the game's result, and forced games have forced values;
- it depends on the position and the seed alone, whatever else is in its batch.
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
from distill.mcts.evaluator import by_rollouts, on_bitboards
from distill.mcts.puct import PuctSettings


def predict_boards(boards: Any) -> Any:
    """The same in another type and layout."""
    logits, value = predict(*encoding.bitboards(boards))
    return np.asfortranarray(logits.astype(np.float64)), value.astype(np.float64)


def test_a_function_of_boards_guides_a_search():
    settings = PuctSettings(simulations=30)
    expected = look(settings, *STARTS, network=predict)
    for positions in (STARTS, encoding.boards(*bits(*STARTS))):
        results = puct.search(positions, predict_boards, settings, seeds=range(5, 5 + len(STARTS)))
        assert [result.visits.tolist() for result in results] == expected.visits[:, 0].tolist()
        assert [result.votes for result in results] == [(label,) for label in expected.label[:, 0].tolist()]
    first, second = (puct.search([STARTS[1]] * 2, predict_boards, settings, seed) for seed in (1, 2))
    assert first[0].visits.tolist() != first[1].visits.tolist() != second[1].visits.tolist()


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (None, "returned NoneType, not a pair of logits and values"),
        (np.zeros((2, 7)), "returned ndarray, not a pair of logits and values"),
        ((np.zeros((1, 6)), np.zeros(1)), r"returned logits of shape \(1, 6\), not \(1, 7\)"),
        ((np.zeros((1, 7)), np.full(1, 1.5)), r"returned a value outside \[-1, 1\] on 1 of 1 boards"),
    ],
)
def test_output_that_no_search_can_use_is_one_line_that_names_the_evaluator(output, line):
    def mine(_boards: Any) -> Any:
        return output

    with pytest.raises(OutputError, match=f"mine: {line}$"):
        puct.search([rules.EMPTY], mine, PuctSettings(simulations=5))


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


def test_an_evaluator_may_return_the_same_arrays_again():
    logits, value = np.zeros((1, COLUMNS), np.float32), np.zeros(1, np.float32)

    def reuses(boards):
        logits[:] = boards[:, 5]
        return logits, value

    evaluate = on_bitboards(reuses)
    first, _ = evaluate(*bits(rules.from_moves("1")))
    evaluate(*bits(rules.from_moves("7")))
    assert first[0].tolist() == [-1, 0, 0, 0, 0, 0, 0]

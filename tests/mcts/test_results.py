"""The positions and seeds of a search (`mcts/results.py`): those from which no search can start are refused."""

import numpy as np
import pytest
from helpers import bits
from puct_helpers import uniform

from distill.game import encoding
from distill.game.rules import EMPTY, Position, from_moves
from distill.mcts import puct, uct

TWO = [EMPTY, from_moves("44")]
SEARCHES = [
    lambda positions, seeds=0: uct.search(positions, uct.UctSettings(simulations=10, votes=2), seeds),
    lambda positions, seeds=0: puct.search(
        positions, lambda boards: uniform(*encoding.bitboards(boards)), puct.PuctSettings(simulations=10), seeds
    ),
]


@pytest.mark.parametrize("search", SEARCHES, ids=["uct", "puct"])
def test_what_no_search_can_start_from_is_refused(search):
    for seeds, error in (([0], ValueError), ([1, -1], OverflowError), (2**64, OverflowError), ([0, 0.5], TypeError)):
        with pytest.raises(error):
            search(TWO, seeds)
    for positions, line in (
        ([EMPTY, from_moves("1212121")], "position 1: the game is over"),
        ([Position(1, 0)], "position 0: stones of the side to move on empty cells"),
        (np.zeros((1, 7, 6), np.int8), r"boards have shape \(1, 7, 6\)"),
        ([[1, 2]], r"boards have shape \(1, 2\)"),
    ):
        with pytest.raises(ValueError, match=line):
            search(positions)


@pytest.mark.parametrize("search", SEARCHES, ids=["uct", "puct"])
def test_no_positions_give_no_results_and_a_list_of_boards_is_boards(search):
    assert search([]) == search([], []) == search(np.zeros((0, 6, 7), np.int8)) == []
    board = encoding.board(TWO[1])
    one, other, single = (search(boards, [3])[0] for boards in ([TWO[1]], [board], board))
    assert one.visits.tolist() == other.visits.tolist() == single.visits.tolist()


def test_a_pair_of_bitboards_is_not_repeated_to_fit_the_other():
    current, mask = bits(*TWO)
    with pytest.raises(ValueError, match=r"\(1,\).*\(2,\)"):
        encoding.boards(current[:1], mask)

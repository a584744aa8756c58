"""The positions and seeds of a search (`mcts/results.py`). Properties:

- seeds that are not one for each position, or no whole numbers of 64 bits, are refused; so are positions that no game
  has or that are over;
- no positions give no results;
- boards refuse bitboards of different lengths.
"""

from typing import Any

import numpy as np
import pytest
from helpers import bits
from puct_helpers import uniform

from distill.game import encoding, rules
from distill.game.rules import EMPTY, Position, from_moves
from distill.mcts import puct, uct
from distill.mcts.puct import PuctSettings
from distill.mcts.uct import UctSettings

UCT, PUCT = UctSettings(simulations=10, votes=2), PuctSettings(simulations=10)
TWO = [EMPTY, from_moves("44")]


def search(name: str, positions: Any, seeds: Any = 0) -> Any:
    if name == "uct":
        return uct.search(positions, UCT, seeds)
    return puct.search(positions, lambda boards: uniform(*encoding.bitboards(boards)), PUCT, seeds)


@pytest.mark.parametrize("name", ["uct", "puct"])
@pytest.mark.parametrize(
    ("seeds", "error", "line"),
    [
        ([0], ValueError, "1 seeds given, 2 needed, one for each position"),
        ([], ValueError, "0 seeds given, 2 needed"),
        (range(3), ValueError, "3 seeds given, 2 needed"),
        (np.zeros((2, 3), np.uint64), TypeError, "only integer scalar arrays"),
        ([1, -1], OverflowError, "-1 out of bounds for uint64"),
        (2**64, OverflowError, "too large"),
        ([0, 0.5], TypeError, "'float' object cannot be interpreted as an integer"),
        ("12", TypeError, "'str' object"),
        (None, TypeError, "'NoneType' object"),
    ],
)
def test_seeds_that_do_not_fit_the_positions_are_refused(name, seeds, error, line):
    with pytest.raises(error, match=line):
        search(name, TWO, seeds)


@pytest.mark.parametrize("name", ["uct", "puct"])
@pytest.mark.parametrize(
    ("positions", "line"),
    [
        ([EMPTY, from_moves("1212121")], "position 1: the game is over"),
        ([Position(rules.FULL_BOARD, rules.FULL_BOARD)], "position 0: the stone counts do not fit"),
        ([Position(1, 0)], "position 0: stones of the side to move on empty cells"),
        ([Position(0, 2)], "position 0: a stone floats"),
        ([Position(0, 2**63)], "position 0: stones outside the 42 cells"),
        (np.zeros((1, 7, 6), np.int8), r"boards have shape \(1, 7, 6\)"),
        (np.full((1, 6, 7), 2), "boards hold 2"),
        ([[1, 2]], r"boards have shape \(1, 2\)"),
    ],
)
def test_positions_that_no_search_can_start_from_are_refused(name, positions, line):
    with pytest.raises(ValueError, match=line):
        search(name, positions)


@pytest.mark.parametrize("name", ["uct", "puct"])
def test_no_positions_give_no_results_and_a_list_of_boards_is_boards(name):
    assert search(name, []) == search(name, [], []) == search(name, np.zeros((0, 6, 7), np.int8)) == []
    board = encoding.board(TWO[1])
    one, other, single = (search(name, boards, [3])[0] for boards in ([TWO[1]], [board], board))
    assert one.visits.tolist() == other.visits.tolist() == single.visits.tolist()


def test_a_pair_of_bitboards_is_not_repeated_to_fit_the_other():
    current, mask = bits(*TWO)
    for pair in ((current[:1], mask), (current, mask[:1])):
        with pytest.raises(ValueError, match=r"\(1,\).*\(2,\)|\(2,\).*\(1,\)"):
            encoding.boards(*pair)

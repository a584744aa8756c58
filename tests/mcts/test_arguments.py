"""What is given to a search (`mcts/arguments.py`). Properties:

- seeds and games that are not one for each position, or no whole numbers of 64 bits, are refused in one line that says
  how many were given and how many are needed; NumPy's integers are as good as Python's;
- so are positions that no game has or that are over, games of no positions, lanes below 1, and
  kept evaluations of a wrong size;
- no positions give no results;
- functions of rules, boards, tactics and players refuse bitboards and seeds of different lengths.
"""

from typing import Any

import numpy as np
import pytest
from helpers import bits
from puct_helpers import uniform

from distill.game import encoding, rules, tactics
from distill.game.rules import EMPTY, Position, from_moves
from distill.mcts import puct, reference, uct
from distill.mcts.engine.puct_tree import new_evaluations
from distill.mcts.puct import PuctSettings
from distill.mcts.uct import UctSettings
from distill.players.player import RandomPlayer, checked_choices

UCT, PUCT = UctSettings(simulations=10, votes=2), PuctSettings(simulations=10)
TWO = [EMPTY, from_moves("44")]


def search(name: str, positions: Any, seeds: Any = 0) -> Any:
    if name == "uct":
        return uct.search(positions, UCT, seeds)
    return puct.search(positions, lambda boards: uniform(*encoding.bitboards(boards)), PUCT, seeds)


@pytest.mark.parametrize("name", ["uct", "puct"])
@pytest.mark.parametrize(
    ("seeds", "line"),
    [
        ([0], "1 seeds given, 2 needed, one for each position"),
        ([], "0 seeds given, 2 needed"),
        (range(3), "3 seeds given, 2 needed"),
        (np.zeros((2, 3), np.uint64), r"seed array\(.*\) is not a whole number"),
        ([1, -1], r"seed -1 is not from 0 to 2\^64 - 1"),
        (2**64, r"seed 18446744073709551616 is not from 0"),
        ([0, 0.5], "seed 0.5 is not a whole number"),
        (np.float64(1), r"seed np.float64\(1.0\) is not"),
        ("12", "seed '12' is not a whole number"),
        (None, "seed None is not"),
    ],
)
def test_seeds_that_do_not_fit_the_positions_are_refused(name, seeds, line):
    with pytest.raises(ValueError, match=f"^{name}: {line}"):
        search(name, TWO, seeds)


@pytest.mark.parametrize("name", ["uct", "puct"])
def test_integers_of_numpy_are_seeds(name):
    def visits(seeds: Any) -> list[list[int]]:
        return [result.visits.tolist() for result in search(name, TWO, seeds)]

    assert visits(np.int64(5)) == visits(np.array(5)) == visits(5)
    assert visits([7, 8]) == visits(np.array([7, 8])) == visits((np.uint64(7), np.uint8(8))) == visits(range(7, 9))
    assert visits(2**64 - 1) == visits(np.uint64(2**64 - 1))


@pytest.mark.parametrize("name", ["uct", "puct"])
@pytest.mark.parametrize(
    ("positions", "line"),
    [
        ([EMPTY, from_moves("1212121")], "position 1: the game is over"),
        ([Position(rules.FULL_BOARD, rules.FULL_BOARD)], "position 0: the stone counts do not fit"),
        ([Position(1, 0)], "position 0: stones of the side to move on empty cells"),
        ([Position(0, 2)], "position 0: a stone floats"),
        ([Position(0, 2**63)], "position 0: stones outside the 42 cells"),
        ([Position(0, -1)], "position 0: stones outside the 42 cells"),
        ([Position(0, 2**70)], "bitboards of type object"),
        ([Position(0.0, 0.0)], "bitboards of type float64"),
        (np.zeros((1, 7, 6), np.int8), r"boards have shape \(1, 7, 6\)"),
        (np.full((1, 6, 7), 2), "boards hold 2"),
        (EMPTY, "positions are one Position, not a list of positions or boards"),
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
    one, other, single = (search(name, given, [3])[0] for given in (iter([TWO[1]]), [board], board))
    assert one.visits.tolist() == other.visits.tolist() == single.visits.tolist()


def play_games(name: str, positions: tuple[Any, Any] = bits(*TWO), **options: Any) -> Any:
    return (
        uct.play_games(*positions, UCT, **options)
        if name == "uct"
        else puct.play_games(*positions, PUCT, uniform, **options)
    )


@pytest.mark.parametrize("name", ["uct", "puct"])
@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"games": [1]}, "1 games given, 2 needed"),
        ({"games": []}, "0 games given, 2 needed"),
        ({"games": [0, -1]}, "game -1 is not from 0"),
        ({"seeds": [1, 2, 3]}, "3 seeds given, 2 needed"),
        ({"games": [0, 2**64]}, "game 18446744073709551616 is not from 0"),
        ({"steps": 0}, "steps 0 is not from 1"),
        ({"lanes": 0}, "lanes 0 is not from 1"),
        ({"lanes": -3}, "lanes -3 is not from 1"),
    ],
)
def test_games_steps_and_lanes_that_do_not_fit_are_refused(name, given, line):
    with pytest.raises(ValueError, match=f"^{name}: {line}"):
        play_games(name, **given)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"known": np.zeros(0, np.uint64)}, "kept has space for 0 evaluations, not for a power of two"),
        ({"known": np.zeros(12, np.uint64)}, "kept has space for 12 evaluations, not for a power of two"),
        ({"known": np.zeros(32, np.uint64)}, "kept has 128 values for 32 evaluations, 256 needed"),
        ({"values": np.zeros(127, np.float32)}, "kept has 127 values for 16 evaluations, 128 needed"),
    ],
)
def test_puct_refuses_kept_evaluations_of_a_wrong_size(changed, line):
    with pytest.raises(ValueError, match=f"^puct: {line}$"):
        play_games("puct", kept=new_evaluations(4)._replace(**changed))


@pytest.mark.parametrize("name", ["uct", "puct"])
def test_games_of_numpy_are_games(name):
    first, second = (play_games(name, seeds=4, games=games, steps=2) for games in (None, np.arange(2)))
    assert np.array_equal(first.visits, second.visits)


@pytest.mark.parametrize("name", ["uct", "puct"])
def test_a_search_refuses_stones_and_masks_that_are_not_equally_many(name):
    current, mask = bits(*TWO)
    for pair in ((current[:1], mask), (current, mask[:1])):
        with pytest.raises(ValueError, match="they must have the same shape"):
            play_games(name, pair)
    with pytest.raises(ValueError, match=r"bitboards of shape \(1, 2\)"):
        play_games(name, (current[None], mask[None]))


def test_the_textbook_refuses_another_number_of_votes():
    with pytest.raises(ValueError, match="1 keys given, 2 needed"):
        reference.label(EMPTY, [1], [[0.0] * 7], [[1.0] * 7], [1.0] * 8, UCT)


@pytest.mark.parametrize(
    "function", [encoding.boards, rules.are_over, rules.is_own_mirror, rules.canonicalise, tactics.wins, tactics.traps]
)
def test_a_pair_of_bitboards_is_not_repeated_to_fit_the_other(function):
    current, mask = bits(*TWO)
    for pair in ((current[:1], mask), (current, mask[:1])):
        with pytest.raises(ValueError, match=r"\(1,\).*\(2,\)|\(2,\).*\(1,\)"):
            function(*pair)


@pytest.mark.parametrize("seeds", [np.zeros(1, np.uint64), np.zeros(2, np.int64), np.zeros((2, 1), np.uint64), 5])
def test_a_player_refuses_seeds_that_are_not_one_for_each_position(seeds):
    with pytest.raises(ValueError, match=r"^random: .* each must be uint64 \(2,\)"):
        checked_choices(RandomPlayer(), *bits(*TWO), seeds)

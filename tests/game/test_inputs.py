"""Boards from elsewhere (`game/inputs.py`): a position of any game passes, another board is refused with the reason."""

import numpy as np
import pytest
from helpers import bits, random_game

from distill.game import encoding, inputs, rules


def board_of(moves: str) -> np.ndarray:
    return encoding.boards(*bits(rules.from_moves(moves)))[0]


BOARD = board_of("4453")
FULL = np.where(np.add.outer(np.arange(6) // 2, np.arange(7)) % 2, 1, -1)


def test_positions_of_games_pass_unchanged():
    games = [random_game(seed) for seed in range(20)]
    boards = encoding.boards(*bits(*(position for game in games for position in game)))
    assert any(rules.is_won(game[-1]) for game in games)
    for kind in (np.int8, np.int64, np.float32):
        found = inputs.boards(boards.astype(kind))
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found, boards)
    np.testing.assert_array_equal(inputs.boards(FULL), FULL)
    np.testing.assert_array_equal(inputs.boards(BOARD.tolist()), BOARD)
    assert inputs.boards(np.zeros((0, 6, 7))).shape == (0, 6, 7)


MARKS = np.where(BOARD == 0, 0, np.where(BOARD == 1, 1, 2))
CHANGED = BOARD.astype(float)
CHANGED[0, 0] = np.nan


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (MARKS, "boards hold 2; row 0 is the top row, 1 the side to move"),
        (BOARD / 2, "boards hold -0.5, 0.5; "),
        (BOARD == 1, "values of type bool"),
        (CHANGED, "boards hold nan; "),
        (BOARD.astype(str), "values of type <U"),
        (BOARD.T, "shape (7, 6), not (B, 6, 7) or (6, 7); "),
        (np.stack([BOARD == 1, BOARD == -1, BOARD == 0]).astype(int), "board 1: a stone floats above an empty cell; "),
        (BOARD[::-1], "the board: a stone floats above an empty cell; row 0 is the top row"),
        (
            -board_of("445"),
            "the board: the stone counts do not fit alternating moves; row 0 is the top row, 1 the side",
        ),
        (abs(BOARD), "the board: the stone counts do not fit alternating moves; "),
    ],
)
def test_another_board_is_refused_with_how_to_convert_it(given, line):
    with pytest.raises(ValueError, match="board") as caught:
        inputs.boards(given)
    assert line in str(caught.value)
    assert str(caught.value).endswith("(docs/networks.md converts other boards)")
    assert "\n" not in str(caught.value)

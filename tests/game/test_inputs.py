"""Boards from elsewhere (`game/inputs.py`). Properties:

- every position of a game passes, as any kind of number and in any batch, with a won game and a full board among them;
- each way of writing a board that is not this one is refused with what was found and how to convert it.
"""

from __future__ import annotations

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
FLOATING = BOARD.copy()
FLOATING[2, 6] = 1
CHANGED = BOARD.astype(float)
CHANGED[0, 0] = np.nan


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (MARKS, "not 2; from Kaggle's: np.where(marks == 0, 0, np.where(marks == mark_to_move, 1, -1))"),
        (BOARD / 2, "not -0.5, 0.5"),
        (BOARD == 1, "not values of type bool"),
        (BOARD.astype(np.uint8), "not 255; from unsigned bytes: astype(np.int8)"),
        (CHANGED, "not nan"),
        (BOARD.astype(str), "not values of type <U"),
        (MARKS.ravel(), "shape (42,), not (B, 6, 7) or (6, 7); a list of 42 cells, the top row first, becomes a board"),
        (BOARD.T, "shape (7, 6), not (B, 6, 7) or (6, 7)"),
        (encoding.planes(BOARD, 3), "shape (6, 7, 3), not (B, 6, 7) or (6, 7); planes become boards"),
        (np.stack([BOARD == 1, BOARD == -1, BOARD == 0]).astype(int), "board 1 has a stone above an empty cell"),
        ([[0] * 7] * 5 + [[0] * 6], "rows of different lengths"),
        (BOARD[::-1], "column 2, both counted from 0; row 0 must be the top row: board[::-1]"),
        (np.stack([0 * BOARD, BOARD[::-1]]), "board 1 has a stone above an empty cell, in row 0, column 2"),
        (FLOATING, "the board has a stone above an empty cell, in row 2, column 6, both counted from 0"),
        (
            -board_of("445"),
            "2 stones of the side to move and 1 of the opponent: the other side is to move, so multiply",
        ),
        (abs(BOARD), "the board has 4 stones of the side to move and 0 of the opponent; the side to move has as many"),
        (-abs(board_of("44")), "0 stones of the side to move and 2 of the opponent; the side to move has as many"),
    ],
)
def test_another_board_is_refused_with_how_to_convert_it(given, line):
    with pytest.raises(ValueError, match="board") as caught:
        inputs.boards(given)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)

"""Positions as arrays, seen from the side to move.

* A drawn board becomes the arrays one reads off the drawing: row 0 on top, own stones +1, written out.
* Boards and bitboards are inverse to each other; planes, tokens and mirrors say what the boards say.

The same functions run on keras.ops (`test_networks`: what the graph sees).
"""

import numpy as np
import pytest
from helpers import bits, low, random_game
from hypothesis import given
from hypothesis import strategies as st

from distill.game import encoding, rules
from distill.game.rules import Position

DRAWING = low("""
    O . . . . . .
    X O . . . . .
    X X O . . X .
""")


def position_of(seed: int) -> Position:
    """A position of a game of random moves."""
    game = random_game(seed)
    return game[seed % len(game)]


def test_stones_of_both_sides_in_place_of_the_mask_are_refused():
    with pytest.raises(ValueError, match="mask must hold all stones"):
        encoding.boards([0b1], [0b10])


batches = st.lists(st.integers(0, 2**32).map(position_of), max_size=12)


def test_a_drawn_board_becomes_the_array_one_reads_off_it():
    position = rules.parse_board(DRAWING)  # seven stones: O is to move
    board = encoding.boards(position.current, position.mask)
    assert board.dtype == np.int8
    assert board.tolist() == [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0],
        [-1, 1, 0, 0, 0, 0, 0],
        [-1, -1, 1, 0, 0, -1, 0],
    ]
    own, opponent, empty = np.moveaxis(encoding.planes(board[None], channels=3)[0], -1, 0)
    assert own.dtype == bool
    assert np.argwhere(own).tolist() == [[3, 0], [4, 1], [5, 2]]
    assert np.argwhere(opponent).tolist() == [[4, 0], [5, 0], [5, 1], [5, 5]]
    assert (empty == ~(own | opponent)).all()
    (tokens,) = encoding.tokens(board[None])
    assert tokens.tolist() == [0] * 21 + [1, 0, 0, 0, 0, 0, 0] + [2, 1, 0, 0, 0, 0, 0] + [2, 2, 1, 0, 0, 2, 0]


@given(batches)
def test_decoding_an_encoded_batch_gives_the_positions_back(batch):
    current, mask = bits(*batch)
    boards = encoding.boards(current, mask)
    assert boards.shape == (len(batch), 6, 7)
    decoded_current, decoded_mask = encoding.bitboards(boards)
    assert decoded_current.dtype == decoded_mask.dtype == np.uint64
    assert decoded_current.tolist() == current.tolist()
    assert decoded_mask.tolist() == mask.tolist()
    for position, board in zip(batch, boards, strict=True):  # one at a time, and for the other side
        np.testing.assert_array_equal(encoding.boards(position.current, position.mask), board)
        np.testing.assert_array_equal(encoding.boards(position.opponent, position.mask), -board)
        assert tuple(map(int, encoding.bitboards(board))) == (position.current, position.mask)
        assert np.flatnonzero(board[0] == 0).tolist() == rules.legal_columns(position)


@given(st.lists(st.integers(0, 2**32).map(position_of), min_size=1, max_size=12))
def test_mirrors_planes_and_tokens_say_what_the_boards_say(batch):
    boards = encoding.boards(*bits(*batch))
    assert (encoding.boards(*bits(*map(rules.mirror, batch))) == boards[:, :, ::-1]).all()
    two, three = encoding.planes(boards), encoding.planes(boards, 3)
    assert (two == three[..., :2]).all()
    assert (three.sum(-1) == 1).all()
    assert (two[..., 0].astype(int) - two[..., 1] == boards).all()
    assert (np.array([0, 1, -1])[encoding.tokens(boards)] == boards.reshape(-1, 42)).all()

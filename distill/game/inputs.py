"""Check boards from outside this package before a network evaluates them.

A network returns a move for any numbers. Given Kaggle's marks, a board upside down or one from the wrong point of view,
it would play badly without any error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.game.rules import CELLS, COLUMNS, ROWS


def boards(given: ArrayLike) -> NDArray[np.int8]:
    """Boards (B, 6, 7), or one (6, 7), as int8, with row 0 on top: 1 the side to move, -1 the opponent, 0 empty.

    Raises ValueError, which says what was found and how to convert it, for another shape, other values, a stone above
    an empty cell, and stone counts that no game has with this side to move. A wrong side to move goes unnoticed where
    both sides have equally many stones.
    """
    try:
        array = np.asarray(given)
    except ValueError:  # NumPy's own message is about sequences
        raise ValueError("boards have rows of different lengths") from None
    if array.ndim not in (2, 3) or array.shape[-2:] != (ROWS, COLUMNS):
        expected = f"(B, {ROWS}, {COLUMNS}) or ({ROWS}, {COLUMNS})"
        raise ValueError(f"boards have shape {array.shape}, not {expected}{_hint_of_shape(array.shape)}")
    own, opponent = array == 1, array == -1
    stones = own | opponent
    if array.dtype.kind not in "iuf" or not (stones | (array == 0)).all():
        raise ValueError(_about_values(array))
    floating = stones[..., :-1, :] & ~stones[..., 1:, :]
    if floating.any():
        raise ValueError(_about_floating(stones, floating))
    lead = np.count_nonzero(own, (-2, -1)) - np.count_nonzero(opponent, (-2, -1))
    wrong = (lead != 0) & (lead != -1) & ~stones.all((-2, -1))  # a full board has no side to move
    if wrong.any():
        raise ValueError(_about_counts(stones, lead, wrong))
    return array.astype(np.int8)


def _hint_of_shape(shape: tuple[int, ...]) -> str:
    if shape[-1:] == (CELLS,):
        return f"; a list of {CELLS} cells, the top row first, becomes a board by reshape({ROWS}, {COLUMNS})"
    if shape[-3:-1] == (ROWS, COLUMNS):
        return "; planes become boards by taking those of the opponent from those of the side to move"
    return ""


def _about_values(array: NDArray[Any]) -> str:
    wanted = "boards hold 1 for the side to move, -1 for the opponent and 0 for empty cells, not"
    if array.dtype.kind not in "iuf":
        return f"{wanted} values of type {array.dtype}"
    wrong = np.unique(array[(array != 1) & (array != -1) & (array != 0)])
    found = f"{wanted} {', '.join(f'{value:g}' for value in wrong[:3])}"
    if wrong.tolist() == [2]:
        return f"{found}; from Kaggle's: np.where(marks == 0, 0, np.where(marks == mark_to_move, 1, -1))"
    if wrong.tolist() == [255]:
        return f"{found}; from unsigned bytes: astype(np.int8)"
    return found


def _about_floating(stones: NDArray[np.bool_], floating: NDArray[np.bool_]) -> str:
    *number, row, column = np.argwhere(floating)[0].tolist()
    found = f"{_name(number)} has a stone above an empty cell, in row {row}, column {column}, both counted from 0"
    turned = stones[tuple(number)][::-1]
    if (turned[:-1] & ~turned[1:]).any():
        return found
    return f"{found}; row 0 must be the top row: {'boards[:, ::-1]' if number else 'board[::-1]'}"


def _about_counts(stones: NDArray[np.bool_], lead: Any, wrong: Any) -> str:
    number = np.argwhere(wrong)[0].tolist()
    more, total = int(lead[tuple(number)]), int(np.count_nonzero(stones[tuple(number)]))
    own, opponent = (total + more) // 2, (total - more) // 2
    found = f"{_name(number)} has {own} stones of the side to move and {opponent} of the opponent"
    if more == 1:
        return f"{found}: the other side is to move, so multiply by -1"
    return f"{found}; the side to move has as many as the opponent or one fewer"


def _name(number: list[int]) -> str:
    return f"board {number[0]}" if number else "the board"

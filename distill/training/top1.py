"""Top-1 accuracy against the teacher, over raw rows in the orientation in which they were played.

The rows are those of `validation.validation_rows`. A packed board counts as a game of one row; its label is the column
with most visits.

    top1_all       = share of all rows whose label is the argmax of the masked logits
    top1_unseen    = the same over rows whose board is in the training table in no orientation
    top1_first_19  = the same over the first 19 rows of each game

On a board that is its own mirror a column and its mirror image count as the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.datasets import batching, validation
from distill.game import encoding, rules
from distill.games import reader

if TYPE_CHECKING:
    from distill.networks.predict import Predict


FIRST_ROWS = 19
"""Rows of a game that are also counted separately: about the length of the published system's games."""

AT_ONCE = 1 << 16
"""Boards evaluated per call: their arrays take 50 MB."""


def measure(predict: Predict, rows: reader.RawRows, training: batching.Examples) -> dict[str, Any]:
    """The three shares, and the rows behind each; a share over no rows is None."""
    agreed = agrees(rows, chosen_columns(predict, rows))
    unseen = ~validation.seen(training, rows.current, rows.mask)
    chosen = {"all": np.ones(len(rows), np.bool_), "unseen": unseen}
    return _shares(agreed, chosen | {f"first_{FIRST_ROWS}": is_early(rows)})


def chosen_columns(predict: Predict, rows: reader.RawRows) -> NDArray[np.int32]:
    """int32 (N,): the network's column on each row; equal boards are evaluated once."""
    boards, inverse = np.unique(np.stack([rows.current, rows.mask], axis=1), axis=0, return_inverse=True)
    parts = (boards[first : first + AT_ONCE] for first in range(0, len(boards), AT_ONCE))
    moves = [predict(encoding.boards(part[:, 0], part[:, 1]))["move"] for part in parts]
    return np.concatenate([np.empty(0, np.int32), *moves])[inverse.reshape(-1)]


def agrees(rows: reader.RawRows, columns: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """bool (N,): whether `columns` (N,) are the rows' labels, or on a self-mirrored board their mirror images."""
    # The teacher may have chosen the mirror image of the same move.
    symmetric = rules.is_own_mirror(rows.current, rows.mask)
    found: NDArray[np.bool_] = (columns == rows.label) | (symmetric & (columns == rules.COLUMNS - 1 - rows.label))
    return found


def is_early(rows: reader.RawRows) -> NDArray[np.bool_]:
    """bool (N,): whether a row is among the FIRST_ROWS of its game; `rows` hold whole games, in the order played.

    Several runs may number their games alike, so a game also ends where the number of stones does not increase.
    """
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows.game[1:] != rows.game[:-1]) | (rows.ply[1:] <= rows.ply[:-1])
    number = np.arange(len(rows))
    early: NDArray[np.bool_] = number - np.maximum.accumulate(np.where(begins, number, 0)) < FIRST_ROWS
    return early


def _shares(agreed: NDArray[np.bool_], chosen: Mapping[str, NDArray[np.bool_]]) -> dict[str, Any]:
    shares = {f"top1_{name}": float(agreed[rows].mean()) if rows.any() else None for name, rows in chosen.items()}
    return shares | {f"rows_{name}": int(rows.sum()) for name, rows in chosen.items()}

"""How often a network's column is the teacher's label, over raw rows in the orientation they were played in.

    agreement_all     = share of all rows whose label is the argmax of the masked logits
    agreement_unseen  = the same over rows whose board is, in no orientation, in the training table

On a board that is its own mirror a column and its mirror image count as the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.game import encoding, rules
from distill.tables import tables

if TYPE_CHECKING:
    from distill.nets.predict import Predict


def measure(predict: Predict, rows: tables.RawRows, training: tables.Examples) -> dict[str, Any]:
    """The two shares, the rows behind each, and both by ply; a share over no rows is None."""
    agreed = agrees(rows, chosen_columns(predict, rows))
    unseen = ~tables.seen(training, rows.current, rows.mask)
    by_ply = {str(ply): _shares(agreed, unseen, rows.ply == ply) for ply in np.unique(rows.ply)}
    return _shares(agreed, unseen, np.ones(len(rows), np.bool_)) | {"by_ply": by_ply}


def chosen_columns(predict: Predict, rows: tables.RawRows) -> NDArray[np.int32]:
    """int32 (N,): the network's column on each row; a board met often is asked once."""
    boards, inverse = np.unique(np.stack([rows.current, rows.mask], axis=1), axis=0, return_inverse=True)
    moves: NDArray[np.int32] = predict(encoding.boards(boards[:, 0], boards[:, 1]))["move"]
    return moves[inverse.reshape(-1)]


def agrees(rows: tables.RawRows, columns: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """bool (N,): whether `columns` (N,) are the rows' labels, or on a self-mirrored board their mirror images."""
    symmetric = rules.is_own_mirror(rows.current, rows.mask)
    found: NDArray[np.bool_] = (columns == rows.label) | (symmetric & (columns == rules.COLUMNS - 1 - rows.label))
    return found


def _shares(agreed: NDArray[np.bool_], unseen: NDArray[np.bool_], where: NDArray[np.bool_]) -> dict[str, Any]:
    chosen = {"all": where, "unseen": where & unseen}
    shares = {f"agreement_{name}": float(agreed[rows].mean()) if rows.any() else None for name, rows in chosen.items()}
    return shares | {f"rows_{name}": int(rows.sum()) for name, rows in chosen.items()}

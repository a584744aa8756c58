"""The rule that makes one label of several votes, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS_FROM_CENTRE


def majority(votes: NDArray[np.integer[Any]], visits: NDArray[np.integer[Any]]) -> NDArray[np.int8]:
    """int8 (B,): the column with most votes, then most visits, then nearest the centre, then the lower; both (B, 7)."""
    order = np.array(COLUMNS_FROM_CENTRE)
    votes, visits = votes[:, order], visits[:, order]
    leading = np.where(votes == votes.max(axis=1, keepdims=True), visits, -1)
    best: NDArray[np.int8] = order[leading.argmax(axis=1)].astype(np.int8)
    return best

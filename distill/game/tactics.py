"""Tactics without search: wins in one move, threats, lines by direction.

Everything is vectorised over B boards: bitboards are uint64 (B,), masks of columns bool (B, 7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS, LINE_SHIFTS, Bitboards, has_four, landing

Columns = NDArray[np.bool_]

DIRECTIONS: dict[str, int] = dict(zip(("vertical", "falling", "horizontal", "rising"), LINE_SHIFTS, strict=True))
"""Bit distance between neighbours on a line of each direction, as seen by the reader: rising goes up to the right."""


def wins_in(stones: Bitboards, mask: Bitboards, direction: str) -> Columns:
    """bool (B, 7), True where a stone added to `stones` completes four in this direction."""
    cells, shift = landing(mask), np.uint64(DIRECTIONS[direction])
    added = stones[:, None] | cells
    pairs = added & (added >> shift)
    return (cells != 0) & ((pairs & (pairs >> (shift + shift))) != 0)


def wins(stones: Bitboards, mask: Bitboards) -> Columns:
    """bool (B, 7), True where a stone added to `stones` completes four. The boards must not be over."""
    cells = landing(mask)
    return (cells != 0) & has_four(stones[:, None] | cells)


def traps(stones: Bitboards, mask: Bitboards) -> Columns:
    """bool (B, 7), True where a stone added to `stones` makes a threat that one reply cannot stop.

    It then has two winning columns, or one and a second win on top of the block. Whether the reply wins, or makes a
    threat itself, is not checked.
    """
    trapping = np.zeros((len(mask), COLUMNS), np.bool_)
    for column, cell in enumerate(landing(mask).T):
        added, after = stones | cell, mask | cell
        # After this stone: what it threatens, the forced block, and what lies on top of it.
        threats = wins(added, after)
        block = landing(after)[np.arange(len(mask)), threats.argmax(1)]
        above = wins(added, after | block)
        trapping[:, column] = (cell != 0) & ((threats.sum(1) > 1) | (threats.any(1) & above.any(1)))
    return trapping

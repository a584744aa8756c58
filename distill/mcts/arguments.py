"""Check what a caller gives to a search, because compiled code checks nothing.

Each function returns what the search uses, or raises ValueError, which begins with `who`: the search that was called.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from distill.game.rules import Bitboards, are_over, check_shapes, faults


def starts(who: str, current: Any, mask: Any) -> tuple[Bitboards, Bitboards]:
    """`current` and `mask`, integers (G,), as uint64. In none of these positions the game is over."""
    check_shapes(current, mask)
    pair = [np.asarray(bits) for bits in (current, mask)]
    if pair[0].ndim != 1:
        raise ValueError(f"{who}: bitboards of shape {pair[0].shape}, not (G,)")
    if wrong := [bits.dtype for bits in pair if bits.size and bits.dtype.kind not in "iu"]:
        raise ValueError(f"{who}: bitboards of type {wrong[0]}, not whole numbers of 64 bits")
    current, mask = (bits.astype(np.uint64) for bits in pair)
    for faulty, what in faults(current, mask):
        if faulty.any():
            raise ValueError(f"{who}: position {faulty.argmax()}: {what}")
    # A search of a finished game would have no move to choose.
    if (over := are_over(current, mask)).any():
        raise ValueError(f"{who}: position {over.argmax()}: the game is over, so there is nothing to search")
    return current, mask


def streams(who: str, seeds: Any, number: int, games: Any = None) -> list[tuple[int, int]]:
    """(seed, game), the source of the random numbers, for each of `number` positions.

    Args:
      seeds: one seed for all positions, or a seed for each.
      games: the game of each position; None: 0, 1, ... with one seed, and 0 with a seed for each.
    """
    if np.ndim(seeds) == 0:
        position_seeds, default_games = [whole(who, "seed", seeds)] * number, list(range(number))
    else:
        position_seeds, default_games = _wholes(who, "seeds", seeds, number), [0] * number
    position_games = default_games if games is None else _wholes(who, "games", games, number)
    return list(zip(position_seeds, position_games, strict=True))


def _wholes(who: str, what: str, values: Any, number: int) -> list[int]:
    """Whole numbers of 64 bits, one for each of `number` positions."""
    values = list(values)
    if len(values) != number:
        raise ValueError(f"{who}: {len(values)} {what} given, {number} needed, one for each position")
    return [whole(who, what.removesuffix("s"), value) for value in values]


def whole(who: str, what: str, value: Any, least: int = 0) -> int:
    """A whole number, Python's or NumPy's, of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ValueError(f"{who}: {what} {value!r} is not a whole number") from error
    if not least <= number < 2**64:
        raise ValueError(f"{who}: {what} {number} is not from {least} to 2^64 - 1")
    return number

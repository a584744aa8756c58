"""A hash of integers: one step of the generator SplitMix64 (Steele, Lea & Flood 2014).

Random draws that depend on a position, game or ply alone, not on earlier draws, are computed from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the step between one state of the generator and the next."""


def mix(word: Any) -> Any:
    """The output of the generator in this state, uint64, without its step; searches compile this."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def splitmix64(numbers: ArrayLike) -> NDArray[np.uint64]:
    """Pseudorandom uint64 of the same shape as `numbers`, or (1,) for a single number; equal inputs give equal outputs.

    The number z is a state of the generator, and its output, all modulo 2^64:

        z = z + GOLDEN
        z = (z ^ (z >> 30)) · 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) · 0x94D049BB133111EB
        z ^ (z >> 31)
    """
    return np.asarray(mix(np.atleast_1d(np.asarray(numbers, np.uint64)) + np.uint64(GOLDEN)))


def draw_by(weights: NDArray[Any], random: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64 (B,), for each row a column drawn in proportion to its weights, (B, A), by pseudorandom uint64 (B,)."""
    reached = weights.cumsum(1)
    fractions = (random >> np.uint64(11)).astype(np.float64) * 2.0**-53  # the upper 53 bits: uniform in [0, 1)
    return np.argmax(reached > fractions[:, None] * reached[:, -1:], 1)

"""Numbers that look random, as a function of numbers: the output function of SplitMix64 (Steele, Lea & Flood 2014).

Draws that are to depend on a position, a game or a ply alone, and not on what was drawn before, are made of these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the step between one state of the generator and the next."""


def mix(numbers: ArrayLike) -> NDArray[np.uint64]:
    """Unlike numbers give unrelated ones: uint64 of the same shape, or (1,) for a single number.

    The number z is a state of the generator, and its output, all modulo 2^64:

        z = z + GOLDEN
        z = (z ^ (z >> 30)) · 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) · 0x94D049BB133111EB
        z ^ (z >> 31)
    """
    z = np.atleast_1d(np.asarray(numbers, np.uint64)) + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed

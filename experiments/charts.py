"""What the charts of several experiments share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distill.players.intervals import Estimate

GRID = "#d9d9d9"


def in_percent(estimates: Sequence[Estimate]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Means, and how far the intervals reach below and above them."""
    low, means, high = 100 * np.array([(one.low, one.mean, one.high) for one in estimates]).reshape(-1, 3).T
    return means, [means - low, high - means]

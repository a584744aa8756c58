"""The machine around a process: its processors and its memory limit."""

from __future__ import annotations

import os
import re
from pathlib import Path

from distill.common.errors import UserError

LIMITS = Path("/proc/self/limits")


def cores() -> int:
    """Processors that this process may use: its affinity, or less under a container's quota."""
    from joblib import cpu_count  # not at the top, because it takes a while

    try:
        return int(cpu_count())
    except ValueError as error:
        raise UserError(f"LOKY_MAX_CPU_COUNT={os.environ.get('LOKY_MAX_CPU_COUNT')}: must be a number") from error


def require_address_space(size: int, whose: str) -> None:
    """Raise UserError if `ulimit -v` allows less than `size` bytes: C++ would end the process without a message."""
    limits = LIMITS.read_text(encoding="utf-8") if LIMITS.exists() else ""  # there are none but on Linux
    found = re.search(r"Max address space +(\d+)", limits)
    if found and int(found[1]) < size:
        limit = int(found[1]) >> 10
        raise UserError(f"not enough memory for {whose}: ulimit -v is {limit}, raise it to {size >> 10} or unlimited")


def lacks_memory(error: BaseException) -> bool:
    """Whether memory, address space or threads ran out. Libraries report that in different ways."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"  # TensorFlow's, which is not imported for this
        or "can't start new thread" in text
        or (isinstance(error, ImportError) and ("failed to map segment" in text or "cannot allocate memory" in text))
    )

"""The machine around a process: its processors and its memory limit."""

from __future__ import annotations

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
        raise UserError(f"LOKY_MAX_CPU_COUNT: must be a number ({error})") from error


def require_address_space(size: int, whose: str) -> None:
    """Raise UserError if `ulimit -v` allows less than `size` bytes: C++ would end the process without a message."""
    limits = LIMITS.read_text(encoding="utf-8") if LIMITS.exists() else ""  # Windows and macOS have none
    limit = re.search(r"Max address space +(\d+)", limits)
    if limit and int(limit[1]) < size:
        advice = f"ulimit -v is {int(limit[1]) >> 10}, raise it to {size >> 10} or unlimited"
        raise UserError(f"not enough memory for {whose}: {advice}")


def lacks_memory(error: BaseException) -> bool:
    """Whether memory or threads ran out. Libraries report that in different ways."""
    name = type(error).__name__  # of TensorFlow's error, which is not imported for this
    return isinstance(error, MemoryError) or name == "ResourceExhaustedError" or "start new thread" in str(error)

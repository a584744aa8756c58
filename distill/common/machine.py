"""The machine around a process: its processors and its memory limit."""

from __future__ import annotations

import sys

from distill.common.errors import UserError


def cores() -> int:
    """Processors that this process may use: its affinity, or less under a container's quota."""
    from joblib import cpu_count  # not at the top, because it takes a while

    try:
        return int(cpu_count())
    except ValueError as error:
        raise UserError(f"LOKY_MAX_CPU_COUNT: must be a number ({error})") from error


def require_address_space(size: int, whose: str) -> None:
    """Raise UserError if `ulimit -v` allows less than `size` bytes: C++ would end the process without a message."""
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < size:
            advice = f"ulimit -v is {limit >> 10}, raise it to {size >> 10} or unlimited"
            raise UserError(f"not enough memory for {whose}: {advice}")


def lacks_memory(error: BaseException) -> bool:
    """Whether memory or threads ran out. Libraries report that in different ways."""
    name = type(error).__name__  # of TensorFlow's error, which is not imported for this
    return isinstance(error, MemoryError) or name == "ResourceExhaustedError" or "start new thread" in str(error)

"""The machine around a process: its processors, its memory limit, environment variables of libraries."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from distill.common.errors import UserError

LIMITS = Path("/proc/self/limits")


def cores() -> int:
    """Processors that this process may use: its affinity, or less under a container's quota."""
    from joblib import cpu_count  # not at the top, because it takes a while

    return int(cpu_count())


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


def variables(*prefixes: str) -> str:
    """Environment variables with these prefixes and their values, for a message about the library that reads them."""
    found = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(prefixes)]
    return ", ".join(found) or f"no variable {' or '.join(f'{prefix}*' for prefix in prefixes)} is set"


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Remove environment variables inside the block."""
    found = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(found)

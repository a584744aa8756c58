"""What a process finds around it: its processors, the end of its memory, environment variables of other libraries."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from distill.common.errors import UserError

CGROUPS, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
"""Where Linux shows control groups, and to which of them this process belongs."""
LIMITS = Path("/proc/self/limits")


def cores() -> int:
    """Processors this process may use: its affinity, or less under a container's quota of processor time."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *map(math.ceil, _quotas())]))


def _quotas() -> Iterator[float]:
    """The quotas, in processors, of this process's control group and of those around it, by version 2 or 1."""
    for line in _text(MEMBERSHIP).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = CGROUPS / "cpu" if controllers else CGROUPS
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):  # a container may see its own group as the root
            if not folder.is_relative_to(root):
                break
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            limit = " ".join(_text(folder / name) for name in names).split()
            if len(limit) == 2 and limit[0].isdecimal() and limit[1].isdecimal():  # else "max" or -1: no quota
                yield int(limit[0]) / max(1, int(limit[1]))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def require_address_space(size: int, whose: str) -> None:
    """Raise UserError where `ulimit -v` leaves less: C++ ends the process without a message when it runs out."""
    found = re.search(r"Max address space +(\d+)", _text(LIMITS))  # no number where it is unlimited, or not Linux
    if found and int(found[1]) < size:
        limit = int(found[1]) >> 10
        raise UserError(f"not enough memory for {whose}: ulimit -v is {limit}, raise it to {size >> 10} or unlimited")


def lacks_memory(error: BaseException) -> bool:
    """Whether memory, address space or threads ran out; libraries report that in many ways."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"  # TensorFlow's, which is not imported for this
        or "can't start new thread" in text
        or (isinstance(error, ImportError) and ("failed to map segment" in text or "cannot allocate memory" in text))
    )


def variables(*prefixes: str) -> str:
    """The variables that begin so, with their values, for a message about the library that reads them."""
    found = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(prefixes)]
    return ", ".join(found) or f"no variable {' or '.join(f'{prefix}*' for prefix in prefixes)} is set"


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Without these variables; they are there again afterwards."""
    found = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(found)

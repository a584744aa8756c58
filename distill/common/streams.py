"""Standard streams that are closed, broken pipes, and locales that lack characters."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable
from typing import TextIO

NOBODY_READS = 141
"""Exit code after SIGPIPE, when the reader of the output has closed the pipe."""


def guarded(command: Callable[[], int]) -> int:
    """Call a command with usable streams; returns its exit code, or NOBODY_READS, for example after `| head -1`."""
    _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII-only locale shows `?`
    try:
        code = command()
        sys.stdout.flush()  # otherwise Python prints a message about the broken pipe at exit
    except BrokenPipeError:
        if not (streams := unread()):
            raise
        for stream in streams:  # Python flushes them once more at exit
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return NOBODY_READS
    return code


def _open_closed_ones() -> None:
    """Connect closed streams to the null device: otherwise the next opened file would get their number."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if descriptor else "r", encoding="utf-8"))  # noqa: SIM115


def unread() -> list[TextIO]:
    """Output streams that are pipes without a reader."""
    found = []
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # no file, or Windows, which cannot tell
            poll = select.poll()
            poll.register(stream.fileno(), 0)
            if poll.poll(0):  # reports errors alone
                found.append(stream)
    return found

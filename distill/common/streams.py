"""Standard streams that are closed, broken pipes, and locales that lack characters."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable

NOBODY_READS = 141
"""Exit code after SIGPIPE, when the reader of the output has closed the pipe."""


def guarded(command: Callable[[], int]) -> int:
    """Call a command with usable streams; returns its exit code, or NOBODY_READS, for example after `| head -1`.

    Output that cannot be written, as on a full disk, is one line and exit code 1.
    """
    _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII-only locale shows `?`
    try:
        code = command()
        sys.stdout.flush()  # otherwise Python prints a message about the broken pipe at exit
    except OSError as error:
        is_full = error.errno == errno.ENOSPC
        if not (is_full or isinstance(error, BrokenPipeError)):
            raise
        code = 1 if is_full else NOBODY_READS
        if is_full:
            print(f"standard output: {error.strerror}", file=sys.stderr)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):  # Python flushes them once more at exit
            os.dup2(nowhere, descriptor)
    return code


def _open_closed_ones() -> None:
    """Connect closed streams to the null device: otherwise the next opened file would get their number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115

"""The standard streams of a command: closed streams, broken pipes, and locales that lack some characters."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable
from typing import TextIO

NOBODY_READS = 141
"""The exit code of a command whose output is no longer read, as a shell shows it for SIGPIPE."""


def guarded(command: Callable[[], int]) -> int:
    """Call a command with streams that it can use; returns its exit code, or NOBODY_READS after `| head -1`."""
    _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII-only locale shows `?` instead of ending the command
    try:
        code = command()
        sys.stdout.flush()  # here, because the interpreter would print a message about a broken pipe at its end
    except BrokenPipeError:
        if not (streams := unread()):
            raise
        for stream in streams:  # what they still hold must go somewhere when the interpreter ends
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return NOBODY_READS
    return code


def _open_closed_ones() -> None:
    """Connect closed streams to the null device: otherwise the next file that is opened would take their number."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if descriptor else "r", encoding="utf-8"))  # noqa: SIM115


def unread() -> list[TextIO]:
    """The streams that are pipes whose reader has gone."""
    found = []
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # no file, or Windows, which cannot tell
            poll = select.poll()
            poll.register(stream.fileno(), 0)
            if poll.poll(0):  # reports errors alone
                found.append(stream)
    return found

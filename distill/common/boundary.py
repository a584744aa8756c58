"""The boundary around a command: signals, errors and output that nobody reads become an exit code and at most one line.

It is set before a command's imports, which take a second. DISTILL_DEBUG=1 in the environment shows every traceback.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from distill.common.errors import Interrupted, UserError, first_line

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, a request to stop, and a terminal that is closed, which Windows lacks."""

_stops: list[Interrupted] = []
"""What a signal has raised in the command that runs."""


def raise_stop() -> None:
    """Raise again what a signal has raised: where the command still runs, a library has dropped it.

    Keras drops every exception that is raised while it waits for the loss of a step.
    """
    if _stops:
        raise _stops[0]


def guarded(command: Callable[[], int], name: str, words: Sequence[str]) -> int:
    """Call a command; returns its exit code.

    Args:
      name: package and command, such as "distill generate", the first words of an error.
      words: what follows on the command line.

    An error that is none of the user, the disk or the memory is a bug, and is raised.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a path or word may hold bytes that are no text

    def interrupt(number: int, _frame: Any) -> None:
        for heard in handlers:  # cleaning up takes seconds: a second signal must not interrupt it
            signal.signal(heard, signal.SIG_IGN)
        _stops.append(Interrupted(number))
        raise_stop()

    handlers: dict[int, Any] = {}
    # Python delivers signals to the main thread only; in another thread they are the caller's.
    if threading.current_thread() is threading.main_thread():
        heard = [n for n in SIGNALS if n == signal.SIGINT or signal.getsignal(n) != signal.SIG_IGN]  # not under nohup
        handlers = {number: signal.signal(number, interrupt) for number in heard}
    try:
        code = command()
        print(end="", flush=True)  # what is wrong with the output shows here, not when Python exits
    except BaseException as error:
        if _stops:  # the clean-up or a library may have raised another error since
            # Without --restart, which would delete what this run has finished.
            again = [word for word in (*words, *_stops[0].words) if word != "--restart"]
            command_line = shlex.join(["python", "-m", name.replace(" ", "."), *again])
            _tell(f"\nstopped by {_stops[0]}; to continue: {command_line}", error)
            code = _stops[0].code
        elif isinstance(error, BrokenPipeError):
            code = 141  # as after SIGPIPE: the reader of the output has closed the pipe
        elif line := _line(error):
            _tell(f"{name}: {line}", error)
            code = 1
        else:
            raise
    finally:
        _stops.clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    try:
        print(end="", flush=True)
    except OSError:  # drop what cannot be written, which Python would try to write once more when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def _line(error: BaseException) -> str | None:
    """An error of the user, the disk or the memory in one line; None for a bug."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    if isinstance(error, UserError):
        return str(error)
    # Libraries report in different ways that memory or threads ran out. TensorFlow's error is known by its name.
    ran_out = isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"
    if ran_out or "start new thread" in str(error):
        return f"not enough memory ({type(error).__name__}: {first_line(error)}); free some, or raise the limit"
    return None


def _tell(line: str, error: BaseException) -> None:
    with suppress(OSError):  # a terminal that is closed, a full disk
        if os.environ.get("DISTILL_DEBUG"):
            traceback.print_exception(error)
        print(line, file=sys.stderr, flush=True)

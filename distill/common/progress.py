"""How much of the work is done: a bar on a terminal, otherwise a plain line from time to time."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from distill.common import boundary

Advance: TypeAlias = Callable[[int], object]
"""Called with the amount of work done since its last call, such as `Progress.advance`."""

LINE = "{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
"""As tqdm writes it: amount, time taken < time left, rate, note."""
FIRST_LINE, BETWEEN_LINES = 3.0, 15.0
"""Seconds before the first plain line, and between two of them."""


def silent(_amount: int) -> None:
    """An `Advance` that shows nothing."""


class _Lines:
    """Standard error with a line for each state of a bar, which tqdm would overwrite."""

    def write(self, text: str) -> None:
        if text := text.strip():
            say(text)

    def flush(self) -> None:
        """Nothing: `say` flushes."""


class Progress(AbstractContextManager["Progress"]):
    """tqdm's bar on a terminal, otherwise plain lines; nothing in a worker process. Use it as a context manager.

    Args:
      total, unit: amount of work (None: unknown), and its unit in words.
      done: work finished before this process started; not part of the rate.
    """

    def __init__(self, total: int | None, unit: str, done: int = 0) -> None:
        from tqdm import tqdm  # only now, for it takes a while

        # tqdm's own lock is shared by processes; a worker that is killed would leave it, and Python would warn.
        tqdm.set_lock(threading.RLock())
        how: dict[str, Any] = {"bar_format": "{l_bar}{bar}| " + LINE, "dynamic_ncols": True}
        if not getattr(sys.stderr, "isatty", bool)():  # stderr may be None, or have `write` alone
            how = {"file": _Lines(), "bar_format": LINE, "mininterval": BETWEEN_LINES, "delay": FIRST_LINE}
        self._bar = tqdm(
            total=total, initial=done, unit=f" {unit}", disable=_is_worker, smoothing=0.1, miniters=1, **how
        )

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def reach(self, done: int, note: str = "") -> None:
        """Like `advance`, up to an absolute amount of work."""
        self.advance(done - int(self._bar.n), note)

    def advance(self, amount: int, note: str = "") -> None:
        """Add finished work and show it, with a word on its quality or speed."""
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(amount)
        boundary.raise_stop()


_is_worker = False


def silence() -> None:
    """Make `say` and `Progress` print nothing in this process, which is a worker."""
    global _is_worker
    _is_worker = True


def say(line: str) -> None:
    """Print a line for the user on standard error, apart from the result on standard output."""
    if not _is_worker:
        print(line, file=sys.stderr, flush=True)


say_once = functools.cache(say)
"""The same, once for each line in a process."""

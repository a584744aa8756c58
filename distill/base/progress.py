"""Work that shows how far it is: a bar on a terminal, a plain line now and then otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Advance: TypeAlias = Callable[[int], object]
"""Told how much work was done since it was told last, such as `Progress.advance`."""


def silent(_amount: int) -> None:
    """The `Advance` that tells nobody."""


class Progress:
    """A progress bar on a terminal, a plain line now and then otherwise. Used as a context manager.

    Args:
      total, unit: amount of work and what it is counted in.
      done: work finished before this process started; not counted in the rate.
      every: seconds between plain lines.
    """

    def __init__(self, total: int, unit: str, done: int = 0, every: float = 15.0) -> None:
        self.total, self.unit, self.start, self.done, self.every = total, unit, done, done, every
        self.began = self.last = time.monotonic()
        self.note = ""
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if getattr(sys.stderr, "isatty", bool)():  # None without a console, or an object with `write` alone
            from tqdm import tqdm

            self.bar = tqdm(total=self.total, initial=self.done, unit=self.unit, dynamic_ncols=True, smoothing=0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def advance(self, amount: int, note: str = "") -> None:
        """Count work as done and show it, with a word on how it goes."""
        self.done += amount
        self.note = note
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(amount)
        elif time.monotonic() - self.last >= self.every or self.done >= self.total:
            self.last = time.monotonic()
            seconds = self.last - self.began
            rate = (self.done - self.start) / max(seconds, 1e-9)
            left = (self.total - self.done) / rate if rate else float("inf")
            print(
                f"{self.done}/{self.total} {self.unit} · {rate:.1f} {self.unit}/s · {note}"
                f"{' · ' if note else ''}{duration(left)} left",
                file=sys.stderr,
                flush=True,
            )


def duration(seconds: float) -> str:
    """A duration as people say it: 42 s, 3 min 20 s, 2 h 05 min."""
    if seconds != seconds or seconds == float("inf"):
        return "unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def say(line: str) -> None:
    """One line of news for the user, apart from the result on standard output."""
    print(line, file=sys.stderr, flush=True)

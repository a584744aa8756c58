"""How much of the work is done: a bar on a terminal, otherwise a plain line from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Advance: TypeAlias = Callable[[int], object]
"""Called with the amount of work done since its last call, such as `Progress.advance`."""

FIRST_LINE = 3.0
"""Seconds before the first plain line."""
SETTLED_SECONDS = 10.0
"""The time left is shown once the rate was measured for this time."""
ESTIMATING = "estimating the time left"


def silent(_amount: int) -> None:
    """An `Advance` that shows nothing."""


class Progress:
    """A progress bar on a terminal, otherwise plain lines; nothing in a worker process. Use it as a context manager.

    Args:
      total, unit: amount of work, and its unit in words.
      done: work finished before this process started; not part of the rate.
      every: seconds between plain lines.
      warm_up: measure the rate from the first `advance` on, after something slow that happens once, such as compiling.
      clock: seconds since any fixed moment.
    """

    def __init__(
        self,
        total: int,
        unit: str,
        done: int = 0,
        every: float = 15.0,
        *,
        warm_up: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.unit, self.done, self.every, self.clock = total, unit, done, every, clock
        self.began = clock()
        self.marks: list[tuple[float, int]] = [] if warm_up else 3 * [(self.began, done)]
        """Time and amount where measuring began, from which on the rate is measured, and a later mark."""
        self.last = self.began - every + FIRST_LINE
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if not _is_worker and getattr(sys.stderr, "isatty", bool)():  # stderr may be None, or have `write` alone
            from tqdm import tqdm

            shape = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit}{postfix}"  # without tqdm's own estimate
            self.bar = tqdm(total=self.total, initial=self.done, unit=self.unit, dynamic_ncols=True, bar_format=shape)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def reach(self, done: int, note: str = "") -> None:
        """Like `advance`, up to an absolute amount of work."""
        self.advance(done - self.done, note)

    def advance(self, amount: int, note: str = "") -> None:
        """Add finished work and show it, with a word on its quality or speed."""
        self.done += amount
        now = self.clock()
        if not self.marks and amount:
            self.marks = 3 * [(now, self.done)]
        if amount and now - self.marks[0][0] >= 2 * (self.marks[2][0] - self.marks[0][0]):
            self.marks[1:] = self.marks[2], (now, self.done)  # so the rate is that of half of the time or more
        ended = amount > 0 and self.done >= self.total
        if self.bar is not None:
            self.bar.set_postfix_str(" · ".join(self._words(now, note, ended)), refresh=False)
            self.bar.update(amount)
        elif ended or now - self.last >= self.every:
            self.last = now
            say(" · ".join([f"{self.done}/{self.total} {self.unit}", *self._words(now, note, ended)]))

    def _words(self, now: float, note: str, ended: bool) -> list[str]:
        """The rate, the caller's note, and the time left or, at the end, the time taken."""
        began, (since, before) = (self.marks[0][0], self.marks[1]) if self.marks else (now, (now, self.done))
        rate = (self.done - before) / max(now - since, 1e-9)
        words = [f"{rate:.1f} {self.unit}/s"] * (rate > 0) + [note] * bool(note)
        if ended:
            return [*words, f"took {duration(now - self.began)}"]
        if self.done >= self.total:
            return words
        is_known = rate > 0 and now - began >= SETTLED_SECONDS
        return [*words, f"{duration((self.total - self.done) / rate)} left" if is_known else ESTIMATING]


def duration(seconds: float) -> str:
    """A duration in words: 42 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


_is_worker = False


def silence() -> None:
    """Make `say` and `Progress` print nothing in this process, which is a worker."""
    global _is_worker
    _is_worker = True


def say(line: str) -> None:
    """Print a line for the user on standard error, apart from the result on standard output."""
    if not _is_worker:
        print(line, file=sys.stderr, flush=True)

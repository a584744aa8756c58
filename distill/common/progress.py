"""Work that shows how far it is: a bar on a terminal, a plain line now and then otherwise."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

Advance: TypeAlias = Callable[[int], object]
"""Told how much work was done since it was told last, such as `Progress.advance`."""


FIRST_LINE = 3.0
"""Seconds after which the first plain line may come."""
SETTLED_SECONDS, SETTLED_SHARE = 10.0, 0.05
"""The time left is told once so many seconds, or so much of the work, have shown the rate."""
ESTIMATING = "estimating the time left"


def silent(_amount: int) -> None:
    """The `Advance` that tells nobody."""


class Progress:
    """A progress bar on a terminal, a plain line now and then otherwise. Used as a context manager.

    Args:
      total, unit: amount of work and what it is counted in.
      done: work finished before this process started; not counted in the rate.
      every: seconds between plain lines; the first one comes sooner.
      warm_up: the first `advance` also waits for what happens once, such as compiling; the rate leaves it out.
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
        self.start = (clock(), done)
        self.last = self.start[0] - every + FIRST_LINE
        self.first = None if warm_up else self.start
        """(seconds, work done) from which on the rate is measured."""
        self.window = deque([self.start])
        """Such pairs, about one a second, over the second half of the time since `first`."""
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if getattr(sys.stderr, "isatty", bool)():  # None without a console, or an object with `write` alone
            from tqdm import tqdm

            shape = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit}{postfix}"  # without tqdm's own estimate
            self.bar = tqdm(total=self.total, initial=self.done, unit=self.unit, dynamic_ncols=True, bar_format=shape)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def reach(self, done: int, note: str = "") -> None:
        """Count work as done up to this amount, as `advance` does."""
        self.advance(done - self.done, note)

    def advance(self, amount: int, note: str = "") -> None:
        """Count work as done and show it, with a word on how it goes."""
        self.done += amount
        now = self.clock()
        if amount:
            self._mark(now)
        ended = amount > 0 and self.done >= self.total
        if self.bar is not None:
            self.bar.set_postfix_str(" · ".join(self._words(now, note, ended)), refresh=False)
            self.bar.update(amount)
        elif ended or now - self.last >= self.every:
            self.last = now
            say(" · ".join([f"{self.done}/{self.total} {self.unit}", *self._words(now, note, ended)]))

    def _mark(self, now: float) -> None:
        if self.first is None:
            self.first = (now, self.done)
            self.window = deque([self.first])
            return
        if len(self.window) > 1 and now - self.window[-2][0] < 1:
            self.window.pop()
        self.window.append((now, self.done))
        middle = (self.first[0] + now) / 2
        while len(self.window) > 2 and self.window[1][0] <= middle:
            self.window.popleft()

    def _words(self, now: float, note: str, ended: bool) -> list[str]:
        """The rate, the caller's note, and the time left or, in the end, the time it took."""
        (since, before), (until, done) = (self.start, (now, self.done)) if ended else (self.window[0], self.window[-1])
        rate = (done - before) / max(until - since, 1e-9)
        words = [f"{rate:.1f} {self.unit}/s"] if rate else []
        words += [note] if note else []
        if ended:
            return [*words, f"took {duration(now - self.start[0])}"]
        if self.done >= self.total:
            return words
        return [*words, f"{duration((self.total - self.done) / rate)} left" if self._settled(now, rate) else ESTIMATING]

    def _settled(self, now: float, rate: float) -> bool:
        """Whether enough is known of the rate to say how much time is left."""
        if self.first is None or not rate:
            return False
        began, before = self.first
        return now - began >= SETTLED_SECONDS or self.done - before >= SETTLED_SHARE * (self.total - before)


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


_is_worker = False


def silence() -> None:
    """Make `say` print nothing in this process: a worker, whose parent has printed the line."""
    global _is_worker
    _is_worker = True


def say(line: str) -> None:
    """One line of news for the user, apart from the result on standard output."""
    if not _is_worker:
        print(line, file=sys.stderr, flush=True)

"""Progress. Properties, with a clock of the test's own:

- without a terminal there is a line after some seconds, then now and then, and one at the end with the time it took;
- the time left is not told before the rate is known, leaves out what happens once, follows the recent rate, and is
  right within the first fifth of the work;
- a bar on a terminal tells the same.
"""

from __future__ import annotations

import io
import re
import sys

import pytest

from distill.common import Progress, duration
from distill.common.progress import ESTIMATING


class Clock:
    """Seconds that pass when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def seconds_left(line: str) -> float:
    found = re.search(r"· (?:(\d+) h )?(?:(\d+) min )?(?:(\d+) s )?left$", line)
    assert found, line
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def test_a_line_comes_after_some_seconds_then_now_and_then_and_at_the_end(capsys):
    clock = Clock()
    with Progress(30, "games", done=4, clock=clock) as progress:
        for _ in range(26):
            clock.wait(1)
            progress.advance(1, "going well")
    said = lines(capsys)
    assert [line.split(" · ")[0] for line in said] == ["7/30 games", "22/30 games", "30/30 games"]
    assert said[-1] == "30/30 games · 1.0 games/s · going well · took 26 s"
    assert seconds_left(said[1]) == 8


def test_no_time_left_is_told_before_the_rate_is_known(capsys):
    clock = Clock()
    with Progress(1000, "games", clock=clock) as progress:
        clock.wait(4)
        progress.advance(0)
        clock.wait(15)
        progress.advance(1)
    assert lines(capsys) == [f"0/1000 games · {ESTIMATING}", "1/1000 games · 0.1 games/s · 5 h 16 min left"]


@pytest.mark.parametrize("compiling", [0, 40])
def test_estimates_are_right_within_the_first_fifth(compiling, capsys):
    """A training of four minutes that compiles first, and then is slow for a while."""
    clock, steps = Clock(), 2000
    seconds = [0.2 if step < 20 else 0.1 for step in range(steps)]
    with Progress(steps, "boards", warm_up=True, clock=clock) as progress:
        clock.wait(compiling)
        for step in range(steps):
            clock.wait(seconds[step])
            progress.advance(1)
            left = sum(seconds[step + 1 :])
            for line in lines(capsys):
                if clock.now - 1000 < (compiling + sum(seconds)) / 5:
                    assert line.endswith(ESTIMATING) or seconds_left(line) < 2.2 * left
                elif step + 1 < steps:
                    assert seconds_left(line) == pytest.approx(left, rel=0.1, abs=1)


def test_a_bar_on_a_terminal_tells_the_same(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    clock = Clock()
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(100, "games", warm_up=True, clock=clock) as progress:
        clock.wait(60)
        progress.advance(1)
        for _ in range(12):
            clock.wait(1)
            progress.advance(1, "1.2 M simulations/s")
        assert progress.bar is not None
        progress.bar.refresh()
        shown = sys.stderr.getvalue()
    assert "13/100 games, 1.0 games/s · 1.2 M simulations/s · 1 min 27 s left" in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations_read_as_people_say_them(seconds, words):
    assert duration(seconds) == words

"""Progress. Properties, with tqdm's clock in the test's hands:

- without a terminal there is a line after some seconds, then now and then, and one at the end;
- the time left leaves out what happens once and what was done before, and follows the rate;
- a bar on a terminal tells the same; a worker process tells nothing;
- a killed worker leaves no semaphore, of which Python would warn.
"""

import io
import subprocess
import sys

import pytest
from tqdm import tqdm

from distill.common import Progress, progress


class Clock:
    """Seconds that pass when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    made = tqdm.__init__

    def with_clock(bar, *arguments, **named):
        made(bar, *arguments, **named)
        if not bar.disable:
            bar._time, bar.start_t, bar.last_print_t = clock, clock.now, clock.now

    monkeypatch.setattr(tqdm, "__init__", with_clock)
    return clock


def test_a_line_comes_now_and_then_and_at_the_end(clock, capsys):
    with Progress(50, "games", done=4) as shown:
        for _ in range(46):
            clock.wait(1)
            shown.advance(1, "going well")
    assert capsys.readouterr().err.splitlines() == [
        "19/50 games [00:15<00:31,  1.00 games/s, going well]",
        "34/50 games [00:30<00:16,  1.00 games/s, going well]",
        "49/50 games [00:45<00:01,  1.00 games/s, going well]",
        "50/50 games [00:46<00:00,  1.00 games/s, going well]",
    ]


def test_what_takes_no_time_says_nothing(clock, capsys):
    with Progress(2, "games") as shown:
        clock.wait(1)
        shown.advance(2)
    assert capsys.readouterr().err == ""


def test_the_time_left_leaves_out_compiling_and_follows_the_rate(clock, capsys):
    with Progress(2000, "boards", warm_up=True) as shown:
        clock.wait(400)
        for step in range(1000):
            clock.wait(0.2 if step < 20 else 0.1)
            shown.advance(1)
    said = capsys.readouterr().err.splitlines()
    assert said[3] == "586/2000 boards [01:00<02:25,  9.75 boards/s]"  # 2:21 in truth
    assert said[-1].startswith("1000/2000 boards [01:41<01:4")  # 1:40


def test_a_bar_on_a_terminal_tells_the_same_and_a_worker_nothing(clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(100, "games") as shown:
        for _ in range(12):
            clock.wait(1)
            shown.advance(1, "1.2 M simulations/s")
        text = sys.stderr.getvalue()
    assert "12/100 games [00:12<01:28,  1.00 games/s, 1.2 M simulations/s]" in text
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_is_worker", True)
    with Progress(100, "games") as shown:
        shown.advance(1)
    assert sys.stderr.getvalue() == ""


def test_a_killed_worker_leaves_no_semaphore():
    code = """
from distill.common import executors
with executors.started(1) as workers:
    workers.submit(exec, "from distill.common import Progress; Progress(2, 'games')").result()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""

"""A command from its words to its exit code. Properties:

- 0 done, 1 data or environment, 2 a wrong flag; 130 and 143 after Ctrl-C and SIGTERM, with the command that resumes;
- an error of the user, of the disk or of the memory is one line, a bug is not hidden;
- a command works in a thread, twice in a process, and with streams that are closed, replaced or no longer read.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from distill.common import Progress, UserError, cli, listed, say, streams
from distill.common.cli import check, setting


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Settings of a stage made up for these tests."""

    games: int = setting(100, "games to play")
    out: Path = setting(Path("data/games"), "folder")
    restart: bool = setting(False, "start from scratch")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.games > 0, "games", self.games, "positive")


def run_main(run: Callable[[Config], str], *words: str) -> int:
    return cli.Command("stage", Config, run)(words)


def raises(error: BaseException) -> Callable[[Config], str]:
    """A command that fails."""

    def run(_config: Config) -> str:
        raise error

    return run


def test_the_last_line_is_what_the_command_reports_and_a_wrong_flag_exits_2(capsys):
    with ThreadPoolExecutor(1) as thread:  # in a thread, more than once
        for _ in range(2):
            assert thread.submit(run_main, lambda config: f"{config.games} games", "--games", "3").result() == 0
    assert capsys.readouterr().out == "3 games\n" * 2
    assert run_main(raises(AssertionError("must not run")), "--games", "0") == 2
    assert capsys.readouterr().err == "distill stage: --games 0 must be positive (--help lists the flags)\n"


class ResourceExhaustedError(Exception):
    """By its name, one of TensorFlow's."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("data/games: empty; generate some"), "data/games: empty; generate some"),
        (FileNotFoundError(2, "No such file or directory", "gone"), "gone: No such file or directory"),
        (MemoryError(), "not enough memory (MemoryError: "),
        (ImportError("libx.so: cannot allocate memory in static TLS block"), "not enough memory (ImportError: "),
        (ResourceExhaustedError("OOM when allocating tensor"), "not enough memory (ResourceExhaustedError: "),
    ],
)
def test_errors_of_the_user_the_disk_and_the_memory_are_one_line(error, line, capsys):
    assert run_main(raises(error)) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"distill stage: {line}")
    assert message.count("\n") == 1
    with pytest.raises(ZeroDivisionError):  # a bug is not hidden
        run_main(raises(ZeroDivisionError()))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_unwinds_and_says_how_to_go_on(number, code, capsys):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    unwound = []

    def run(_config: Config) -> str:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)  # the handler raises here at the latest
        finally:
            unwound.append(True)
        return "not reached"

    assert run_main(run, "--restart", "--out", "a b") == code
    assert unwound == [True]
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.strip() == (
        f"stopped by {signal.Signals(number).name}; to resume (with --restart if the old run is still there): "
        "python -m distill.stage --out 'a b'"
    )
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


ENDING = """
import os, signal, time
from dataclasses import dataclass
from distill.common import cli

@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    pass

def run(config):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)  # the handler raises here at the latest

code = cli.Command("stage", Config, run)()
for number in (signal.SIGTERM, signal.SIGINT):  # while threads and libraries end
    os.kill(os.getpid(), number)
raise SystemExit(code)
"""


def test_a_process_that_is_stopped_ends_in_its_own_time_whatever_is_sent_again():
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert ended.returncode == 143
    assert ended.stderr == "\nstopped by SIGTERM; to resume: python -m distill.stage\n"


def test_streams_of_other_kinds_will_do(monkeypatch):
    """Notebooks and dashboards put objects of their own in place of the streams, or None."""

    class Written(list[str]):
        write = list.append

        def flush(self) -> None:
            pass

    def run(_config: Config) -> str:
        with Progress(1, "games") as progress:
            say("1/1 games")
            progress.advance(1)
        return "done"

    out, err = Written(), Written()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert run_main(run) == 0
    assert "".join(out) == "done\n"
    assert "".join(err) == "1/1 games\n"
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert run_main(run) == 0
    sys.stdout.close()
    sys.stderr.close()


PRINTS = """
import sys
from dataclasses import dataclass
from distill.common import cli, say

@dataclass(frozen=True)
class Config(cli.Settings):
    "Settings of a stage made up for this test."

def run(config):
    say("news")
    sys.stderr.flush()
    return "result\\n" * 100_000

sys.exit(cli.Command("stage", Config, run)())
"""


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("stage 2>&-", 0, "result\n" * 100_000 + "\n", ""),
        ("stage >&- <&-", 0, "", "news\n"),
        ("stage >&- 2>&- <&-", 0, "", ""),
        ("stage | head -1; exit ${PIPESTATUS[0]}", 141, "result\n", "news\n"),
        ("PYTHONUNBUFFERED=1 stage | head -1; exit ${PIPESTATUS[0]}", 141, "result\n", "news\n"),
        ("stage 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("stage --help | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("distill | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("distill >/dev/full", 1, "", "standard output: No space left on device\n"),
        ("COLUMNS=2 stage --help | tail -1", 0, "    show this\n", ""),
        ("stage >/dev/full", 1, "", "news\ndistill stage: No space left on device\n"),
    ],
)
def test_closed_streams_and_broken_pipes_are_no_errors(line, code, out, err):
    # Wait a moment, so that the reader has closed the pipe before the command writes.
    define = f"stage() {{ sleep 0.2; {sys.executable} -c '{PRINTS}' \"$@\"; }}; "
    define += f"distill() {{ sleep 0.2; {sys.executable} -m distill; }}; "
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", define + line], env=buffered, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_a_library_that_cannot_be_loaded_is_not_taken_for_a_full_output():
    with pytest.raises(OSError, match="libllvmlite"):
        streams.guarded(lambda: ctypes.CDLL("libllvmlite.so.missing").x)


def test_a_message_lists_at_most_four_names():
    assert listed([*"abcd"]) == "a, b, c, d"
    assert listed([*"abcdef"]) == "a, b, c, 3 more"

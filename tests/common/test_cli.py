"""A command from its words to its exit code. Properties:

- 0 done, 1 data or environment, 2 a wrong flag; 130, 143 and 129 after Ctrl-C, SIGTERM and a closed terminal;
- an error of the user, of the disk or of the memory is one line, a bug is not hidden, DISTILL_DEBUG=1 shows tracebacks;
- a command works in a thread, twice in a process, and where its output is no longer read.
"""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from distill.__main__ import COMMANDS
from distill.common import UserError, cli
from distill.common.settings import CommandLine, Settings


class Config(Settings):
    """Settings of a stage for these tests."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("games", "out", "restart"))
    games: int = Field(100, ge=1)
    """games to play"""
    out: Path = Path("data/games")
    """folder"""
    restart: bool = False
    """start from scratch"""


def run_main(run: Callable[[Config], str], *words: str) -> int:
    return cli.Command("distill stage", Config, run)(words)


def raises(error: BaseException) -> Callable[[Config], str]:
    """A command that fails."""

    def run(_config: Config) -> str:
        try:
            raise KeyError("the cause")
        except KeyError as cause:
            raise error from cause

    return run


def test_the_last_line_is_what_the_command_reports_and_a_wrong_flag_exits_2(capsys):
    with ThreadPoolExecutor(1) as thread:  # in a thread, more than once
        for _ in range(2):
            assert thread.submit(run_main, lambda config: f"{config.games} games", "--games", "3").result() == 0
    assert capsys.readouterr().out == "3 games\n" * 2
    assert run_main(raises(AssertionError("must not run")), "--games", "0") == 2
    message = "--games 0 must be greater than or equal to 1 (--help lists the flags)"
    assert capsys.readouterr().err == f"distill stage: {message}\n"


class ResourceExhaustedError(Exception):
    """By its name, one of TensorFlow's."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("data/games: empty; generate some"), "data/games: empty; generate some"),
        (FileNotFoundError(2, "No such file or directory", "gone"), "gone: No such file or directory"),
        (MemoryError(), "not enough memory (MemoryError: "),
        (ResourceExhaustedError("OOM when allocating tensor"), "not enough memory (ResourceExhaustedError: "),
    ],
)
def test_errors_of_the_user_the_disk_and_the_memory_are_one_line(error, line, capsys, monkeypatch):
    assert run_main(raises(error)) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"distill stage: {line}")
    assert message.count("\n") == 1
    with pytest.raises(ZeroDivisionError):  # a bug is not hidden
        run_main(raises(ZeroDivisionError()))
    monkeypatch.setenv("DISTILL_DEBUG", "1")
    assert run_main(raises(error)) == 1
    traceback = capsys.readouterr().err
    assert "KeyError: 'the cause'" in traceback
    assert traceback.endswith(f"\n{message}")


@pytest.mark.parametrize("clean_up_fails", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_command_unwinds_and_says_how_to_go_on(number, code, clean_up_fails, capsys):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers, unwound = [*map(signal.getsignal, numbers)], []

    def run(_config: Config) -> str:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)  # the handler raises here at the latest
        finally:
            unwound.append(True)
            if clean_up_fails:
                raise UserError("a worker process has died")
        return "not reached"

    assert run_main(run, "--restart", "--out", "a b") == code
    assert unwound == [True]
    output = capsys.readouterr()
    line = f"stopped by {signal.Signals(number).name}; to continue: python -m distill.stage --out 'a b'"
    assert (output.out, output.err) == ("", f"\n{line}\n")
    assert [*map(signal.getsignal, numbers)] == handlers


def test_nohup_keeps_a_command_running_when_the_terminal_is_closed():
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_main(lambda _: str(os.kill(os.getpid(), signal.SIGHUP))) == 0
    finally:
        signal.signal(signal.SIGHUP, previous)


PROGRAM = """
import sys, time
from distill.common import cli, say
from distill.common.settings import Settings

def run(config):
    say("news")
    sys.stderr.flush()
    if sys.argv[1] == "prints":
        return "result\\n" * 100_000
    try:
        time.sleep(60)
    finally:
        say("cleaned up")  # nobody reads it

sys.exit(cli.Command("distill stage", Settings, run)([]))
"""


def test_a_closed_terminal_stops_a_command_although_nothing_can_be_written_there():
    def in_a_terminal() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    terminal, inside = os.openpty()
    command, streams = [sys.executable, "-c", PROGRAM, "waits"], dict.fromkeys(("stdin", "stdout", "stderr"), inside)
    with subprocess.Popen(command, **streams, start_new_session=True, preexec_fn=in_a_terminal) as process:
        os.close(inside)
        assert os.read(terminal, 100).startswith(b"news")
        os.close(terminal)
    assert process.returncode == 129


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("stage | head -1; exit ${PIPESTATUS[0]}", 141, "result\n", "news\n"),
        ("distill | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("stage >/dev/full", 1, "", "news\ndistill stage: No space left on device\n"),
    ],
)
def test_a_broken_pipe_and_a_full_disk_are_no_tracebacks(line, code, out, err):
    # Wait a moment, so that the reader has closed the pipe before the command writes.
    define = f"stage() {{ sleep 0.2; {sys.executable} -c '{PROGRAM}' prints; }}; "
    define += f"distill() {{ sleep 0.2; {sys.executable} -m distill; }}; "
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", define + line], env=buffered, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_during_the_imports_is_one_line(name, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(cli.__file__).parents[2])])}
    command, pipes = [sys.executable, "-m", f"distill.{name}", "--seed", "7"], dict.fromkeys(("stdout", "stderr"), -1)
    with subprocess.Popen(command, env=os.environ | path, text=True, **pipes) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == f"\nstopped by SIGINT; to continue: python -m distill.{name} --seed 7\n"
    assert process.returncode == 130

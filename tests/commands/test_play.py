"""A game in the terminal: columns 1-7 play, anything else is answered, and the end is told with the moves.

The end of the input ends the game politely.
"""

import io
import os
import re
import signal
import subprocess
import sys

import pytest
from helpers import DRAWN

from distill import play


@pytest.fixture
def session(monkeypatch, capsys):
    """Plays with what a person types, one word a line; returns the exit code and what is on the screen."""

    def play_with(typed: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{word}\n" for word in typed.split(" "))))
        code = play.main(arguments)
        captured = capsys.readouterr()
        return code, captured.err + captured.out

    return play_with


def last_line(screen: str) -> str:
    """Without the prompt, which stands before it where no terminal shows what is typed."""
    return re.sub(".*Your turn.*?: ", "", screen.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("typed", "arguments", "said", "end"),
    [
        ("4 5", "random --moves 414243", "", "You win! · game 4142434"),
        ("q", "random --first machine", "You are O, random is X.", r"Not finished · game \d"),
        ("7", "punisher --first human --moves 212131", "", r"punisher wins .*"),
        ("q", "random --moves 4453", "", "Not finished · game 4453"),
        ("q", f"random --moves {DRAWN}", "", f"Draw · game {DRAWN}"),
        ("\t4  Q", "random", "", r"Not finished · game 4\d"),  # words may have capitals and blanks
        ("q", "random", "", "Not finished · no move"),
        ("4", "random", "", r"Not finished · game 4\d"),  # the end of the input
        ("4 4 q", "uct:20", "You are X, uct:20 is O.", r"Not finished · game 4\d4\d"),
    ],
)
def test_a_game_goes_as_it_is_typed(session, typed, arguments, said, end):
    code, screen = session(typed, *arguments.split())
    assert code == 0
    assert said in screen
    assert re.fullmatch(end, last_line(screen))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("4", "Column 4 is full. Please choose another one."),
        ("8", "'8' is none of: 1-7 plays"),
        ("44", "'44' is none of"),
        ("x" * 500, "'xxxxxxxxxxxxxxxxxxxx' is none of"),
        ("", "1-7 plays that column"),
        ("²", "'²' is none of"),
    ],
)
def test_what_cannot_be_done_is_answered_and_the_game_goes_on(session, typed, answer):
    code, screen = session(f"{typed} 7 q", "random", "--moves", "444444")
    assert code == 0
    assert answer in screen.split("Your turn (X): ", 1)[1]
    assert last_line(screen).startswith("Not finished · game 4444447")


def test_ctrl_c_shows_the_moves():
    """The process gets the signal once its second prompt is on the screen."""
    command = [sys.executable, "-u", "-m", "distill.play", "random"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"4\n")
        process.stdin.flush()
        screen = b""
        while screen.count(b"Your turn (X): ") < 2:
            screen += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate()
    assert process.returncode == 130
    assert b"\nNot finished \xc2\xb7 game 4" in shown
    resume = rb"stopped by SIGINT; to continue: python -m distill\.play random --moves 4\d\n"
    assert re.search(resume, said)
    assert b"Traceback" not in said


def test_without_a_player_the_shipped_network_plays_and_no_library_speaks():
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-m", "distill.play"]
    run = subprocess.run(command, input="4\nq\n", env=environment, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert "pillar played column" in run.stdout

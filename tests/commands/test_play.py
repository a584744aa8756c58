"""A game in the terminal. Properties:

- columns 1-7 play, the machine answers, the end is told with the moves; the machine may have the first stone;
- a full column, a wrong word, no word, several columns at once and stray bytes are answered, and the game goes on;
- hints show the machine's policy and exact scores, or how to install the solver;
- take back undoes the person's last move, also after the end; switch sides lets the machine move; new begins anew;
- the end of the input ends the game politely; Ctrl-C exits with 130 and tells the moves;
- a game given as moves resumes there; a wrong one exits with 2;
- colours only on a terminal, and not with NO_COLOR or on a dumb one; the last stone and the winning line are marked;
- without a player it takes the shipped network, else the newest, else says in one line how to get one;
- the board is there before the machine is ready; whoever waits for it is told why, and nothing of TensorFlow's own;
- who leaves does not wait for the compiler; a network that cannot be read is one line and exit 1, whatever was typed;
- compiling ahead leaves nothing to be compiled in the game.
"""

from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distill import play
from distill.common import UserError, provenance
from distill.game import rules
from distill.players.solver import Solver
from distill.players.terminal import STYLES, board_text
from tests.helpers import REFERENCE


@pytest.fixture
def session(monkeypatch, capsys):
    """Plays with what a person types, one word a line; returns the exit code and what is on the screen."""

    def play_with(typed: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{word}\n" for word in typed.split(" "))))
        code = play.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return play_with


def last_line(screen: str) -> str:
    return screen.strip().splitlines()[-1]


def test_a_person_plays_and_the_machine_answers(session):
    code, screen = session("4 4 q", "uct:20")
    assert code == 0
    assert "You are X, uct:20 is O." in screen
    assert screen.count("uct:20 plays") == 2
    assert last_line(screen).startswith("not finished · game 4")
    assert rules.from_moves(last_line(screen).split()[-1]).ply == 4


def test_a_win_is_told_with_its_line_and_its_moves(session):
    code, screen = session("4", "random", "--moves", "414243")
    assert code == 0
    board = screen.split("X to move: 4")[1]
    assert "\nyou win\n" in board
    assert board.count("[X]") == 4
    assert last_line(screen) == "you win · game 4142434"


DRAWN = "121212212121343434434343565656656565777777"


@pytest.mark.parametrize(
    ("typed", "arguments", "said", "end"),
    [
        ("q", "random --first machine", "You are O, random is X.", r"not finished · game \d"),
        ("7", "punisher --first human --moves 212131", "", r"the machine wins .*"),
        ("q", f"random --moves {DRAWN}", "", f"a draw · game {DRAWN}"),
        ("\t4  Q", "random", "", r"not finished · game 4\d"),  # words may have capitals and blanks
        ("4 b q", "random", "", "not finished · no move"),
        ("4 b b q", "random --first machine", "you have no move to take back", r"not finished · game \d"),
        ("4 5 b q", "random --moves 414243", "the game is over", "not finished · game 414243"),
        ("s q", "random --moves 44", "you are O now", r"not finished · game 44\d"),
        ("n q", "random --moves 44", "", "not finished · no move"),
        ("4", "random", "", r"not finished · game 4\d"),  # the end of the input
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
        ("4", "column 4 is full"),
        ("8", "'8' is none of: 1-7 plays"),
        ("0", "'0' is none of"),
        ("44", "'44' is none of"),
        ("x" * 500, "'xxxxxxxxxxxxxxxxxxxx' is none of"),
        ("", "1-7 plays that column"),
        ("?", "1-7 plays that column"),
        ("²", "'²' is none of"),
    ],
)
def test_what_cannot_be_done_is_answered_and_the_game_goes_on(session, typed, answer):
    code, screen = session(f"{typed} 7 q", "random", "--moves", "444444")
    assert code == 0
    assert answer in screen.split("X to move: ", 1)[1]
    assert last_line(screen).startswith("not finished · game 4444447")


def test_a_hint_shows_the_policy_and_the_scores(session):
    pytest.importorskip("bitbully")
    optimal = Solver().scores(rules.from_moves("444444"))
    _, screen = session("h q", "random", "--moves", "444444")
    rows = {line.split()[0]: line.split()[1:] for line in screen.splitlines() if line[:6] in ("policy", "score ")}
    assert "column     1    2    3    4    5    6    7" in screen
    assert rows["policy"][:7] == ["17%", "17%", "17%", "0%", "17%", "17%", "17%"]
    assert rows["score"][:7] == [
        *(f"{score:+d}" for score in optimal[:3]),
        "full",
        *(f"{score:+d}" for score in optimal[4:]),
    ]


def test_a_hint_without_the_solver_says_how_to_install_it(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    _, screen = session("h q", "random")
    assert "14%" in screen
    assert "to install it: python -m pip install" in screen


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["random", "--moves", "48"], "--moves 48: move 2 is '8', not a column from 1 to 7"),
        (["random", "--moves", "4444444"], "--moves 4444444: move 7 falls into column 4, which is full"),
        (["random", "uct:5"], "one machine, not 2: random uct:5"),
        (["nobody"], "player 'nobody' is unknown"),
        (["uct:0"], "whole number of simulations"),
        (["random", "--seed", "-1"], "--seed -1 must be from 0 to 2^64 - 1"),
    ],
)
def test_a_wrong_value_is_one_line_and_exit_2(session, arguments, complaint):
    code, screen = session("q", *arguments)
    assert code == 2
    assert complaint in screen
    assert screen.count("\n") == 1


def test_the_last_stone_is_marked_and_nothing_else_before_a_line():
    text = board_text([3, 3], colours=False)
    assert text.splitlines() == [
        "",
        *[" .  .  .  .  .  .  . "] * 4,
        " .  .  . <O> .  .  . ",
        " .  .  .  X  .  .  . ",
        " 1  2  3  4  5  6  7 ",
    ]


@pytest.mark.parametrize("moves", ["4142434", "1122334", "12233434464", "76655454424"])
def test_a_line_of_four_is_marked_in_any_direction(moves):
    assert rules.is_won(rules.from_moves(moves))
    marked = board_text([int(text) - 1 for text in moves], colours=False)
    assert marked.count("[X]") == 4
    assert "<" not in marked


def test_without_a_player_the_shipped_network_is_taken_then_the_newest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "shipped", lambda name: tmp_path / name)
    assert play.default_player() == str(tmp_path / "models/reference/pillar")
    monkeypatch.setattr(provenance, "shipped", lambda name: None)
    for age, name in enumerate(["old", "new", "older"]):
        file = Path("models") / name / "saved_model" / "1" / "saved_model.pb"
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (0, [5, 9, 1][age]))
    assert play.default_player() == str(Path("models") / "new")


def test_without_any_network_one_line_says_how_to_get_one(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "shipped", lambda name: None)
    with pytest.raises(UserError):
        play.default_player()
    code, screen = session("q")
    assert code == 1
    assert "python -m distill.train --arch cnn makes one" in screen
    assert screen.count("\n") == 1


class Terminal:
    """`python -m distill.play random` with a real terminal around it, or with pipes."""

    def __init__(self, **environment: str) -> None:
        self.master, slave = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "distill.play", "random"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(slave)
        self.screen = ""

    def wait_for_more(self) -> None:
        """Reads some more of the screen; a program that has ended, or hangs for minutes, fails the test."""
        assert select.select([self.master], [], [], 300)[0], f"nothing came after {self.screen!r}"
        try:
            piece = os.read(self.master, 4096)
        except OSError:  # Linux's way of saying that the other side is closed
            piece = b""
        assert piece, f"it ended after {self.screen!r}"
        self.screen += piece.decode()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Reads until the text has been on the screen so often."""
        while self.screen.count(text) < times:
            self.wait_for_more()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C; again where nothing comes of it: Python overlooks one between its prompt and the wait for a line."""
        time.sleep(0.3)  # so that it waits by now
        for _ in range(3):
            self.process.send_signal(signal.SIGINT)
            if select.select([self.master], [], [], 20)[0]:
                return

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal():
    """Opens one terminal, and closes it after the test in any case."""
    opened = []

    def open_one(**environment: str) -> Terminal:
        opened.append(Terminal(**environment))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("environment", "coloured", "ends"),
    [({}, True, "Ctrl-C"), ({"NO_COLOR": "1"}, False, "q"), ({"TERM": "dumb"}, False, "q")],
)
def test_colours_are_for_terminals_that_want_them_and_ctrl_c_tells_the_moves(terminal, environment, coloured, ends):
    terminal = terminal(**environment)
    terminal.wait_for("to move: ")
    terminal.type("4\n")
    terminal.wait_for("random plays")
    terminal.wait_for("to move: ", times=2)
    assert (STYLES["X"] in terminal.screen) == coloured
    assert ("\x1b" in terminal.screen) == coloured
    if ends == "q":
        terminal.type("q\n")
        terminal.wait_for("not finished · game 4")
    else:
        terminal.interrupt()
        terminal.wait_for("stopped by SIGINT")
        assert "\r\ngame 4" in terminal.screen
        assert "Traceback" not in terminal.screen
    assert terminal.process.wait() == (0 if ends == "q" else 130)


def test_without_a_terminal_there_are_no_colours_and_stray_bytes_are_answered():
    run = subprocess.run(
        [sys.executable, "-m", "distill.play", "random"], input=b"\xff\xfe\n4\n", capture_output=True, check=True
    )
    assert b"\x1b" not in run.stdout
    assert b"is none of" in run.stdout
    assert run.stdout.decode().strip().splitlines()[-1].startswith("not finished · game 4")


def test_the_board_is_there_before_the_machine_and_whoever_waits_is_told_why():
    """With the shipped network, and no level of log lines set; its `.keras` file waits for TensorFlow."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    for network, moment in (("pillar", ""), ("pillar/best.keras", "one moment: best.keras is being loaded")):
        command = [sys.executable, "-m", "distill.play", str(REFERENCE / network)]
        run = subprocess.run(command, input="4\nq\n", env=environment, capture_output=True, text=True, check=True)
        assert run.stderr == ""
        name = network.rpartition("/")[2]
        order = [f"You are X, {name} is O.", "X to move: 4", moment, f"{name} plays", "game 4"]
        shown = [line for line in order if line]
        assert sorted(shown, key=run.stdout.index) == shown


def test_who_leaves_does_not_wait_for_the_compiler(tmp_path):
    """`q` is there from the start, so the compiler is ended long before what it is to fill is full."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "distill.play", "uct:20"]
    run = subprocess.run(command, input="q\n", env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("not finished · no move\n")
    assert not [file for file in tmp_path.rglob("*.nbi") if "_play" in file.name]


@pytest.mark.parametrize("typed", ["4", "q"])
def test_a_network_that_cannot_be_read_is_one_line(session, tmp_path, typed):
    (tmp_path / "best.keras").write_text("nothing")
    code, screen = session(typed, str(tmp_path))
    assert code == 1
    assert last_line(screen).startswith(f"distill play: {tmp_path}/best.keras: not a readable Keras model")
    assert "Traceback" not in screen


def test_compiling_ahead_leaves_nothing_to_be_compiled_in_the_game():
    code = """
import numpy as np
from distill.game.rules import EMPTY
from distill.players import names, network
from distill.mcts import compiling, puct
from distill.mcts.engine import noise, puct_simulation, rollout, uct_games, uct_simulation
def compiled():
    modules = (noise, puct_simulation, rollout, uct_games, uct_simulation)
    parts = {name: part for module in modules for name, part in vars(module).items()}
    return {name: len(part.signatures) for name, part in parts.items() if hasattr(part, "signatures")}
compiling.compile_search("uct")
compiling.compile_search("puct")
before = compiled()
assert before["advance_to_leaves"] == before["take_evaluations"] == before["play_games"] == 1
def predict(current, mask):
    return np.zeros((len(current), 7), np.float32), np.zeros(len(current), np.float32)
guided = [network.GuidedPlayer(name=root, predict=predict, settings=puct.PuctSettings(simulations=9, root=root))
          for root in ("puct", "gumbel")]
for player in [*guided, *map(names.make, ("uct:9", "teacher:9", "mcts-solver:9"))]:
    player.play(np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.uint64))
assert compiled() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)

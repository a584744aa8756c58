"""A game in the terminal: the board, the opponent that loads meanwhile, and the commands that the user types.

In: lines from standard input. Out: the board after every move, in colours where the terminal has them, and answers.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from distill.common import Interrupted, UserError
from distill.datasets.benchmark import FULL_COLUMN
from distill.game import rules
from distill.mcts import cache
from distill.players import levels, names, review
from distill.players.network import GuidedPlayer
from distill.players.player import Choices, Player, checked_choices, seeds_for
from distill.players.search import SearchPlayer
from distill.players.solver import Solver

HELP = "1-7 plays that column · h hint · r review · b take back · s switch sides · n new game · q quit"
AT_THE_END = "r reviews, b takes back, n starts a new game, q quits: "
SIDES = "XO"
STYLES = {"X": "\x1b[1;33m", "O": "\x1b[1;31m", ".": "\x1b[2m"}
REVERSED, RESET = "\x1b[7m", "\x1b[0m"
COMPILING = "the search of {} is being compiled, which may take two minutes, but only once"


@dataclass(kw_only=True)
class Game:
    """The state of a game.

    Attributes:
      columns: the moves so far, 0-6.
      human: the user's side, 0 for the first stone (X) or 1.
    """

    columns: list[int] = field(default_factory=list)
    human: int = 0

    @property
    def position(self) -> rules.Position:
        """The position after the moves."""
        return rules.from_moves(self.columns)

    @property
    def moves(self) -> str:
        """The moves in columns 1-7."""
        return "".join(str(column + 1) for column in self.columns)

    def humans_turn(self) -> bool:
        """Whether the user is to move, game over or not."""
        return len(self.columns) % 2 == self.human

    def take_back(self) -> bool:
        """Undo the user's last move and everything after it; False where there is none."""
        own = [ply for ply in range(len(self.columns)) if ply % 2 == self.human]
        if own:
            del self.columns[own[-1] :]
        return bool(own)

    def result(self) -> str:
        """How the game stands, for the user."""
        if rules.is_won(self.position):
            return "the machine wins" if self.humans_turn() else "you win"
        return "a draw" if rules.is_over(self.position) else "not finished"

    def summary(self) -> str:
        """The moves so far, as the last line shows them."""
        return f"game {self.moves}" if self.columns else "no move"


class Machine:
    """The opponent, loaded in a thread of its own; used as a context manager.

    Its search is compiled by another process at the same time, so that both cores work and quitting ends it at once.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name, self._seed = Path(name.replace("/@", "@")).name, seed
        self._status = f"{self.name} is being loaded, which takes some seconds"
        self._left = False
        self._compiler = _compiler(name)
        self._thread = ThreadPoolExecutor(1)
        self._player = self._thread.submit(self._load, name)

    def _load(self, name: str) -> Player:
        player = names.make(name, fast=True, silent=True)
        if self._compiler is not None:
            if self._compiler.poll() is None:
                self._status = COMPILING.format(self.name)
            self._compiler.wait()
        if not self._left:
            _rehearse(player)
        return player

    def check(self) -> None:
        """Raise what has gone wrong with the player so far."""
        if self._player.done():
            self._player.result()

    def choose(self, position: rules.Position) -> Choices:
        """Its choices in a position; reports what it waits for where it is not ready yet."""
        reported = ""
        while wait([self._player], timeout=0.3).not_done:
            if reported != self._status:
                reported = self._status
                print(f"one moment: {reported}", flush=True)
        current, mask = (np.array([bits], np.uint64) for bits in (position.current, position.mask))
        return checked_choices(self._player.result(), current, mask, seeds_for(self._seed, position.ply))

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True
        if self._compiler is not None:
            self._compiler.terminate()
            self._compiler.wait()
        self._thread.shutdown()  # a library must not be torn down while it loads


def _compiler(name: str) -> subprocess.Popen[bytes] | None:
    """A process that compiles a player's search into the cache; None without one, or where it is compiled already."""
    parts = names.parse(levels.named(name).player if name in names.LEVELS else name)
    module = "uct" if parts.player in names.SEARCHES else "puct" if parts.mode in names.SEARCHING_MODES else ""
    if not module or cache.is_compiled(module):
        return None
    silent = subprocess.DEVNULL
    command = [sys.executable, "-m", "distill.mcts.compiling", module]
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)


def _rehearse(player: Player) -> None:
    """Make one move with the smallest search, so that tracing and loading are done before the first move counts."""
    player = player.base if isinstance(player, levels.LevelPlayer) else player
    if isinstance(player, SearchPlayer):
        player = replace(player, settings=replace(player.settings, simulations=1))
    if isinstance(player, GuidedPlayer):
        player = replace(player, settings=replace(player.settings, simulations=1))
    checked_choices(player, *np.zeros((3, 1), np.uint64))


def session(name: str, game: Game, seed: int) -> str:
    """Play until the user quits or the input ends; returns the line with the result and the moves.

    `name` is the machine's, as `names.make` takes it. Raises UserError for a player that cannot be loaded.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a stray byte is a typing error, not the end of the game
    with Machine(name, seed) as machine:
        print(f"You are {SIDES[game.human]}, {machine.name} is {SIDES[1 - game.human]}. {HELP}")
        try:
            _play(game, machine)
        except Interrupted:
            print(f"\n{game.summary()}", flush=True)
            raise
    machine.check()
    return f"{game.result()} · {game.summary()}"


def _play(game: Game, machine: Machine) -> None:
    """Moves and commands in turn, until `q` or the end of the input."""
    on_screen = None
    while True:
        over = rules.is_over(game.position)
        if on_screen != game.moves:
            on_screen = game.moves
            print(board_text(game.columns, in_colour()))
            if over:
                print(game.result())
        if not over and not game.humans_turn():
            choice = machine.choose(game.position)
            game.columns.append(int(choice.moves[0]))
            value = "" if choice.value is None else f", expects {choice.value[0]:+.2f} from -1 to 1"
            print(f"{machine.name} plays {game.columns[-1] + 1}{value}")
            continue
        machine.check()
        typed = _typed(AT_THE_END if over else f"{SIDES[game.human]} to move: ")
        if typed in ("q", "quit", None):
            return
        if answer := _obey(typed, game, machine):
            print(answer)


def _obey(typed: str, game: Game, machine: Machine) -> str:
    """Carry out a command; returns the answer, often none."""
    over = rules.is_over(game.position)
    if typed in set("1234567") and not over:
        if not rules.is_legal(game.position, int(typed) - 1):
            return f"column {typed} is full"
        game.columns.append(int(typed) - 1)
    elif typed in ("h", "hint") and not over:
        return _hint(game, machine)
    elif typed in ("r", "review"):
        return _review(game)
    elif typed in ("b", "back"):
        return "" if game.take_back() else "you have no move to take back"
    elif typed in ("s", "switch") and not over:
        game.human = 1 - game.human
        return f"you are {SIDES[game.human]} now"
    elif typed in ("n", "new"):
        game.columns.clear()
    elif typed in ("?", "help", ""):
        return HELP
    else:
        return "the game is over" if over else f"{typed[:20]!r} is none of: {HELP}"
    return ""


def _hint(game: Game, machine: Machine) -> str:
    """The machine's policy and, where the solver is installed, the exact score of each column."""
    rows = [("column", [str(column + 1) for column in range(rules.COLUMNS)], "")]
    policy = machine.choose(game.position).policy
    if policy is not None:
        rows.append(("policy", [f"{share:.0%}" for share in policy[0]], machine.name))
    try:
        scores = Solver().scores(game.position)
        texts = ["full" if score == FULL_COLUMN else f"{score:+d}" for score in scores]
        rows.append(("score", texts, "perfect play: + wins, - loses, larger is sooner or later"))
    except UserError as missing:
        rows.append(("score", [], str(missing)))
    return "\n".join(f"{name:7}" + "".join(f"{text:>5}" for text in texts) + f"   {note}" for name, texts, note in rows)


def _review(game: Game) -> str:
    """The game so far, reviewed by the solver where it is installed, else by a search."""
    if not game.columns:
        return "there is no move to review"
    grader = review.default_grader()
    print(f"one moment: {grader} reviews the game", flush=True)
    try:
        return review.text(review.review(game.moves, review.Grader(grader)))
    except (UserError, ValueError) as error:
        return str(error)


def _typed(prompt: str) -> str | None:
    """A line of the input in lower case without surrounding blanks; None at its end."""
    try:
        line = input(prompt)
    except EOFError:
        print()
        return None
    if not sys.stdin.isatty():
        print(line)  # a pipe does not echo
    return line.strip().lower()


def in_colour() -> bool:
    """Whether the output is a terminal that shows colours, and the user did not turn them off (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def board_text(columns: Sequence[int], colours: bool) -> str:
    """The board after these moves (0-6), six lines and the column numbers.

    The last stone is marked <X>, and the winning line [X]; with colours, both are shown in reverse.
    """
    position = rules.from_moves(columns)
    last = position.mask ^ rules.from_moves(columns[:-1]).mask
    line = _winning_stones(position.opponent)
    rows = []
    for row, letters in enumerate(rules.draw(position).splitlines()):
        cells = []
        for column, letter in enumerate(letters.split()):
            bit = 1 << (rules.BITS_PER_COLUMN * column + rules.ROWS - 1 - row)
            if colours:
                cells.append(f"{STYLES[letter]}{REVERSED if bit & (line | last) else ''} {letter} {RESET}")
            else:
                cells.append(f"[{letter}]" if bit & line else f"<{letter}>" if bit & last else f" {letter} ")
        rows.append("".join(cells))
    return "\n".join(["", *rows, "".join(f" {column + 1} " for column in range(rules.COLUMNS)), ""])


def _winning_stones(stones: int) -> int:
    """Those of the stones that are part of a line of four."""
    found = 0
    for shift in rules.LINE_SHIFTS:
        first = stones & stones >> shift & stones >> 2 * shift & stones >> 3 * shift
        found |= first | first << shift | first << 2 * shift | first << 3 * shift
    return found

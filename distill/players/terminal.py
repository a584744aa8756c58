"""A game at the terminal: the board, the machine that gets ready meanwhile, and what the person types.

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
from distill.players.levels import LevelPlayer
from distill.players.names import make
from distill.players.network import GuidedPlayer
from distill.players.player import Choices, Player, checked_choices, seeds_for
from distill.players.search import SearchPlayer

HELP = "1-7 plays that column · h hint · r review · b take back · s switch sides · n new game · q quit"
AT_THE_END = "r reviews, b takes back, n begins a new game, q quits: "
NAMES = "XO"
YELLOW, RED, DIM, MARKED, RESET = "\x1b[1;33m", "\x1b[1;31m", "\x1b[2m", "\x1b[7m", "\x1b[0m"


@dataclass(kw_only=True)
class Game:
    """Where a game stands.

    Attributes:
      columns: the moves so far, 0-6.
      human: the person's side, 0 for the first stone (X) or 1.
    """

    columns: list[int] = field(default_factory=list)
    human: int = 0

    @property
    def position(self) -> rules.Position:
        """The position after the moves."""
        return rules.from_moves(self.columns)

    @property
    def moves(self) -> str:
        """The moves as people write them, columns 1-7."""
        return "".join(str(column + 1) for column in self.columns)

    def humans_turn(self) -> bool:
        """Whether the person is to move, game over or not."""
        return len(self.columns) % 2 == self.human

    def take_back(self) -> bool:
        """Undo the person's last move and what came after it; False where there is none."""
        own = [ply for ply in range(len(self.columns)) if ply % 2 == self.human]
        if own:
            del self.columns[own[-1] :]
        return bool(own)

    def result(self) -> str:
        """How the game stands, for the person."""
        if rules.is_won(self.position):
            return "the machine wins" if self.humans_turn() else "you win"
        return "a draw" if rules.is_over(self.position) else "not finished"


class Machine:
    """The player on the other side, made ready in a thread of its own; used as a context manager.

    Its search is compiled by a process beside that, so that both cores work, and nobody who leaves waits for it.
    """

    def __init__(self, word: str) -> None:
        self.name = Path(word.replace("/@", "@")).name
        self._doing = f"{self.name} is being loaded, which takes some seconds"
        self._left = False
        self._compiler = _compiler(word)
        self._thread = ThreadPoolExecutor(1)
        self._player = self._thread.submit(self._made_ready, word)

    def _made_ready(self, word: str) -> Player:
        player = make(word, fast=True, silent=True)
        if self._compiler is not None:
            if self._compiler.poll() is None:
                self._doing = f"the search of {self.name} is being compiled, which may take two minutes, but only once"
            self._compiler.wait()
        if not self._left:
            _rehearse(player)
        return player

    def check(self) -> None:
        """Raise what has gone wrong with the player so far."""
        if self._player.done():
            self._player.result()

    def think(self, position: rules.Position, seed: int) -> Choices:
        """Its choice in a position; says what it waits for where it is not ready yet."""
        said = ""
        while wait([self._player], timeout=0.3).not_done:
            if said != self._doing:
                said = self._doing
                print(f"one moment: {said}", flush=True)
        current, mask = (np.array([bits], np.uint64) for bits in (position.current, position.mask))
        return checked_choices(self._player.result(), current, mask, seeds_for(seed, position.ply))

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True
        if self._compiler is not None:
            self._compiler.terminate()
            self._compiler.wait()
        self._thread.shutdown()  # a library that is being loaded must not be torn down


def _compiler(word: str) -> subprocess.Popen[bytes] | None:
    """A process that compiles the search of a player into the cache; None where it has none, or it is there already."""
    named = names.parse(levels.named(word).player if word in names.LEVELS else word)
    if named.player in names.SEARCHES:
        module = "teacher"
    elif named.mode in names.SEARCHING_MODES:
        module = "puct"
    else:
        return None
    if cache.holds(module):
        return None
    silent = subprocess.DEVNULL
    command = [sys.executable, "-m", "distill.mcts.cache", module]
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)


def _rehearse(player: Player) -> None:
    """One answer, of the smallest search: what is done but once, such as the tracing of a graph, is done then."""
    if isinstance(player, LevelPlayer):
        player = player.base
    if isinstance(player, SearchPlayer):
        player = replace(player, settings=replace(player.settings, simulations=1))
    if isinstance(player, GuidedPlayer):
        player = replace(player, settings=replace(player.settings, simulations=1))
    checked_choices(player, np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.uint64))


def session(word: str, game: Game, seed: int) -> str:
    """Play until the person has had enough; returns the line with the result and the moves.

    `word` names the machine as `players.make` takes it. Raises UserError where that is no player.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a stray byte is a typing error, not the end of the game
    with Machine(word) as machine:
        print(f"You are {NAMES[game.human]}, {machine.name} is {NAMES[1 - game.human]}. {HELP}")
        try:
            _play(game, machine, seed)
        except Interrupted:
            print(f"\n{_moves_so_far(game)}", flush=True)
            raise
    machine.check()
    return f"{game.result()} · {_moves_so_far(game)}"


def _moves_so_far(game: Game) -> str:
    return f"game {game.moves}" if game.columns else "no move"


def _play(game: Game, machine: Machine, seed: int) -> None:
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
            print(_machine_moves(game, machine, seed))
            continue
        machine.check()
        word = _ask(AT_THE_END if over else f"{NAMES[game.human]} to move: ")
        if word in ("q", "quit", None):
            return
        if complaint := _obey(word, game, machine, seed):
            print(complaint)


def _machine_moves(game: Game, machine: Machine, seed: int) -> str:
    """Play the machine's move; returns what it says about it."""
    choice = machine.think(game.position, seed)
    column = int(choice.moves[0])
    game.columns.append(column)
    value = "" if choice.value is None else f", expects {choice.value[0]:+.2f} from -1 to 1"
    return f"{machine.name} plays {column + 1}{value}"


def _obey(word: str, game: Game, machine: Machine, seed: int) -> str:
    """Do what the person typed; returns what is to be said about it, often nothing."""
    over = rules.is_over(game.position)
    if word in set("1234567") and not over:
        if not rules.is_legal(game.position, int(word) - 1):
            return f"column {word} is full"
        game.columns.append(int(word) - 1)
        return ""
    if word in ("h", "hint") and not over:
        return _hint(game, machine, seed)
    if word in ("r", "review"):
        return _review(game)
    if word in ("b", "back"):
        return "" if game.take_back() else "you have no move to take back"
    if word in ("s", "switch") and not over:
        game.human = 1 - game.human
        return f"you are {NAMES[game.human]} now"
    if word in ("n", "new"):
        game.columns.clear()
        return ""
    if word in ("?", "help", ""):
        return HELP
    return f"{word[:20]!r} is none of: {HELP}" if not over else "the game is over"


def _hint(game: Game, machine: Machine, seed: int) -> str:
    """What the machine and, where it is installed, the solver think of each column."""
    rows = [("column", [str(column + 1) for column in range(rules.COLUMNS)], "")]
    policy = machine.think(game.position, seed).policy
    if policy is not None:
        rows.append(("policy", [f"{share:.0%}" for share in policy[0]], machine.name))
    try:
        from distill.players.solver import Solver

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
    judge = review.default_judge()
    print(f"one moment: {judge} reviews the game", flush=True)
    try:
        return review.text(review.review(game.moves, review.Judge(judge)))
    except (UserError, ValueError) as missing:
        return str(missing)


def _ask(prompt: str) -> str | None:
    """A line from the person, without blanks and in small letters; None at the end of the input."""
    try:
        line = input(prompt)
    except EOFError:
        print()
        return None
    if not sys.stdin.isatty():
        print(line)  # nobody has typed it there
    return line.strip().lower()


def in_colour() -> bool:
    """Whether the output is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def board_text(columns: Sequence[int], colours: bool) -> str:
    """The board after these moves (0-6), six lines and the column numbers.

    The last stone is marked <X>, and the line that wins [X]; with colours, both are shown in reverse.
    """
    position = rules.from_moves(columns)
    last = position.mask ^ rules.from_moves(columns[:-1]).mask
    line = _stones_in_line(position.opponent)
    rows = []
    for row, letters in enumerate(rules.draw(position).splitlines()):
        cells = []
        for column, letter in enumerate(letters.split()):
            bit = 1 << (rules.BITS_PER_COLUMN * column + rules.ROWS - 1 - row)
            plain = f"[{letter}]" if bit & line else f"<{letter}>" if bit & last else f" {letter} "
            cells.append(_coloured(letter, bool(bit & (line | last))) if colours else plain)
        rows.append("".join(cells))
    return "\n".join(["", *rows, "".join(f" {column + 1} " for column in range(rules.COLUMNS)), ""])


def _coloured(letter: str, marked: bool) -> str:
    style = {"X": YELLOW, "O": RED, ".": DIM}[letter]
    return f"{style}{MARKED if marked else ''} {letter} {RESET}"


def _stones_in_line(stones: int) -> int:
    """Those of the stones that stand in a line of four."""
    found = 0
    for shift in rules.LINE_SHIFTS:
        first = stones & stones >> shift & stones >> 2 * shift & stones >> 3 * shift
        found |= first | first << shift | first << 2 * shift | first << 3 * shift
    return found

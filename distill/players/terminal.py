"""A game in the terminal: the board, and the commands that the user types.

In: lines from standard input. Out: the board after every move, and answers.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from distill.common import Interrupted
from distill.game import encoding, rules
from distill.players import names
from distill.players.player import Player, checked_choices, seeds_for

HELP = "1-7 plays that column · b take back · q quit"
SIDES = "XO"


@dataclass(kw_only=True)
class Game:
    """A game between the user and a machine.

    Attributes:
      name: the machine's, for the screen; player: how it chooses; seed: of its random moves.
      columns: the moves so far, 0-6.
      human: the user's side, 0 for the first stone (X) or 1.
    """

    name: str
    player: Player
    seed: int
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

    def result(self) -> str:
        """How the game stands, and its moves."""
        stands = "Not finished"
        if rules.is_won(self.position):
            stands = f"{self.name} wins" if self.humans_turn() else "You win!"
        elif rules.is_over(self.position):
            stands = "Draw"
        return f"{stands} · {f'game {self.moves}' if self.columns else 'no move'}"


def session(name: str, columns: Sequence[int], human: int, seed: int) -> str:
    """Play until the user quits or the input ends; returns the line with the result and the moves.

    `name` is the machine's, as `names.make` takes it. Raises UserError for a player that cannot be loaded.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a stray byte is a typing error, not the end of the game
    player = names.make(name, fast=True)
    shown = name.capitalize() if name in names.LEVELS else os.path.basename(os.path.abspath(names.shown(name)))
    game = Game(name=shown, player=player, seed=seed, columns=[*columns], human=human)
    print(f"You are {SIDES[human]}, {shown} is {SIDES[1 - human]}. {HELP}\n{board_text(columns)}")
    try:
        while (typed := _next_word(game)) not in ("q", "quit", None):
            if answer := _obey(typed, game):
                print(answer)
    except Interrupted as stop:
        stop.words = ["--moves", game.moves]
        print(f"\n{game.result()}", flush=True)
        raise
    return game.result()


def _next_word(game: Game) -> str | None:
    """Let the machine move if it is its turn, then read the user's word; None at the end of the input."""
    if not rules.is_over(game.position) and not game.humans_turn():
        choices = checked_choices(
            game.player, *encoding.bitboards_of([game.position]), seeds_for(game.seed, game.position.ply)
        )
        game.columns.append(int(choices.moves[0]))
        value = "" if choices.value is None else f", expects {choices.value[0]:+.2f} from -1 to 1"
        print(f"{game.name} played column {game.columns[-1] + 1}{value}\n{board_text(game.columns)}")
    over = rules.is_over(game.position)
    try:
        word = input(f"{game.result()}; b or q: " if over else f"Your turn ({SIDES[game.human]}): ")
    except EOFError:
        print()
        return None
    if not sys.stdin.isatty():
        print(word)  # a pipe does not echo
    return word.strip().lower()


def _obey(word: str, game: Game) -> str:
    """Carry out a command; returns the answer, often none."""
    over = rules.is_over(game.position)
    if word in set("1234567") and not over:
        if not rules.is_legal(game.position, int(word) - 1):
            return f"Column {word} is full. Please choose another one."
        game.columns.append(int(word) - 1)
        return board_text(game.columns)
    if word in ("b", "back"):
        # Take back the last own move, and what the machine answered.
        turns = range(game.human, len(game.columns), 2)
        if not turns:
            return "You have no move to take back."
        del game.columns[turns[-1] :]
        return board_text(game.columns)
    if word in ("?", "help", ""):
        return HELP
    return "The game is over." if over else f"{word[:20]!r} is none of: {HELP}"


def board_text(columns: Sequence[int]) -> str:
    """The board after these moves (0-6), six lines and the column numbers; the last stone is marked <X>."""
    rows = [[f" {letter} " for letter in line.split()] for line in rules.draw(rules.from_moves(columns)).splitlines()]
    for last in columns[-1:]:
        row = rules.ROWS - columns.count(last)
        rows[row][last] = f"<{rows[row][last].strip()}>"
    numbers = "".join(f" {column + 1} " for column in range(rules.COLUMNS))
    return "\n".join(["", *map("".join, rows), numbers, ""])

"""A game in the terminal: the board, and the columns that the user types.

In: lines from standard input. Out: the board after every move, and answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from distill.common import Interrupted
from distill.game import encoding, rules
from distill.players import names
from distill.players.player import Player, checked_choices, seeds_for

HELP = "1-7 plays that column · q quits"
SIDES = "XO"


def session(name: str, columns: Sequence[int], human: int, seed: int) -> str:
    """Play until the game or the input ends or the user quits; returns the line with the result and the moves.

    Args:
      name: the machine's, as `names.make` takes it.
      columns: the moves so far, 0-6.
      human: the user's side, 0 for the first stone (X) or 1.
      seed: of the machine's random moves.

    Raises UserError for a player that cannot be loaded.
    """
    player, shown, columns = names.make(name, fast=True), names.shown(name), [*columns]
    print(f"You are {SIDES[human]}, {shown} is {SIDES[1 - human]}. {HELP}\n{board_text(columns)}")
    try:
        while not rules.is_over(rules.from_moves(columns)):
            if len(columns) % 2 != human:
                print(f"{shown} {_move(player, columns, seed)}\n{board_text(columns)}")
                continue
            try:
                word = input(f"Your turn ({SIDES[human]}): ").strip().lower()
            except (EOFError, UnicodeDecodeError):  # the end of the input, or bytes that are no text
                print()
                break
            if word in ("q", "quit"):
                break
            print(_play(word, columns))
    except Interrupted as stop:
        stop.words = ["--moves", _moves(columns)]
        print(f"\n{_result(shown, columns, human)}", flush=True)
        raise
    return _result(shown, columns, human)


def _moves(columns: Sequence[int]) -> str:
    return "".join(str(column + 1) for column in columns)


def _result(shown: str, columns: Sequence[int], human: int) -> str:
    """How the game stands, and its moves."""
    position, stands = rules.from_moves(columns), "Not finished"
    if rules.is_won(position):
        stands = f"{shown} wins" if len(columns) % 2 == human else "You win!"
    elif rules.is_over(position):
        stands = "Draw"
    return f"{stands} · {f'game {_moves(columns)}' if columns else 'no move'}"


def _move(player: Player, columns: list[int], seed: int) -> str:
    """Let the machine move; returns what it did."""
    bits = encoding.bitboards_of([rules.from_moves(columns)])
    choices = checked_choices(player, *bits, seeds_for(seed, len(columns)))
    columns.append(int(choices.moves[0]))
    value = "" if choices.value is None else f", expects {choices.value[0]:+.2f} from -1 to 1"
    return f"played column {columns[-1] + 1}{value}"


def _play(word: str, columns: list[int]) -> str:
    """Play the user's column; returns the board, or why it cannot be played."""
    if word not in set("1234567"):
        return f"{word[:20]!r} is none of: {HELP}"
    if not rules.is_legal(rules.from_moves(columns), int(word) - 1):
        return f"Column {word} is full. Please choose another one."
    columns.append(int(word) - 1)
    return board_text(columns)


def board_text(columns: Sequence[int]) -> str:
    """The board after these moves (0-6), six lines and the column numbers."""
    return f"\n{rules.draw(rules.from_moves(columns))}\n1 2 3 4 5 6 7\n"

"""A game in the terminal, against a network or any other player.

    python -m distill.play                            # the shipped network
    python -m distill.play uct:1000 --first machine   # any player of players/names.py
    python -m distill.play my_players:centre          # your own function, in my_players.py
    python -m distill.play models/cnn --moves 4453    # continues a game

In: columns 1-7, one a line; `q` quits. Out: the board after every move, and at the end the game as a move string, which
`--moves` reads.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("play")

import secrets
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from distill.common import cli
from distill.common.settings import CommandLine, NameOrPath, Seed, Settings
from distill.game import rules
from distill.players import names, terminal


class PlayConfig(Settings):
    """Play a game in the terminal."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="player",
        flags=("first", "moves", "seed"),
        examples=("uct:1000 --first machine", "models/cnn --moves 4453"),
        page="docs/players.md",
    )
    player: NameOrPath = Field("pillar", title="PLAYER", description=f"the machine: {names.NAMES}")
    first: Literal["human", "machine"] = "human"
    """who has the first stone, X"""
    moves: str = Field("", title="MOVES")
    """moves of a game to continue, such as 4453"""
    seed: Seed | None = Field(None, title="N")
    """seed of the machine's random moves, to repeat a game; default: random"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        names.check(self.player)
        rules.from_moves(self.moves)
        return self


def run(config: PlayConfig) -> str:
    """Play until the game ends or the user quits; returns the line with the result and the moves."""
    columns, human = [int(text) - 1 for text in config.moves], int(config.first == "machine")
    return terminal.session(config.player, columns, human, secrets.randbits(32) if config.seed is None else config.seed)


main = cli.Command("distill play", PlayConfig, run, cli.smoke(player=str(cli.SMOKE_MODELS / "cnn")))

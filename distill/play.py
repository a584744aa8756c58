"""A game in the terminal, against a network or any other player.

    python -m distill.play                            # the shipped network
    python -m distill.play uct:1000 --first machine   # any player of players/names.py
    python -m distill.play my_players:centre          # your own function, in my_players.py
    python -m distill.play models/cnn --moves 4453    # continues a game

In: columns 1-7 and a few letters, one a line (`?` lists them). Out: the board after every move, and at the end the game
as a move string, which `--moves` reads.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("play")

import secrets
from dataclasses import dataclass
from typing import Literal

from distill.common import cli
from distill.game import notation, rules
from distill.players import names, terminal


@dataclass(frozen=True, kw_only=True)
class PlayConfig(cli.Settings):
    """Play a game in the terminal."""

    player: tuple[str, ...] = cli.setting((), f"the machine: {names.NAMES}; default: pillar", positional=True)
    first: Literal["human", "machine"] = cli.setting("human", "who has the first stone, X")
    moves: str = cli.setting(
        "", "moves of a game to continue, such as 4453, '1. 4 4 2. 5 3', ddec, or a link to the page"
    )
    seed: int | None = cli.setting(None, "seed of the machine's random moves, to repeat a game; default: random")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.player) > 1:
            raise ValueError(f"one machine, not {len(self.player)}: {' '.join(self.player)}")
        for name in self.player:
            names.check(name)
        cli.check_seed(self.seed or 0)
        try:
            rules.from_moves(notation.read(self.moves))
        except ValueError as error:
            raise ValueError(f"--moves {self.moves}: {error}") from None


PRESETS = {"smoke": cli.smoke(player=(str(cli.SMOKE_MODELS / "cnn"),))}


def run(config: PlayConfig) -> str:
    """Play until the user quits; returns the line with the result and the moves."""
    name = config.player[0] if config.player else "pillar"
    columns, human = [int(text) - 1 for text in notation.read(config.moves)], int(config.first == "machine")
    return terminal.session(name, columns, human, secrets.randbits(32) if config.seed is None else config.seed)


main = cli.Command("play", PlayConfig, run, PRESETS)

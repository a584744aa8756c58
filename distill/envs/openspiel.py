"""A player as a bot of OpenSpiel, and back: `player` and `mcts` are those of `players/openspiel.py`.

state = pyspiel.load_game("connect_four").new_initial_state()
returns = pyspiel.evaluate_bots(state, [openspiel.bot("pillar"), openspiel.mcts(1000, seed=0)], 0)
"""

from __future__ import annotations

from typing import Any

from distill.game import rules
from distill.game.encoding import bitboards_of
from distill.players import names
from distill.players.openspiel import mcts, player, pyspiel
from distill.players.player import as_player, checked_choices, seeds_for

__all__ = ["bot", "mcts", "player"]


def bot(player: Any, seed: int = 0) -> Any:
    """A player as `pyspiel.Bot` for connect_four, in either seat.

    Args:
      player: a name as commands take it, or what `players/player.py`, `as_player`, takes.
      seed: of its draws, which depend on the seed and the ply.
    """
    chosen = names.make(player, fast=True) if isinstance(player, str) else as_player(player)

    base: Any = pyspiel().Bot

    class Bot(base):
        def step(self, state: Any) -> int:
            position = rules.parse_board(str(state).upper())
            choices = checked_choices(chosen, *bitboards_of([position]), seeds_for(seed, position.ply))
            return int(choices.moves[0])

        def restart_at(self, state: Any) -> None:
            """Nothing to forget."""

    return Bot()

"""OpenSpiel's bots as players, from the optional package `open-spiel`: its Monte-Carlo tree search, and any other bot.

    from distill.players import openspiel
    choose = openspiel.player(lambda seat, seed: MyBot(seat, seed))  # then: python -m distill.evaluate my_bot:choose

A bot gets a state without a history, because a player knows the position alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common.provenance import extra
from distill.game import encoding, rules
from distill.game.rules import Position
from distill.players.player import Seeds

NewBot: TypeAlias = Callable[[int, int], Any]
"""A seat, 0 for the side with the first stone or 1, and a seed from 0 to 2³¹ − 1 → a `pyspiel.Bot`."""

EXPLORATION = 2.0
"""OpenSpiel's UCT constant, with one rollout a simulation, as in its own examples."""


def pyspiel() -> Any:
    """OpenSpiel's module. Raises UserError with the install command where the package is missing."""
    with extra("openspiel", "this player"):
        import pyspiel
    return pyspiel


def mcts(simulations: int, seed: int) -> Any:
    """OpenSpiel's `MCTSBot` with random rollouts, for either seat."""
    spiel = pyspiel()
    evaluator = spiel.RandomRolloutEvaluator(1, seed)
    game = spiel.load_game("connect_four")
    return spiel.MCTSBot(game, evaluator, EXPLORATION, simulations, 1000, False, seed, False)


def player(new_bot: NewBot) -> Callable[[NDArray[np.int8], Seeds], NDArray[np.int64]]:
    """The player, a function of boards and seeds, that lets a new bot choose in every position."""
    game = pyspiel().load_game("connect_four")

    def choose(boards: NDArray[np.int8], seeds: Seeds) -> NDArray[np.int64]:
        positions = map(Position, *(bits.tolist() for bits in encoding.bitboards(boards)))
        states = (game.new_initial_state(_json(position)) for position in positions)
        seeded = zip(states, (seeds % np.uint64(2**31)).tolist(), strict=True)
        moves = [new_bot(state.current_player(), seed).step(state) for state, seed in seeded]
        return np.array(moves, np.int64)

    return choose


def _json(position: Position) -> str:
    """A position that is not over as OpenSpiel reads a state; its row 0 is the bottom row."""
    rows = [line.lower().split() for line in rules.draw(position).splitlines()]
    state = {"board": rows[::-1], "current_player": "xo"[position.ply % 2], "is_terminal": False, "winner": ""}
    return json.dumps(state)

"""What defines a run of games: its settings, its identity, and the random openings of its games.

Two runs with equal identities have equal games. The name of a run is a hash of its identity.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field

from distill.common.plugins import Plugin
from distill.common.settings import Seed, Settings
from distill.game.rules import EMPTY, Position, from_moves, is_over, legal_columns, next_position
from distill.mcts import uct
from distill.mcts.results import generator
from distill.mcts.settings import UctSettings

LONGEST_OPENING = 30
"""Most random moves before the search plays."""

OPENING_HELP = "fewest and most random moves before the search; in JSON also a list of such pairs, used in turn"


def _check_openings(moves: Any) -> Any:
    pairs = opening_pairs(moves)
    if not pairs or not all(0 <= fewest <= most <= LONGEST_OPENING for fewest, most in pairs):
        raise ValueError(f"must be two numbers, fewest and most, from 0 to {LONGEST_OPENING}")
    return moves


OpeningMoves: TypeAlias = Annotated[tuple[int, int] | tuple[tuple[int, int], ...], AfterValidator(_check_openings)]
"""Fewest and most random moves, or a table of such pairs, which the games of a run take in turn."""


class RunSettings(Settings):
    """All that the games of a run depend on."""

    search: UctSettings = UctSettings()
    labeller: str | None = Field(
        None,
        title="MODULE:OBJECT",
        description="your own engine, to label; of the search settings, only the noise of moves has an effect",
    )
    opening_moves: OpeningMoves = Field((1, 8), description=OPENING_HELP)
    seed: Seed = Field(0, description="run seed; game g depends only on it and on g")
    shard_games: int = Field(200, ge=1, le=100_000, description="games in one shard file")


def plugin_of(settings: RunSettings) -> Plugin | None:
    """The user's labeller; None for the built-in search. Raises UserError where it cannot be imported."""
    return Plugin.named(settings.labeller, "--labeller") if settings.labeller else None


def identity(settings: RunSettings) -> dict[str, Any]:
    """What the games of a run depend on: its settings, and the version of the search or the labeller's source hash."""
    stored = settings.model_dump(mode="json", include=RunSettings.model_fields.keys() - {"shard_games"})
    stored |= stored.pop("search")
    plugin = plugin_of(settings)
    if plugin is None:
        del stored["labeller"]
        return {"search_version": uct.SEARCH_VERSION, **stored}
    # With a labeller of the user's, settings of the search change nothing.
    searched = {"simulations", "votes", "rollout", "exploration", "mcts_solver"}
    return {"labeller_source": plugin.source, **{name: stored[name] for name in stored if name not in searched}}


# Openings -------------------------------------------------------------------------------------------------------------


def opening(settings: Any, game: int) -> Position:
    """The position after a game's random opening."""
    return from_moves(opening_moves(settings, game))


def opening_moves(settings: Any, game: int) -> list[int]:
    """The columns of a game's random opening; an opening that ends the game is redrawn."""
    pairs = opening_pairs(settings.opening_moves)
    fewest, most = pairs[game % len(pairs)]
    # The game's own generator: its opening does not depend on which other games are played.
    random = generator(settings.seed, game, 0)
    while True:
        position, moves = EMPTY, []
        for _ in range(random.integers(fewest, most + 1)):
            columns = legal_columns(position)
            moves.append(columns[random.integers(len(columns))])
            position = next_position(position, moves[-1])
            if is_over(position):
                break
        if not is_over(position):
            return moves


def opening_pairs(moves: OpeningMoves) -> list[list[int]]:
    """Fewest and most random moves, pair by pair; game g takes pair g modulo their number."""
    pairs: list[list[int]] = np.reshape(moves, (-1, 2)).tolist()
    return pairs

"""The settings of a run of games, and its identity: what the games depend on.

Two runs with equal identities have equal games. The identity decides the split of the games (`games/reader.py`), so its
names never change.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from distill.common.plugins import Plugin
from distill.common.settings import Seed, Settings
from distill.mcts import puct, uct
from distill.mcts.settings import PuctSettings, UctSettings

LONGEST_OPENING = 30
"""Most random moves before the search plays."""

NOISE = ("noise_fraction", "noise_at", "dirichlet_alpha")
"""Settings of the search that hold for a user's labeller, too: the noise of moves."""


def opening_pairs(moves: OpeningMoves) -> list[list[int]]:
    """Fewest and most random moves, pair by pair; game g takes pair g modulo their number."""
    return np.reshape(moves, (-1, 2)).tolist()


def _check_openings(moves: Any) -> Any:
    pairs = opening_pairs(moves)
    if not pairs or not all(0 <= fewest <= most <= LONGEST_OPENING for fewest, most in pairs):
        raise ValueError(f"must be two numbers, fewest and most, from 0 to {LONGEST_OPENING}")
    return moves


OpeningMoves: TypeAlias = Annotated[tuple[int, int] | tuple[tuple[int, int], ...], AfterValidator(_check_openings)]
"""Fewest and most random moves, or a table of such pairs, which the games of a run take in turn."""


def _imported(labeller: str | Plugin) -> Plugin:
    return labeller if isinstance(labeller, Plugin) else Plugin.named(labeller, "--labeller")


NamedLabeller = Annotated[Plugin, PlainValidator(_imported), PlainSerializer(lambda plugin: plugin.spec)]
"""A user's labeller, "module:object", which is imported when it is set. Raises UserError where that fails."""


class RunSettings(Settings):
    """The settings of games whose positions are labelled by a search without a network, or by a user's labeller."""

    search: UctSettings = UctSettings()
    labeller: NamedLabeller | None = Field(None, title="MODULE:OBJECT")
    """your own engine, to label; of the search settings, only the noise of moves has an effect"""
    opening_moves: OpeningMoves = (1, 8)
    """fewest and most random moves before the search; in JSON also a list of such pairs, used in turn"""
    seed: Seed = 0
    """run seed; game g depends only on it and on g"""
    shard_games: int = Field(200, ge=1, le=100_000)
    """games in one shard file"""

    def games_identity(self) -> dict[str, Any]:
        """What the games depend on: the settings, and the version of the search or the labeller's source hash."""
        stored = self.model_dump(mode="json", include=RunSettings.model_fields.keys() - {"shard_games"})
        stored |= stored.pop("search")
        if self.labeller is None:
            del stored["labeller"]
            return {"search_version": uct.SEARCH_VERSION, **stored}
        searched = UctSettings.model_fields.keys() - NOISE
        known = {name: value for name, value in stored.items() if name not in searched}
        return {"labeller_source": self.labeller.source, **known}


class SelfPlaySettings(Settings):
    """The settings of games in which a search guided by a network plays both sides."""

    search: PuctSettings = PuctSettings()
    seed: Seed = 0
    """seed of the run; a game depends on it and on its own number"""
    shard_games: int = Field(50, ge=1, le=100_000)
    """games in one shard file"""
    opening_moves: OpeningMoves = (0, 2)
    """fewest and most random moves before the search; in JSON also a list of such pairs, used in turn"""
    leaves: Literal["value", "playout"] = "value"
    """value of a leaf: the value head's, or a rollout's"""

    def games_identity(self, network: str) -> dict[str, Any]:
        """What the games depend on: the settings, the search's version, and the name of the network's weights."""
        stored = self.model_dump(mode="json", include=SelfPlaySettings.model_fields.keys() - {"shard_games"})
        stored |= stored.pop("search")
        return {"puct_version": puct.PUCT_VERSION, "network": network, **stored}


GamesSettings: TypeAlias = RunSettings | SelfPlaySettings

"""What a player is: positions and seeds in, moves out, with a policy and a value where it has them.

Every random draw is a function of the seed that comes with the position, so a move does not depend on what else is in
the batch.

Dimensions: B positions, A = 7 columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, plugins
from distill.game import encoding, mixing, outputs
from distill.game.mixing import splitmix64
from distill.game.rules import Bitboards, legal_mask
from distill.game.tactics import wins

Seeds: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a player chooses in B positions.

    Attributes:
      moves: int64 (B,), the column it plays, 0-6.
      policy: float64 (B, A), probability of each column, 0 on full ones; for a search, its share of the visits. None
        for a player without one.
      value: float64 (B,), expected outcome in [−1, 1] for the side to move; None for a player without one.
    """

    moves: NDArray[np.int64]
    policy: NDArray[np.float64] | None = None
    value: NDArray[np.float64] | None = None


class Player(Protocol):
    """Anything that plays."""

    @property
    def name(self) -> str:
        """The name that the user gave, short enough for a table."""

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        """Choose moves in B positions that are not over.

        Args:
          current: uint64 (B,), stones of the side to move (`game/rules.py` draws the bits).
          mask: uint64 (B,), all stones.
          seeds: uint64 (B,), the source of all randomness.
        """


@dataclass(frozen=True, kw_only=True)
class CustomPlayer:
    """A user's own player under the name that the user gave: a `Player`, or a function of boards and seeds."""

    name: str
    player: Any = field(repr=False)

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        if hasattr(self.player, "choose"):
            choices = plugins.call(self.player.choose, self.name, current, mask, seeds)
        else:
            choices = plugins.call(self.player, self.name, encoding.boards(current, mask), seeds)
        return choices if isinstance(choices, Choices) else Choices(moves=choices)


def as_player(player: Any, name: str = "") -> Player:
    """The player that a user's object is.

    Args:
      player: a `Player`; a class of players, made without arguments; or a function that takes boards, int8 (B, 6, 7)
        with row 0 on top and +1 the side to move, and seeds, uint64 (B,). It returns moves (B,), or `Choices` where it
        also has a policy or a value.
      name: for tables and errors; without it the object's own.
    """
    # A class of players takes no arguments.
    if isinstance(player, type):
        player = plugins.call(player, name or player.__name__)
    default_name = str(getattr(player, "name", "") or getattr(player, "__name__", type(player).__name__))
    return CustomPlayer(name=name or default_name, player=player)


def checked_choices(player: Player, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
    """A player's checked choices in B positions that are not over; all code that uses choices calls this.

    Raises OutputError naming the player for choices of a wrong shape or type, an illegal move, or a NaN.
    """
    legal = legal_mask(mask)
    with outputs.named(player.name):
        choices = player.choose(current.copy(), mask.copy(), seeds.copy())  # a player may use them as scratch
        if not isinstance(choices, Choices):
            raise OutputError(f"returned {type(choices).__name__}, not Choices")
        # Copies, because a player may return the same arrays again.
        moves = outputs.moves(choices.moves, legal).astype(np.int64)
        policy = None if choices.policy is None else outputs.policy(choices.policy, legal).copy()
        value = None if choices.value is None else outputs.values(choices.value, len(mask)).copy()
    return Choices(moves=moves, policy=policy, value=value)


# Random draws ---------------------------------------------------------------------------------------------------------


def seeds_for(seed: int, *numbers: ArrayLike) -> Seeds:
    """uint64 (B,) seeds, a function of a run's seed and numbers such as game and ply, each an integer or (B,)."""
    seeds = splitmix64(seed)
    for number in numbers:
        seeds = splitmix64(seeds ^ splitmix64(number))
    return seeds


def draw_by(weights: NDArray[Any], seeds: Seeds) -> NDArray[np.int64]:
    """int64 (B,), for each row a column drawn in proportion to its weights, (B, A), with its seed, uint64 (B,)."""
    return mixing.draw_by(weights, splitmix64(seeds))


def evenly(columns: NDArray[np.bool_], seeds: Seeds, value: NDArray[np.float64] | None = None) -> Choices:
    """The choices of a player that draws evenly among these columns, bool (B, A)."""
    return Choices(moves=draw_by(columns, seeds), policy=columns / columns.sum(1, keepdims=True), value=value)


@dataclass(frozen=True, kw_only=True)
class RandomPlayer:
    """Any legal column; with `tactical` it first wins if it can and blocks if it must."""

    name: str = "random"
    tactical: bool = False

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        allowed = legal_mask(mask)
        if self.tactical:
            for stones in (current ^ mask, current):  # own wins last, so that they overrule blocks
                urgent = wins(stones, mask)
                allowed = np.where(urgent.any(1, keepdims=True), urgent, allowed)
        return evenly(allowed, seeds)

"""A Gymnasium environment around PettingZoo's connect_four-v3, with a player as opponent, and players as its agents.

The rules and the pictures are PettingZoo's. `distill/envs/__init__.py` says what an observation is.
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pettingzoo.classic.connect_four import connect_four

from distill.mcts.results import as_bitboards
from distill.players import names
from distill.players.player import as_player, checked_choices

ID = "distill/Connect4-v0"
"""The name in Gymnasium's registry: `gymnasium.make(f"distill.envs.connect4:{ID}", opponent="club")`."""


def board(observation: Any) -> NDArray[np.int8]:
    """int8 (6, 7), +1 the agent that looks, of an observation."""
    planes = np.asarray(observation["observation"])
    if not np.isin(planes, (0, 1)).all() or planes.all(-1).any():
        raise ValueError("an observation has two planes of 0 and 1, and a stone is in one of them")
    planes = planes.astype(np.int8)
    return planes[..., 0] - planes[..., 1]


class Agent:
    """A player that chooses a column from the observation of the agent whose turn it is.

    Args:
      player: a name as commands take it, or what `players/player.py`, `as_player`, takes.
      seed: of its draws.
    """

    def __init__(self, player: Any, seed: int | None = None) -> None:
        self.player = names.make(player, fast=True) if isinstance(player, str) else as_player(player)
        self.random = np.random.default_rng(seed)

    def __call__(self, observation: Any) -> int:
        """The column; raises ValueError for what is no observation, and where the game is over."""
        seeds = self.random.integers(2**64, size=1, dtype=np.uint64)
        current, mask = as_bitboards(board(observation)[None])
        return int(checked_choices(self.player, current, mask, seeds).moves[0])


class AgainstPlayer(gymnasium.Env[NDArray[np.int8], np.int64]):
    """A game against a player: reward 1 for a win, −1 for a loss or an illegal move, otherwise 0.

    `action_masks` is what MaskablePPO of sb3-contrib asks for; `info["action_mask"]` holds the same.

    Args:
      opponent: as `Agent` takes a player.
      first: whether the agent has the first stone; None draws it for every game.
      render_mode: "rgb_array", a picture.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012  as Gymnasium

    def __init__(self, opponent: Any = "club", first: bool | None = None, render_mode: str | None = None) -> None:
        self.game, self.opponent = connect_four.env(render_mode=render_mode), Agent(opponent)
        self.first, self.render_mode = first, render_mode
        self.observation_space = self.game.observation_space("player_0")["observation"]
        self.action_space = self.game.action_space("player_0")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.int8], dict[str, Any]]:
        super().reset(seed=seed)
        self.opponent.random = self.np_random
        first = self.np_random.random() < 0.5 if self.first is None else self.first
        self.game.reset()
        self.seat = self.game.agents[0 if first else 1]
        if not first:
            self._answer()
        return self._seen()

    def step(self, action: SupportsIndex) -> tuple[NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        self.game.step(operator.index(action))
        if not self._is_over():
            self._answer()
        observation, info = self._seen()
        return observation, float(self.game.rewards[self.seat]), self._is_over(), False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """bool (7,), True = the column may be played."""
        return self.game.observe(self.seat)["action_mask"].astype(bool)

    def render(self) -> Any:
        return self.game.render()

    def close(self) -> None:
        self.game.close()

    def _answer(self) -> None:
        self.game.step(self.opponent(self.game.observe(self.game.agent_selection)))

    def _is_over(self) -> bool:
        return any(self.game.terminations.values())

    def _seen(self) -> tuple[NDArray[np.int8], dict[str, Any]]:
        observation = self.game.observe(self.seat)
        return observation["observation"], {"action_mask": observation["action_mask"]}


# Without the wrappers of `gymnasium.make`, which hide `action_masks`.
gymnasium.register(ID, f"{__name__}:AgainstPlayer", order_enforce=False, disable_env_checker=True)

"""Connect 4 where reinforcement learning lives: Gymnasium, PettingZoo, OpenSpiel and pgx.

    env = distill.envs.make("club")  # Gymnasium, against any player

`envs/connect4.py` needs the extra `envs`, `envs/openspiel.py` the extra `openspiel`, and `envs/pgx.py` the JAX backend.
Observations are those of PettingZoo's connect_four-v3: planes (6, 7, 2), row 0 on top, 1 where the agent that looks has
a stone (plane 0) and where its opponent has one (plane 1), and an action mask (7,) with 1 for a column that is open.
"""

from __future__ import annotations

from typing import Any

from distill.common.provenance import extra


def make(opponent: Any = "club", **options: Any) -> Any:
    """The Gymnasium environment `connect4.AgainstPlayer`, which takes these arguments."""
    return _connect4().gymnasium.make(_connect4().ID, opponent=opponent, **options)


def agent(player: Any, seed: int | None = None) -> Any:
    """A player in PettingZoo's connect_four-v3: a function from an observation to a column.

    Without a seed, its draws are random.
    """
    return _connect4().Agent(player, seed)


def _connect4() -> Any:
    """Raises UserError with the install command where a package is missing."""
    with extra("envs", "distill.envs"):
        from distill.envs import connect4
    return connect4

"""A network as a function inside `jit`, for pgx's connect_four and any other environment in JAX.

KERAS_BACKEND=jax

moves = distill.envs.pgx.moves("pillar")
state = jax.jit(jax.vmap(env.step))(state, moves(state.observation))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distill import networks
from distill.common import UserError
from distill.game.rules import COLUMNS, ROWS
from distill.networks import finding


def moves(network: str) -> Callable[[Any], Any]:
    """A function that JAX can trace: observations (…, 6, 7, 2) → the network's columns, int32 (…).

    Args:
      network: a name or path as commands take it. Its weights become constants of the compiled function.

    An observation is that of the side to move: plane 0 its stones, plane 1 the opponent's, row 0 on top. On a full
    board the column is −1. Raises UserError on another backend than JAX.
    """
    networks.start_backend()
    import keras

    if keras.backend.backend() != "jax":
        raise UserError(f"distill.envs.pgx needs KERAS_BACKEND=jax in the environment, not {keras.backend.backend()}")
    from distill.networks import heads, saved

    model = heads.served(saved.load_core(finding.network_file(network)))

    def choose(observation: Any) -> Any:
        planes = observation.astype("int8")
        boards = (planes[..., 0] - planes[..., 1]).reshape(-1, ROWS, COLUMNS)
        return model(boards, training=False)["move"].reshape(observation.shape[:-3])

    return choose

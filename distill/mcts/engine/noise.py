"""Dirichlet noise: at the root of a search, or in the move that is played."""

from __future__ import annotations

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.engine.bits import open_columns
from distill.mcts.engine.jit import Float64s, jit


@jit
def dirichlet(gamma: Float64s, mask: np.uint64) -> Float64s:
    """(7,) a Dirichlet draw over the open columns, 0 elsewhere: their gamma variates, (7,), over the sum of these."""
    is_open = open_columns(mask) >> np.arange(COLUMNS) & 1
    shares = gamma * is_open
    total = shares.sum()
    return shares / total if total > 0.0 else is_open / is_open.sum()


@jit
def exploration_weights(gamma: Float64s, mask: np.uint64, noise_fraction: float) -> Float64s:
    """(7,) factors of the exploration of a root without priors: L · ((1 − f) / L + f · Dirichlet), L open columns."""
    is_open = open_columns(mask) >> np.arange(COLUMNS) & 1
    legal = is_open.sum()
    return is_open * (legal * ((1.0 - noise_fraction) / legal + noise_fraction * dirichlet(gamma, mask)))


@jit
def noisy_move(label: int, draws: Float64s, mask: np.uint64, noise_fraction: float) -> int:
    """A column drawn from (1 − f) · [the label] + f · Dirichlet; `draws`, (8,), are gamma variates and a uniform."""
    noise, left = dirichlet(draws[:COLUMNS], mask), draws[COLUMNS]
    for column in range(COLUMNS):
        left -= noise_fraction * noise[column] + (1.0 - noise_fraction) * (column == label)
        if left < 0.0:
            return column
    return label

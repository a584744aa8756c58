"""The settings of both searches: all that a result depends on besides position, seed and evaluations.

The constants of PUCT that the engine and the search on a device share are here, too; the textbook states its own.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from distill.common.settings import Settings
from distill.game.rules import CELLS

MOST_SIMULATIONS = 10_000_000
"""Largest number of simulations of one UCT search; 32 bits hold the visits of 100 of them."""

MOST_SOLVER_SIMULATIONS = 250_000
"""The same with `mcts_solver`: a proven win must score above unvisited moves (`engine/uct_simulation.py`)."""

MOST_PUCT_SIMULATIONS = 2**14
"""The same for PUCT: the total of so many values in UNITs is 2^28 at most, a quarter of `engine.tree.PROVEN`."""

UNIT = 2**14
"""PUCT rounds values to multiples of 1 / UNIT, so that a sum does not depend on the order of its terms."""

WON, LOST = 1e9, -1e9
"""PUCT's scores of proven moves; plies to the end bring them nearer to 0: quick wins and slow losses come first."""

C_BASE = 19_652
"""How slowly the exploration of the rules `growing` and `printed` grows, as in the AlphaZero paper."""

C_VISIT, C_SCALE = 50.0, 0.3
"""How values weigh against logits in an improved policy; values are taken on [0, 1]."""

LEAST_PRIOR = 1e-12
"""Smaller priors count as this in an improved policy, which takes the logarithm of priors."""


class UctSettings(Settings):
    """What a search does: all that its result depends on besides the position and the seed."""

    simulations: int = Field(10_000, ge=1, le=MOST_SIMULATIONS)
    """simulations of each search; more play better and take proportionally longer"""
    votes: int = Field(3, ge=1, le=100)
    """independent searches of each position, whose majority is the label"""
    rollout: Literal["heuristic", "random"] = "heuristic"
    """rollout policy: wins and blocks first, then often the centre; or random moves"""
    exploration: float = Field(1.0, ge=0, le=100)
    """constant c of UCB1; more explores weaker moves"""
    noise_fraction: float = Field(0.25, ge=0, le=1)
    """share of Dirichlet noise (0–1) in the root's exploration or in the moves"""
    noise_at: Literal["label", "move"] = "label"
    """where noise acts: in the searches that label, or in the moves played"""
    dirichlet_alpha: float = Field(1.0, ge=0.02, le=1e6)
    """concentration of the noise; less puts it on fewer columns"""
    mcts_solver: bool = False
    """back up proven wins and losses (MCTS-Solver)"""

    @property
    def label_noise(self) -> float:
        """Share of noise in the searches' root exploration."""
        return self.noise_fraction if self.noise_at == "label" else 0.0

    @property
    def move_noise(self) -> float:
        """Share of noise in the moves played."""
        return self.noise_fraction - self.label_noise

    @model_validator(mode="after")
    def _proofs_score_highest(self) -> Self:
        if self.mcts_solver and self.simulations > MOST_SOLVER_SIMULATIONS:
            raise ValueError(
                f"simulations {self.simulations} must be at most {MOST_SOLVER_SIMULATIONS:,} with mcts_solver"
            )
        return self


class PuctSettings(Settings):
    """What a guided search does: all that its result depends on besides position, seed and evaluations."""

    simulations: int = Field(100, ge=1, le=MOST_PUCT_SIMULATIONS)
    """simulations of each search; more play better and take proportionally longer"""
    root: Literal["puct", "gumbel"] = "puct"
    """how the root spends simulations: by score and noise, or by Gumbel draws and sequential halving"""
    rule: Literal["constant", "growing", "printed"] = "constant"
    """exploration of a move that has the prior P and n of its node's N visits: `constant` is c · P · sqrt(N) / (1 + n);
    `growing` is c(N) · P · sqrt(N) / (1 + n), where c(N) = c + ln((N + 19653) / 19652); `printed` is
    c(N) · sqrt(ln N / n), without the prior"""
    exploration: float = Field(1.5, ge=0, le=100)
    """constant c of the rule; more follows the prior and explores"""
    fpu_reduction: float | None = Field(0.25, ge=0, le=10)
    """first-play urgency: unvisited moves count as the node's value less this · sqrt(visited prior); `none`: as 0"""
    noise_fraction: float = Field(0.25, ge=0, le=1)
    """share (0–1) of the root's priors that is Dirichlet noise; 0 also silences a Gumbel root's draws"""
    dirichlet_alpha: float = Field(0.3, ge=0.02, le=1e6)
    """concentration of the noise; less puts it on fewer columns"""
    sampling_plies: int = Field(10, ge=0, le=CELLS)
    """positions with fewer stones play a move drawn at random, later ones the best"""
    temperature: float = Field(1.0, ge=0.01, le=100)
    """random moves have odds visits^(1 / temperature); unused with a Gumbel root"""
    mcts_solver: bool = True
    """back up proven wins and losses (MCTS-Solver), looking one move ahead"""
    discount: float = Field(1.0, ge=0.5, le=1)
    """value multiplier per ply; below 1 prefers quick wins and slow losses"""

    @property
    def win_values(self) -> NDArray[np.float64]:
        """(44,), by plies to the end of the game: the discounted value of a win, in whole UNITs."""
        return np.rint(UNIT * self.discount ** np.arange(CELLS + 2))

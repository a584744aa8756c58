"""The settings of both searches: all that a result depends on besides position, seed and evaluations."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from distill.common.settings import Settings
from distill.game.rules import CELLS

MOST_SIMULATIONS = 10_000_000
"""Largest number of simulations of one UCT search; 32 bits hold the visits of 100 of them."""

MOST_SOLVER_SIMULATIONS = 250_000
"""The same with `mcts_solver`: a proven win must score above unvisited moves (`engine/uct_simulation.py`)."""

MOST_PUCT_SIMULATIONS = 2**14
"""The same for PUCT: the engine's totals stay far below those of proven moves (`engine/puct_tree.py`)."""


class UctSettings(Settings, use_attribute_docstrings=True):
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


class PuctSettings(Settings, use_attribute_docstrings=True):
    """What a guided search does: all that its result depends on besides position, seed and evaluations."""

    simulations: int = Field(100, ge=1, le=MOST_PUCT_SIMULATIONS)
    """simulations of each search; more play better and take proportionally longer"""
    root: Literal["puct", "gumbel"] = "puct"
    """how the root spends simulations: by score and noise, or by Gumbel draws and sequential halving"""
    rule: Literal["constant", "growing", "printed"] = "constant"
    """exploration: c · P · sqrt(N) / (1 + n); c(N) = c + ln((N + 19653) / 19652); c(N) · sqrt(ln N / n), no prior"""
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
    """of these draws: by visits^(1 / temperature); a Gumbel root draws by itself"""
    mcts_solver: bool = True
    """back up proven wins and losses (MCTS-Solver), looking one move ahead"""
    discount: float = Field(1.0, ge=0.5, le=1)
    """value multiplier per ply; below 1 prefers quick wins and slow losses"""

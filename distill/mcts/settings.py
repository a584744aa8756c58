"""The settings of both searches: all that a result depends on besides position, seed and evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from distill.common.cli import Settings, check, check_within, setting
from distill.game.rules import CELLS

MOST_SIMULATIONS = 10_000_000
"""Largest number of simulations of one UCT search."""

MOST_SOLVER_SIMULATIONS = 250_000
"""The same with `mcts_solver`: a proven win must score above unvisited moves (`engine/uct_simulation.py`)."""

MOST_PUCT_SIMULATIONS = 2**14
"""The same for PUCT: the engine's totals stay far below those of proven moves (`engine/puct_tree.py`)."""


@dataclass(frozen=True, kw_only=True)
class UctSettings(Settings, group="search", shown=("simulations", "votes", "rollout", "mcts_solver")):
    """What a search does: all that its result depends on besides the position and the seed."""

    simulations: int = setting(10_000, "simulations of each search; more play better and take proportionally longer")
    votes: int = setting(3, "independent searches of each position, whose majority is the label")
    rollout: Literal["heuristic", "random"] = setting(
        "heuristic", "rollout policy: wins and blocks first, then often the centre; or random moves"
    )
    exploration: float = setting(1.0, "constant c of UCB1; more explores weaker moves")
    noise_fraction: float = setting(0.25, "share of Dirichlet noise (0–1) in the root's exploration or in the moves")
    noise_at: Literal["label", "move"] = setting(
        "label", "where noise acts: in the searches that label, or in the moves played, which keeps labels clean"
    )
    dirichlet_alpha: float = setting(1.0, "concentration of the noise; less puts it on fewer columns")
    mcts_solver: bool = setting(False, "back up proven wins and losses (MCTS-Solver)")
    engine: Literal["compiled", "reference"] = setting(
        "compiled", "compiled search, or the textbook mcts/reference.py: the same trees, hundreds of times slower"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within(self, f"[1, {MOST_SIMULATIONS:_}]", "simulations")
        solvable = not self.mcts_solver or self.simulations <= MOST_SOLVER_SIMULATIONS
        most = f"at most {MOST_SOLVER_SIMULATIONS:,} with --mcts-solver"
        check(solvable, "simulations", self.simulations, most)
        check_within(self, "[1, 100]", "votes")
        check_within(self, "[0, 100]", "exploration")
        check_within(self, "[0, 1]", "noise_fraction")
        check_within(self, "(0, 1e6]", "dirichlet_alpha")
        most_votes = (2**31 - 1) // self.simulations  # their visits are summed in 32 bits
        range_here = f"from 1 to {most_votes}, with --simulations {self.simulations}"
        check(self.votes <= most_votes, "votes", self.votes, range_here)


@dataclass(frozen=True, kw_only=True)
class PuctSettings(Settings, group="search", shown=("simulations", "root")):
    """What a guided search does: all that its result depends on besides position, seed and evaluations."""

    simulations: int = setting(100, "simulations of each search; more play better and take proportionally longer")
    root: Literal["puct", "gumbel"] = setting(
        "puct", "how the root spends simulations: by score and noise, or by Gumbel draws and sequential halving"
    )
    rule: Literal["constant", "growing", "printed"] = setting(
        "constant",
        "exploration: c · P · sqrt(N) / (1 + n), the same with c(N) = c + ln((N + 19653) / 19652), or c(N) · "
        "sqrt(ln N / n) without a prior",
    )
    exploration: float = setting(1.5, "constant c of the rule; more follows the prior and explores")
    fpu_reduction: float | None = setting(
        0.25,
        "first-play urgency: unvisited moves count as the node's value less this · sqrt(visited prior); `none`: as 0",
    )
    noise_fraction: float = setting(
        0.25, "share (0–1) of the root's priors that is Dirichlet noise; 0 also silences a Gumbel root's draws"
    )
    dirichlet_alpha: float = setting(0.3, "concentration of the noise; less puts it on fewer columns")
    sampling_plies: int = setting(10, "positions with fewer stones play a move drawn at random, later ones the best")
    temperature: float = setting(1.0, "of these draws: by visits^(1 / temperature); a Gumbel root draws by itself")
    mcts_solver: bool = setting(True, "back up proven wins and losses (MCTS-Solver), looking one move ahead")
    discount: float = setting(1.0, "value multiplier per ply (0.5–1); below 1 prefers quick wins and slow losses")
    engine: Literal["compiled", "reference"] = setting(
        "compiled", "compiled search, or the textbook mcts/reference_puct.py: the same trees, hundreds of times slower"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within(self, f"[1, {MOST_PUCT_SIMULATIONS:_}]", "simulations")
        check_within(self, "[0, 10]", "fpu_reduction")
        check_within(self, "[0, 100]", "exploration")
        check_within(self, "[0, 1]", "noise_fraction")
        check_within(self, "(0, 1e6]", "dirichlet_alpha")
        check_within(self, f"[0, {CELLS}]", "sampling_plies")
        check_within(self, "[0.01, 100]", "temperature")
        check_within(self, "[0.5, 1]", "discount")

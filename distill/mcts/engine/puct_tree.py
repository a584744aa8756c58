"""The trees of PUCT and Gumbel search: their arrays and what a move's mean value is.

A node gets its row when it is first reached, since the row holds the priors of its moves. Totals are in UNITs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distill.game.rules import CELLS, COLUMNS
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.jit import Float32s, Float64s, Int32s, Int64s, UInt64s, inline, int64
from distill.mcts.engine.tree import CHILD, PRIOR, TOTAL, WIDTH, is_lost, is_proven, new_rows, plies_to_end, zeros
from distill.mcts.results import GameRecord
from distill.mcts.settings import C_BASE, UNIT, PuctSettings

NODE_VALUE = PRIOR + COLUMNS
"""Where in a row the network's value of the node stands."""


class PuctParameters(NamedTuple):
    """The fields of `settings.PuctSettings` that compiled code reads, and tables made of them."""

    simulations: int
    gumbel: bool  # a Gumbel root
    printed: bool  # the rule "printed"
    fpu_reduction: float  # below 0: unvisited moves have the value 0
    noise_fraction: float
    sampling_plies: int
    temperature: float
    discount: float
    mcts_solver: bool
    win_value: Int64s  # (44,) by plies to the end: discounted value of a won game, in UNITs
    schedule: Int32s  # (8, simulations): by open columns, `halving_schedule`


class KeptEvaluations(NamedTuple):
    """Evaluations of one network, kept for positions that are reached again, in this search or a later one."""

    known: UInt64s  # (E,) keys of their positions; E a power of two
    values: Float32s  # (E * 8,) seven priors and the value of each


class PuctDraws(NamedTuple):
    """All random numbers of G games, S positions each. A = 7 columns."""

    noise: Float64s  # (G, S, A) of the root: gamma variates, over their sum Dirichlet noise; or Gumbel variates
    uniform: Float64s  # (G, S, 2) for the move, and for rounding a policy to visits


class PuctTrees(NamedTuple):
    """Trees of L lanes, C rows each; a lane plays one game after the other. D = 43 levels."""

    parameters: PuctParameters
    rows: Int32s  # (L * C * WIDTH,)
    floats: Float32s  # the same memory as floats
    used: Int64s  # (L,) rows in use; 0 until the root is evaluated
    bonus: Float64s  # (C,) exploration factor of a node entered N times
    draws: PuctDraws  # of the L games that the lanes play
    kept: KeptEvaluations
    # The game of a lane and its current search.
    game: Int64s  # (L,) index into the record; -1 once it has ended
    step: Int64s  # (L,) position of the game
    current: UInt64s  # (L,) this position, the root
    mask: UInt64s
    simulations: Int64s  # (L,) of this search so far
    weights: Float64s  # (L, 8) factors of the printed rule's exploration term at the root
    # Scratch of one simulation.
    leaf_current: UInt64s  # (L,)
    leaf_mask: UInt64s
    depth: Int64s  # (L,) moves on the path; 0 where the leaf is the root
    path: Int64s  # (D, L) where in `rows` the count of each chosen move stands
    scores: Float64s  # (8,) of the columns of a Gumbel root


def new_trees(settings: PuctSettings, draws: PuctDraws, kept: KeptEvaluations, record: GameRecord) -> PuctTrees:
    """Trees in which the first games of the record begin, one a lane. Untouched rows cost no memory."""
    bonus, lanes = exploration_factors(settings), len(draws.uniform)
    rows = new_rows(lanes * len(bonus))
    schedule = [halving_schedule(settings.simulations, columns) for columns in range(COLUMNS + 1)]
    other_form = {
        "gumbel": settings.root == "gumbel",
        "printed": settings.rule == "printed",
        "fpu_reduction": -1.0 if settings.fpu_reduction is None else settings.fpu_reduction,
        "win_value": settings.win_values.astype(np.int64),
        "schedule": np.array(schedule, np.int32),
    }
    return PuctTrees(
        parameters=PuctParameters(**settings.model_dump(include={*PuctParameters._fields}) | other_form),
        rows=rows,
        floats=rows.view(np.float32),
        bonus=bonus,
        draws=draws,
        kept=kept,
        game=np.arange(lanes),
        current=record.current[:lanes, 0].copy(),
        mask=record.mask[:lanes, 0].copy(),
        weights=np.ones((lanes, SLOTS)),
        path=np.zeros((CELLS + 1, lanes), np.int64),
        scores=np.zeros(SLOTS),
        **zeros(lanes, np.int64, "used", "step", "simulations", "depth"),
        **zeros(lanes, np.uint64, "leaf_current", "leaf_mask"),
    )


def exploration_factors(settings: PuctSettings) -> Float64s:
    """What multiplies P / (1 + n), or 1 / sqrt(n) for the printed rule, in a node entered N times; by N."""
    entered = np.maximum(np.arange(settings.simulations + 3, dtype=np.float64), 1.0)
    c = np.full(len(entered), settings.exploration)
    if settings.rule != "constant":
        c += np.log((entered + C_BASE + 1) / C_BASE)
    return c * np.sqrt(np.log(entered) if settings.rule == "printed" else entered)


def halving_schedule(simulations: int, columns: int) -> Int32s:
    """int32 (simulations,): for each simulation, the visits of the columns whose turn it is (sequential halving).

    `columns` are open at the root. In ceil(log2(columns)) phases of about equally many simulations, all of them get
    one visit after the other, then the better half, and so on down to two, which go on to the end.
    """
    if columns <= 1:
        return np.arange(simulations, dtype=np.int32)
    phases = int(np.ceil(np.log2(columns)))
    parts, first, left, done = list[Int32s](), 0, columns, 0
    while done < simulations:
        # One phase: each column left has `first` visits, and gets `more`.
        more = max(1, simulations // (phases * left))
        parts.append(np.repeat(np.arange(first, first + more, dtype=np.int32), left))
        first, done, left = first + more, done + more * left, max(2, left // 2)
    return np.concatenate(parts)[:simulations]


@inline
def root_row(trees: PuctTrees, lane: int) -> int:
    """Where the row of a lane's root begins."""
    return lane * len(trees.bonus) * WIDTH


@inline
def mean_value(trees: PuctTrees, slot: int) -> float:
    """The mean value, in [-1, 1], of the move whose count stands at `slot`: what a proof says, or 0 without visits."""
    rows = trees.rows
    n, total = int64(rows[slot]), int64(rows[slot + TOTAL])
    mean = total / (UNIT * n) if n > 0 else 0.0
    if is_proven(total):
        mean = trees.parameters.win_value[plies_to_end(int64(rows[slot + CHILD]))] / UNIT
        if is_lost(total):
            mean = -mean
    return mean

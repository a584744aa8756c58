"""A Gumbel root (Danihelka et al. 2022): few simulations spent by Gumbel draws and sequential halving.

The columns are scored by a Gumbel draw, their prior and what the search thinks of them; halving gives the better ones
ever more simulations, and the move is the best of those visited most. What is recorded as visits is the improved
policy, finer than so few simulations could say.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.compiled import inline, jit, popcount
from distill.mcts.guided_trees import OWN_VALUE, PRIOR, mean_return
from distill.mcts.playout_trees import CENTRE_FIRST, HOPELESS, PROVEN, TOTAL, root_row
from distill.mcts.rollout import U, open_columns

POLICY_UNITS = 1000
"""The visits recorded for a Gumbel root sum to this."""


def halving_schedule(simulations: int, considered: int) -> list[int]:
    """For each simulation the visits that the columns whose turn it is have (sequential halving, Karnin et al. 2013).

    All considered columns get equally many visits, then the better half of them, and so on down to two.
    """
    if considered <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(considered))
    turns: list[int] = []
    visits, number = [0] * considered, considered
    while len(turns) < simulations:
        for _ in range(max(1, simulations // (rounds * number))):
            turns += visits[:number]
            visits[:number] = [count + 1 for count in visits[:number]]
        number = max(2, number // 2)
    return turns[:simulations]


@jit
def score_root(trees: Any, lane: Any, chance: Any) -> Any:
    """Fill `scores` with chance · g + ln P + sigma(q); returns the most visits of a column.

    sigma(q) = (c_visit + max n) · c_scale · (1 + q) / 2. An unvisited column's q is the mixed value of Danihelka et al.
    2022: (v + N / sum P · sum P Q) / (1 + N), sums over visited columns, v the network's own value of the root.
    """
    rows, floats, rules = trees.rows, trees.floats, trees.rules
    base, step = root_row(trees, lane), trees.step[lane]
    most, visits, weight, returns = np.int64(0), np.int64(0), 0.0, 0.0
    for column in range(COLUMNS):
        n = np.int64(rows[base + column])
        if rows[base + TOTAL + column] == HOPELESS or n == 0:
            continue
        most, visits = max(most, n), visits + n
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        weight += prior
        returns += prior * mean_return(trees, base + column)
    mixed = np.float64(floats[base + OWN_VALUE])
    if visits > 0:
        mixed = (mixed + visits * returns / weight) / (1 + visits)
    for column in range(COLUMNS):
        trees.scores[column] = -np.inf
        total = np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        seen = rows[base + column] > 0 or abs(total) > PROVEN // 2
        q = mean_return(trees, base + column) if seen else mixed
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        sigma = (rules.c_visit + most) * rules.c_scale * (1.0 + q) / 2
        trees.scores[column] = chance * trees.gumbel[lane, step, column] + np.log(prior) + sigma
    return most


@inline
def best_with_visits(trees: Any, lane: Any, visits: Any) -> Any:
    """The column of the highest score in `scores` among those visited so often; -1 where there is none."""
    base = root_row(trees, lane)
    best, highest = np.int64(-1), -np.inf
    for column in CENTRE_FIRST:
        if np.int64(trees.rows[base + column]) == visits and trees.scores[column] > highest:
            best, highest = column, trees.scores[column]
    return best


@inline
def halve(trees: Any, lane: Any) -> Any:
    """The root's column for this simulation by sequential halving, one of those whose turn the schedule says it is."""
    rules = trees.rules
    score_root(trees, lane, 1.0)
    considered = min(rules.considered, np.int64(popcount(U(open_columns(trees.mask[lane])))))
    return best_with_visits(trees, lane, np.int64(rules.schedule[considered, trees.done[lane]]))


@inline
def improved_policy(trees: Any, record: Any, lane: Any, label: Any) -> None:
    """Record softmax(`scores`) as visits, in units of 1 / POLICY_UNITS.

    Rounded by systematic sampling: one uniform number shifts all the steps, so that each column gets its share on
    average.
    """
    g, s = trees.game[lane], trees.step[lane]
    total = 0.0
    for column in range(COLUMNS):
        total += np.exp(trees.scores[column] - trees.scores[label])
    shift, below, before = trees.uniform[lane, s, 1], 0.0, np.int64(0)
    for column in range(COLUMNS):
        below += np.exp(trees.scores[column] - trees.scores[label])
        here = np.int64(np.floor(below / total * POLICY_UNITS + shift))
        record.visits[g, s, column] = here - before
        before = here


@inline
def expected_return(trees: Any, lane: Any, label: Any) -> Any:
    """The worth of the improved policy: mean returns weighed by softmax(`scores`), of columns not seen the root's own.

    Not weighed by visits: halving hands those out to bad columns as to good ones.
    """
    rows, base = trees.rows, root_row(trees, lane)
    own, total, returns = np.float64(trees.floats[base + OWN_VALUE]), 0.0, 0.0
    for column in range(COLUMNS):
        weight, proof = np.exp(trees.scores[column] - trees.scores[label]), np.int64(rows[base + TOTAL + column])
        seen = proof != HOPELESS and (rows[base + column] > 0 or abs(proof) > PROVEN // 2)
        total, returns = total + weight, returns + weight * (mean_return(trees, base + column) if seen else own)
    return returns / total

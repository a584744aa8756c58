"""A Gumbel root (Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022): few simulations, used well.

Columns are scored by a Gumbel draw, their prior and what the search finds; sequential halving gives the better ones
more and more simulations, and the move is the best of those visited most. Recorded as visits is the improved policy,
which is finer than so few simulations could be.
"""

from __future__ import annotations

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.engine.bits import CENTRE_FIRST, U, open_columns, popcount
from distill.mcts.engine.jit import Int32s, inline, int64, jit
from distill.mcts.engine.puct_tree import NODE_VALUE, PuctTrees, mean_value, root_row
from distill.mcts.engine.tree import HOPELESS, PRIOR, TOTAL, is_proven

POLICY_UNITS = 1000
"""The visits recorded for a Gumbel root sum to this."""
C_VISIT, C_SCALE = 50.0, 0.3
"""How values weigh against logits; values are taken on [0, 1]."""


@inline
def is_evaluated(trees: PuctTrees, slot: int) -> bool:
    """Whether the move whose count stands at `slot` has been visited or is proven."""
    return trees.rows[slot] > 0 or is_proven(trees.rows[slot + TOTAL])


@jit
def score_root(trees: PuctTrees, lane: int, noise: float) -> int:
    """Fill `scores` with noise · g + ln P + sigma(Q); returns the most visits of a column.

    sigma(Q) = (C_VISIT + max n) · C_SCALE · (1 + Q) / 2. The Q of an unvisited column is the mixed value
    (v + N / sum P · sum P Q) / (1 + N), sums over visited columns, v the network's value of the root.
    """
    rows, floats = trees.rows, trees.floats
    base, gumbel = root_row(trees, lane), trees.draws.gumbel[lane, trees.step[lane]]
    most, visits, weight, returns = int64(0), int64(0), 0.0, 0.0
    for column in range(COLUMNS):
        n = int64(rows[base + column])
        if rows[base + TOTAL + column] == HOPELESS or n == 0:
            continue
        most, visits = max(most, n), visits + n
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        weight += prior
        returns += prior * mean_value(trees, base + column)
    # An unvisited column has the mixed value.
    mixed = np.float64(floats[base + NODE_VALUE])
    if visits > 0:
        mixed = (mixed + visits * returns / weight) / (1 + visits)
    # The score of each column; the lowest possible for a full one.
    for column in range(COLUMNS):
        trees.scores[column] = -np.inf
        if rows[base + TOTAL + column] == HOPELESS:
            continue
        q = mean_value(trees, base + column) if is_evaluated(trees, base + column) else mixed
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        sigma = (C_VISIT + most) * C_SCALE * (1.0 + q) / 2
        trees.scores[column] = noise * gumbel[column] + np.log(prior) + sigma
    return most


@inline
def best_with_visits(trees: PuctTrees, lane: int, visits: int) -> int:
    """The column with the highest score in `scores` among those with so many visits; -1 where there is none."""
    base = root_row(trees, lane)
    best, highest = int64(-1), -np.inf
    for column in CENTRE_FIRST:
        if int64(trees.rows[base + column]) == visits and trees.scores[column] > highest:
            best, highest = column, trees.scores[column]
    return best


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
def column_by_halving(trees: PuctTrees, lane: int) -> int:
    """The root's column for this simulation: the best-scored one among those whose turn it is."""
    score_root(trees, lane, 1.0)
    columns = int64(popcount(U(open_columns(trees.mask[lane]))))
    return best_with_visits(trees, lane, int64(trees.parameters.schedule[columns, trees.simulations[lane]]))


@jit
def improved_policy(trees: PuctTrees, lane: int, label: int, visits: Int32s) -> float:
    """Fill `visits`, (7,), with the improved policy in POLICY_UNITS, and return its value at the root.

    The policy is the softmax of `scores`. It is rounded by systematic sampling: one uniform number shifts all steps, so
    that every column gets its share on average. The value weighs mean values by the policy, not by visits, which
    halving hands out to bad columns as to good ones; an unvisited column counts as the network's value of the root.
    """
    base, uniform = root_row(trees, lane), trees.draws.uniform[lane, trees.step[lane], 1]
    node_value, total, returns = np.float64(trees.floats[base + NODE_VALUE]), 0.0, 0.0
    for column in range(COLUMNS):
        weight = np.exp(trees.scores[column] - trees.scores[label])
        known = trees.rows[base + TOTAL + column] != HOPELESS and is_evaluated(trees, base + column)
        total, returns = total + weight, returns + weight * (mean_value(trees, base + column) if known else node_value)
    below, before = 0.0, int64(0)
    for column in range(COLUMNS):
        below += np.exp(trees.scores[column] - trees.scores[label])
        here = int64(np.floor(below / total * POLICY_UNITS + uniform))
        visits[column] = here - before
        before = here
    return returns / total

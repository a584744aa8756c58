"""What a PUCT search does at its root: noise, the label and the move, the next position; and the Gumbel root.

**A Gumbel root** (Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022) spends few simulations well.
Columns are scored by a Gumbel draw, their prior and what the search finds; sequential halving gives the better ones
more and more simulations, and the move is the best of those visited most. Recorded as visits is the improved policy,
which is finer than so few simulations could be.
"""

from __future__ import annotations

import numpy as np

from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE
from distill.mcts.engine.bits import FULL, U, has_four, landing, open_columns, popcount
from distill.mcts.engine.jit import Int32s, inline, int64, jit
from distill.mcts.engine.noise import dirichlet, exploration_weights
from distill.mcts.engine.puct_tree import NODE_VALUE, PuctTrees, mean_value, root_row
from distill.mcts.engine.tree import CHILD, HOPELESS, PRIOR, TOTAL, is_lost, is_proven, is_won, plies_to_end
from distill.mcts.results import GameRecord
from distill.mcts.settings import C_SCALE, C_VISIT, LEAST_PRIOR

POLICY_UNITS = 1000
"""The visits recorded for a Gumbel root sum to this."""


@inline
def start_search(trees: PuctTrees, lane: int) -> None:
    """The root has its row: mix noise into its priors, and into the weights of the printed rule."""
    fraction = trees.parameters.noise_fraction
    if fraction > 0.0 and not trees.parameters.gumbel:
        gamma, mask = trees.draws.noise[lane, trees.step[lane]], trees.mask[lane]
        priors = trees.floats[root_row(trees, lane) + PRIOR :][:COLUMNS]
        priors[:] = (1.0 - fraction) * priors.astype(np.float64) + fraction * dirichlet(gamma, mask)
        trees.weights[lane, :COLUMNS] = exploration_weights(gamma, mask, fraction)


@jit
def finish_search(trees: PuctTrees, record: GameRecord, lane: int) -> int:
    """Record the search of a lane's position and return the column to play.

    Where the root is proven, all visits are recorded for the label: they are what a network learns from.
    """
    parameters = trees.parameters
    base, g, s = root_row(trees, lane), trees.game[lane], trees.step[lane]
    sampled = int64(popcount(trees.mask[lane])) < parameters.sampling_plies
    label, proven = best_visited(trees, lane)
    move = label
    if proven:
        record.visits[g, s, label] = POLICY_UNITS if parameters.gumbel else parameters.simulations
        record.value[g, s] = mean_value(trees, base + label)
    elif parameters.gumbel:
        # With noise for the move, then without for the policy that is recorded.
        move = best_scored(trees, lane, score_root(trees, lane, 1.0))
        score_root(trees, lane, 0.0)
        label = best_scored(trees, lane, -1)
        record.value[g, s] = improved_policy(trees, lane, label, record.visits[g, s])
        move = move if sampled else label
    else:
        # The root's visits are the policy, and its value their mean.
        visits, returns = int64(0), 0.0
        for column in COLUMNS_FROM_CENTRE:
            if trees.rows[base + TOTAL + column] != HOPELESS:
                n = int64(trees.rows[base + column])
                record.visits[g, s, column] = n
                visits += n
                returns += n * mean_value(trees, base + column)
        record.value[g, s] = returns / visits
        if sampled:
            move = sample_by_visits(trees, lane, label)
    record.votes[g, s, 0], record.label[g, s] = label, label
    record.simulations[g, s] = parameters.simulations
    return move


@jit
def best_visited(trees: PuctTrees, lane: int) -> tuple[int, bool]:
    """The best column by proofs and visits, and whether the root is proven.

    It is the column that is proven to win soonest, then the most visited that is not proven to lose, then the one that
    loses last; of equals the one with the higher mean value, then the nearest to the centre.
    """
    rows, base = trees.rows, root_row(trees, lane)
    best, most, best_mean = int64(-1), int64(-(2**40)), -2.0
    won, lost = False, True
    for column in COLUMNS_FROM_CENTRE:
        total = int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        mean = mean_value(trees, base + column)
        # Weights keep three groups apart: won, open and lost; `sooner` orders the proven ones.
        sooner, wins, loses = 64 - plies_to_end(int64(rows[base + CHILD + column])), is_won(total), is_lost(total)
        weight = int64(rows[base + column]) + 2**30 * sooner * (int64(wins) - int64(loses))
        won, lost = won or wins, lost and loses
        if weight > most or (weight == most and mean > best_mean):
            best, most, best_mean = column, weight, mean
    return best, won or lost


@jit
def sample_by_visits(trees: PuctTrees, lane: int, label: int) -> int:
    """A column drawn by visits^(1 / temperature) among those not proven to lose."""
    rows, base, power = trees.rows, root_row(trees, lane), 1.0 / trees.parameters.temperature
    visits, total = rows[base : base + COLUMNS], rows[base + TOTAL : base + TOTAL + COLUMNS]
    odds = np.where(is_lost(total), 0.0, (visits / max(1.0, np.float64(visits[label]))) ** power)
    left = trees.draws.uniform[lane, trees.step[lane], 0] * odds.sum()
    for column in range(COLUMNS):
        left -= odds[column]
        if left < 0.0:
            return column
    return label


@jit
def start_next(trees: PuctTrees, record: GameRecord, lane: int, move: int) -> None:
    """Play the column; the lane continues with the next position, or waits for a game where this one has ended."""
    game, step = trees.game[lane], trees.step[lane]
    current, mask = trees.current[lane], trees.mask[lane]
    record.move[game, step] = move
    stone = landing(mask, move)
    won = has_four(current | stone)
    if won or mask | stone == FULL or step + 1 == record.label.shape[1]:
        record.result[game], record.length[game] = won, step + 1
        trees.game[lane] = -1
    else:
        record.current[game, step + 1], record.mask[game, step + 1] = current ^ mask, mask | stone
        set_root(trees, record, lane, game, step + 1)


@jit
def set_root(trees: PuctTrees, record: GameRecord, lane: int, game: int, step: int) -> None:
    """Let the lane search this position of this game next."""
    trees.game[lane], trees.step[lane] = game, step
    trees.current[lane], trees.mask[lane] = record.current[game, step], record.mask[game, step]
    trees.used[lane], trees.simulations[lane] = 0, 0


# The Gumbel root ------------------------------------------------------------------------------------------------------


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
    base, gumbel = root_row(trees, lane), trees.draws.noise[lane, trees.step[lane]]
    most, visits, weight, returns = int64(0), int64(0), 0.0, 0.0
    for column in range(COLUMNS):
        n = int64(rows[base + column])
        if rows[base + TOTAL + column] == HOPELESS or n == 0:
            continue
        most, visits = max(most, n), visits + n
        prior = max(np.float64(floats[base + PRIOR + column]), LEAST_PRIOR)
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
        prior = max(np.float64(floats[base + PRIOR + column]), LEAST_PRIOR)
        sigma = (C_VISIT + most) * C_SCALE * (1.0 + q) / 2
        trees.scores[column] = noise * gumbel[column] + np.log(prior) + sigma
    return most


@inline
def best_scored(trees: PuctTrees, lane: int, visits: int) -> int:
    """The column with the highest score in `scores` among those with so many visits, or of all where it is -1."""
    base = root_row(trees, lane)
    best, highest = int64(-1), -np.inf
    for column in COLUMNS_FROM_CENTRE:
        if visits in (-1, int64(trees.rows[base + column])) and trees.scores[column] > highest:
            best, highest = column, trees.scores[column]
    return best


@inline
def column_by_halving(trees: PuctTrees, lane: int) -> int:
    """The root's column for this simulation: the best-scored one among those whose turn it is."""
    score_root(trees, lane, 1.0)
    columns = int64(popcount(U(open_columns(trees.mask[lane]))))
    return best_scored(trees, lane, int64(trees.parameters.schedule[columns, trees.simulations[lane]]))


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
        rounded = int64(np.floor(below / total * POLICY_UNITS + uniform))
        visits[column] = rounded - before
        before = rounded
    return returns / total

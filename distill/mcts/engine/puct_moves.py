"""The start and the end of a PUCT search: noise at the root, the label and the move, the next position."""

from __future__ import annotations

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.engine.bits import CENTRE_FIRST, FULL, has_four, landing, open_columns, popcount
from distill.mcts.engine.gumbel import POLICY_UNITS, best_with_visits, improved_policy, score_root
from distill.mcts.engine.jit import inline, int64, jit
from distill.mcts.engine.noise import dirichlet, exploration_weights
from distill.mcts.engine.puct_tree import GUMBEL, PuctTrees, mean_value, root_row
from distill.mcts.engine.record import GameRecord
from distill.mcts.engine.tree import CHILD, HOPELESS, PRIOR, PROVEN, TOTAL, plies_to_end


@inline
def start_search(trees: PuctTrees, lane: int) -> None:
    """The root has its row: mix noise into its priors, and into the weights of the printed rule."""
    parameters, floats, step = trees.parameters, trees.floats, trees.step[lane]
    trees.root_expanded[lane] = True
    fraction = parameters.noise_fraction
    if fraction > 0.0 and parameters.root != GUMBEL:
        base, allowed, gamma = root_row(trees, lane), open_columns(trees.mask[lane]), trees.gamma[lane, step]
        noise = dirichlet(gamma, trees.mask[lane])
        weights = exploration_weights(gamma, trees.mask[lane], fraction)
        for column in range(COLUMNS):
            if allowed >> column & 1:
                prior = np.float64(floats[base + PRIOR + column])
                floats[base + PRIOR + column] = (1.0 - fraction) * prior + fraction * noise[column]
                trees.weights[lane, column] = weights[column]


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
        record.visits[g, s, label] = POLICY_UNITS if parameters.root == GUMBEL else parameters.simulations
        record.value[g, s] = mean_value(trees, base + label)
    elif parameters.root == GUMBEL:
        # With noise for the move, then without for the policy that is recorded.
        move = best_with_visits(trees, lane, score_root(trees, lane, 1.0))
        score_root(trees, lane, 0.0)
        label = int64(-1)
        for column in CENTRE_FIRST:
            if label < 0 or trees.scores[column] > trees.scores[label]:
                label = column
        record.value[g, s] = improved_policy(trees, lane, label, record.visits[g, s])
        move = move if sampled else label
    else:
        # The root's visits are the policy, and its value their mean.
        visits, returns = int64(0), 0.0
        for column in CENTRE_FIRST:
            if trees.rows[base + TOTAL + column] != HOPELESS:
                n = int64(trees.rows[base + column])
                record.visits[g, s, column] = n
                visits += n
                returns += n * mean_value(trees, base + column)
        record.value[g, s] = returns / visits
        if sampled:
            move = sample_by_visits(trees, lane, label)
    record.votes[g, s, 0], record.label[g, s], record.move[g, s] = label, label, move
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
    for column in CENTRE_FIRST:
        total = int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        mean = mean_value(trees, base + column)
        # Weights keep three groups apart: won, open and lost; `sooner` orders the proven ones.
        weight, sooner = int64(rows[base + column]), 64 - plies_to_end(int64(rows[base + CHILD + column]))
        if total > PROVEN // 2:
            weight += 2**30 * sooner
            won = True
        if total < -PROVEN // 2:
            weight -= 2**30 * sooner
        else:
            lost = False
        if weight > most or (weight == most and mean > best_mean):
            best, most, best_mean = column, weight, mean
    return best, won or lost


@inline
def sample_by_visits(trees: PuctTrees, lane: int, label: int) -> int:
    """A column drawn by visits^(1 / temperature) among those not proven to lose."""
    rows, base, power = trees.rows, root_row(trees, lane), 1.0 / trees.parameters.temperature
    most = max(1.0, np.float64(rows[base + label]))
    total = 0.0
    for column in range(COLUMNS):
        if rows[base + TOTAL + column] > -PROVEN // 2:
            total += (rows[base + column] / most) ** power
    left = trees.uniform[lane, trees.step[lane], 0] * total
    move = label
    for column in range(COLUMNS):
        if rows[base + TOTAL + column] > -PROVEN // 2:
            left -= (rows[base + column] / most) ** power
            if left < 0.0:
                move = int64(column)
                break
    return move


@jit
def play_move(trees: PuctTrees, record: GameRecord, lane: int, move: int) -> None:
    """Play the column; the lane continues with the next position or, where the game has ended, is idle."""
    g, s = trees.game[lane], trees.step[lane]
    own, mask = trees.current[lane], trees.mask[lane]
    stone = landing(mask, move)
    won = has_four(own | stone)
    if won or mask | stone == FULL or s + 1 == record.label.shape[1]:
        record.result[g] = np.int8(won)
        record.length[g] = s + 1
        trees.game[lane] = -1
    else:
        trees.current[lane], trees.mask[lane], trees.step[lane] = own ^ mask, mask | stone, s + 1
        record.current[g, s + 1], record.mask[g, s + 1] = own ^ mask, mask | stone
        trees.root_expanded[lane] = False
        trees.simulations[lane] = 0

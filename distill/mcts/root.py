"""The root of a search: its noise when it begins, the label and the move when it is over, the subtree that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts.compiled import inline, jit, popcount
from distill.mcts.guided_trees import PRIOR, mean_return
from distill.mcts.gumbel import POLICY_UNITS, best_with_visits, expected_return, improved_policy, score_root
from distill.mcts.playout_trees import (
    CENTRE_FIRST,
    CHILD,
    HOPELESS,
    PROVEN,
    TOTAL,
    WIDTH,
    plies_to_end,
    root_noise,
    root_row,
)
from distill.mcts.rollout import FULL, has_four, landing, open_columns


@inline
def open_search(trees: Any, lane: Any) -> None:
    """The root has its row: mix the noise into its priors (or, for the printed term, weigh its exploration)."""
    rules, floats, step = trees.rules, trees.floats, trees.step[lane]
    trees.planted[lane] = True
    trees.done[lane] = 0
    if rules.noise > 0.0 and not rules.gumbel:
        base, allowed = root_row(trees, lane), open_columns(trees.mask[lane])
        drawn = root_noise(trees.gamma[lane, step], trees.mask[lane], rules.noise)
        for column in range(COLUMNS):
            if allowed >> column & 1:
                prior = np.float64(floats[base + PRIOR + column])
                floats[base + PRIOR + column] = (1.0 - rules.noise) * prior + rules.noise * drawn[0, column]
                trees.weights[lane, column] = drawn[1, column]


@jit
def conclude(trees: Any, record: Any, lane: Any) -> Any:
    """Record the search of a lane's position and return the column to play.

    The label is the column that is proven to win soonest, then the most visited that is not proven to lose (with a
    Gumbel root, the likeliest by its improved policy), then the one that loses last. Where the root is proven, all
    visits are recorded for the label: they are what a network learns from.
    """
    rows, rules = trees.rows, trees.rules
    base, g, s = root_row(trees, lane), trees.game[lane], trees.step[lane]
    label, most, best_mean = np.int64(-1), np.int64(-(2**40)), -2.0
    visits, returns, won, lost = np.int64(0), 0.0, False, True
    for column in CENTRE_FIRST:
        total = np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        n, mean = np.int64(rows[base + column]), mean_return(trees, base + column)
        record.visits[g, s, column] = n - trees.carried[lane, column]
        visits += n
        returns += n * mean
        weight, sooner = n, 64 - plies_to_end(np.int64(rows[base + CHILD + column]))
        if total > PROVEN // 2:
            weight, won = n + 2**30 * sooner, True
        if total < -PROVEN // 2:
            weight = n - 2**30 * sooner
        else:
            lost = False
        if weight > most or (weight == most and mean > best_mean):
            label, most, best_mean = column, weight, mean
    move, value = label, returns / visits
    if rules.gumbel:
        top = score_root(trees, lane, 1.0)
        move = best_with_visits(trees, lane, top)
        score_root(trees, lane, 0.0)
        if not (won or lost):
            label = np.int64(-1)
            for column in CENTRE_FIRST:
                if label < 0 or trees.scores[column] > trees.scores[label]:
                    label = column
            improved_policy(trees, record, lane, label)
            value = expected_return(trees, lane, label)
    ply = np.int64(popcount(trees.mask[lane]))
    if won or lost:
        record.visits[g, s, :] = 0
        record.visits[g, s, label] = POLICY_UNITS if rules.gumbel else trees.done[lane]
    if ply >= rules.sampling_plies or won or lost:
        move = label
    elif not rules.gumbel:
        move = _sample(trees, lane, label)
    record.label[g, s], record.move[g, s] = label, move
    record.simulations[g, s] = trees.done[lane]
    record.value[g, s] = mean_return(trees, base + label) if won or lost else value
    return move


@inline
def _sample(trees: Any, lane: Any, label: Any) -> Any:
    """A column drawn by visits^(1 / temperature) among those not proven lost."""
    rows, base, power = trees.rows, root_row(trees, lane), 1.0 / trees.rules.temperature
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
                move = np.int64(column)
                break
    return move


@jit
def go_on(trees: Any, record: Any, lane: Any, move: Any) -> None:
    """Play the column; the lane goes on with the next position or, where the game has ended, is idle."""
    rows, g, s = trees.rows, trees.game[lane], trees.step[lane]
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
        child = np.int64(rows[root_row(trees, lane) + CHILD + move])
        trees.planted[lane] = False
        trees.carried[lane, :] = 0
        trees.simulations[lane] = 0
        if trees.rules.reuse and child > 0:
            _keep_subtree(trees, lane, child)


@inline
def _keep_subtree(trees: Any, lane: Any, child: Any) -> None:
    """Make a child's tree the lane's, unless it is so large that a search would not fit beside it."""
    rows, spare, root = trees.rows, trees.spare, root_row(trees, lane)
    first = root + child * WIDTH
    carried = np.int64(0)
    for column in range(COLUMNS):
        if rows[first + TOTAL + column] != HOPELESS:
            carried += rows[first + column]
    if carried + trees.rules.simulations + 2 < len(trees.bonus):
        for place in range(WIDTH):
            spare[place] = rows[first + place]
        made, node = np.int64(1), np.int64(0)
        while node < made:  # breadth first: a row's children are moved after it
            for column in range(COLUMNS):
                link = np.int64(spare[node * WIDTH + CHILD + column])
                if link > 0:
                    for place in range(WIDTH):
                        spare[made * WIDTH + place] = rows[root + link * WIDTH + place]
                    spare[node * WIDTH + CHILD + column] = made
                    made += 1
            node += 1
        for place in range(made * WIDTH):
            rows[root + place] = spare[place]
        for column in range(COLUMNS):
            if rows[root + TOTAL + column] != HOPELESS:
                trees.carried[lane, column] = rows[root + column]
        trees.used[lane], trees.simulations[lane] = made, carried
        open_search(trees, lane)

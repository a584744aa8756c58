"""One simulation of UCT in many trees at once: select, expand, evaluate by a rollout, back up.

The package's docstring explains the memory layout and the lock step; `reference.uct` is the same search in Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distill.game.rules import BITS_PER_COLUMN, CELLS, COLUMNS
from distill.mcts.engine import tree
from distill.mcts.engine.best_ucb1 import SLOTS, best_ucb1
from distill.mcts.engine.bits import FULL, ONE, U, has_four
from distill.mcts.engine.jit import Float32s, Float64s, Int32s, Int64s, UInt64s, inline, int64, jit
from distill.mcts.engine.noise import exploration_weights
from distill.mcts.engine.rollout import Rollouts, new_rollouts, roll_out, rollout_seed
from distill.mcts.engine.tree import CHILD, TERMINAL, TOTAL, WIDTH, clear_row, is_lost, new_rows, propagate_proof, zeros
from distill.mcts.settings import UctSettings

UNVISITED = 2.0**12
"""Score of an unvisited move, plus its rank in the order: above every mean, below a proven win.

A proven win that was visited n times scores PROVEN / n, so `settings.MOST_SOLVER_SIMULATIONS` bounds n.
"""


class UctTrees(NamedTuple):
    """Trees of L lanes, C rows each; D = 43 levels at most."""

    # The settings that compiled code reads.
    simulations: int
    noise_fraction: float  # of the root's exploration
    heuristic: bool
    mcts_solver: bool
    # The trees and their searches.
    rows: Int32s  # (L * C * WIDTH,)
    used: Int64s  # (L,) rows in use
    weights: Float32s  # ((1 + L) * 8,) factors of the exploration term: ones, then those of each root
    order: Float32s  # (L * 8,) scores of unvisited moves, for every node of the tree
    bonus: Float32s  # (C,) exploration * sqrt(ln N) for N visits of a node
    # Scratch of one simulation.
    node: Int64s  # (L,) row that the lane has reached
    entered: Int64s  # (L,) earlier visits to this node
    leaf_current: UInt64s  # (L,) its position
    leaf_mask: UInt64s
    depth: Int64s  # (L,) moves on the path
    path: Int64s  # (D, L) where in `rows` the count of each chosen move stands
    descending: Int64s  # lanes that have not reached a leaf
    rollouts: Rollouts


def new_trees(lanes: int, settings: UctSettings) -> UctTrees:
    """Trees of so many lanes. Untouched rows cost no memory."""
    capacity = settings.simulations + 2
    visits = np.maximum(np.arange(capacity, dtype=np.float64), 1.0)
    return UctTrees(
        simulations=settings.simulations,
        noise_fraction=settings.label_noise,
        heuristic=settings.rollout == "heuristic",
        mcts_solver=settings.mcts_solver,
        rows=new_rows(lanes * capacity),
        weights=np.ones((1 + lanes) * SLOTS, np.float32),
        order=np.zeros(lanes * SLOTS, np.float32),
        bonus=(settings.exploration * np.sqrt(np.log(visits))).astype(np.float32),
        path=np.zeros((CELLS + 1, lanes), np.int64),
        **zeros(lanes, np.int64, "used", "node", "entered", "depth", "descending"),
        **zeros(lanes, np.uint64, "leaf_current", "leaf_mask"),
        rollouts=new_rollouts(lanes),
    )


@inline
def select(trees: UctTrees, current: UInt64s, mask: UInt64s, simulation: int) -> None:
    """Select a leaf in the tree of each position by UCB1, expanding on the way; visits are counted on the way down."""
    rows, capacity = trees.rows, len(trees.bonus)
    count, level = len(mask), 0
    for lane in range(count):
        trees.descending[lane] = lane
        trees.node[lane] = 0
        trees.entered[lane] = simulation
        trees.leaf_current[lane], trees.leaf_mask[lane] = current[lane], mask[lane]
    while count > 0:
        still = 0
        for j in range(count):
            lane = trees.descending[j]
            base = (lane * capacity + trees.node[lane]) * WIDTH
            weights = (lane + 1) * SLOTS if level == 0 else 0  # noise at the root only; below it the ones
            bonus = trees.bonus[trees.entered[lane]]
            column = best_ucb1(rows, base, trees.weights, weights, trees.order, lane * SLOTS, bonus)
            slot = base + column
            visits, child = rows[slot], int64(rows[slot + CHILD])
            rows[slot] = visits + 1
            trees.path[level, lane] = slot
            trees.depth[lane] = level + 1
            stones = trees.leaf_mask[lane]
            trees.leaf_current[lane] ^= stones
            trees.leaf_mask[lane] = stones | (stones + (ONE << U(BITS_PER_COLUMN * column)))
            # Selection continues through a position that has been visited, unless the game is over or decided there.
            inner = (visits > 0) & (child >= 0)
            if inner & (child == 0):
                child = expand(trees, lane, slot)
            trees.node[lane] = child
            trees.entered[lane] = visits
            # Without a branch: a lane that has reached its leaf is overwritten by the next one.
            trees.descending[still] = lane
            still += int64(inner)
        count = still
        level += 1


@inline
def expand(trees: UctTrees, lane: int, slot: int) -> int:
    """Give the lane's position a row, at its second visit, and return its number."""
    child = trees.used[lane]
    trees.used[lane] = child + 1
    trees.rows[slot + CHILD] = child
    clear_row(trees.rows, (lane * len(trees.bonus) + child) * WIDTH, trees.leaf_mask[lane])
    return child


@inline
def evaluate(trees: UctTrees, key: UInt64s, simulation: int) -> None:
    """Roll out every leaf; where the game is over, `backup` takes the value from the rules."""
    rollouts = trees.rollouts
    for lane in range(len(key)):
        rollouts.current[lane] = trees.leaf_current[lane]
        rollouts.opponent[lane] = trees.leaf_current[lane] ^ trees.leaf_mask[lane]
        rollouts.random[lane] = rollout_seed(key[lane], simulation)
    roll_out(rollouts, len(key), trees.heuristic)


@inline
def backup(trees: UctTrees, count: int) -> None:
    """Add each leaf's value along its path, with the sign alternating; then propagate proofs."""
    rows = trees.rows
    for lane in range(count):
        last = trees.depth[lane] - 1
        leaf = trees.path[last, lane]
        mask = trees.leaf_mask[lane]
        value = trees.rollouts.results_in_order[lane]
        won = has_four(trees.leaf_current[lane] ^ mask)
        if won | (mask == FULL):  # the rollout's result means nothing here
            value = -1 if won else 0
            rows[leaf + CHILD] = TERMINAL
        elif rows[leaf + CHILD] < 0:
            value = 1 if is_lost(rows[leaf + TOTAL]) else -1
        for level in range(last, -1, -1):
            value = -value
            rows[trees.path[level, lane] + TOTAL] += value
        if trees.mcts_solver and won:
            propagate_proof(rows, trees.path, lane, last, True, 1)


@jit
def search(trees: UctTrees, current: UInt64s, mask: UInt64s, key: UInt64s, order: Float32s, gamma: Float64s) -> None:
    """Search at most L positions, one a lane.

    Args:
      current, mask: (L,) bitboards.
      key: (L,) from which the rollouts' seeds are made.
      order: (L, 7) scores of unvisited moves.
      gamma: (L, 7) gamma variates: over their sum, Dirichlet noise of the root.
    """
    for lane in range(len(mask)):
        trees.used[lane] = 1
        clear_row(trees.rows, lane * len(trees.bonus) * WIDTH, mask[lane])
        weights, scores = trees.weights[(lane + 1) * SLOTS :], trees.order[lane * SLOTS :]
        weights[:COLUMNS] = exploration_weights(gamma[lane], mask[lane], trees.noise_fraction)
        scores[:COLUMNS] = order[lane]
    for simulation in range(trees.simulations):
        select(trees, current, mask, simulation)
        evaluate(trees, key, simulation)
        backup(trees, len(mask))


def root_moves(trees: UctTrees, count: int) -> tuple[Int64s, Int64s, Int64s]:
    """The moves at the roots of the first trees, (count, 7) each.

    Returns:
      visits: 0 on full columns.
      returns: the sum over these visits; every visit to a proven move counts as a win or a loss.
      rank: greater for better moves: the visits, but proven wins lie above all visits and proven losses below all.
    """
    roots = trees.rows.reshape(len(trees.used), -1)[:count, :WIDTH].astype(np.int64)
    totals = roots[:, TOTAL : TOTAL + COLUMNS]
    visits, proven = roots[:, :COLUMNS] * (totals != tree.HOPELESS), np.abs(totals) > tree.PROVEN // 2
    # The total of a proven move is a mark that outweighs all visits.
    return visits, np.where(proven, np.sign(totals) * visits, totals), visits + totals * proven

"""The compiled search tree: select, expand, backup, for many searches in lock step.

The scoring rule is a parameter: `descent(best)` gives the descent by a rule. The teacher's UCB1 with playouts is here;
`puct.py` walks and backs up the same rows by rules of its own, with leaves valued by a network.

There is one tree a lane. A node is one row of 32 int32, aligned to two cache lines:

    0-7    n       visits of each child; column 7 does not exist
    8-15   total   summed returns of each child, for the side to move at the node
    16-23  child   row of the child's own node: 0 none yet, or a code below 0: the game ends there,
                   or (MCTS-Solver) the move is proven to win or to lose, and in how many plies
    24-31  own     float32 bits: the prior of each column and the network's value; unused by the teacher

A child's statistics stand in its parent's row, so a child needs a row of its own only from its
second visit on: 10,000 simulations from the empty board fill about 2,800 rows. A full column is
born with one visit and a hopeless total, which keeps every choice free of a legality test.

One step of `advance` is one simulation in every tree: all descend level by level together (their
cache misses overlap), all leaves are played out together, all paths are backed up. Trees never
share anything, so packing them differently changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import BITS_PER_COLUMN, CELLS, COLUMNS, COLUMNS_FROM_CENTRE, ROWS
from distill.mcts.compiled import SLOTS, best_ucb1, inline, jit
from distill.mcts.rollout import FULL, ONE, ZERO, Lanes, U, has_four, new_lanes, open_columns, playout_seed, playouts

TOTAL, CHILD, WIDTH = SLOTS, 2 * SLOTS, 4 * SLOTS
TERMINAL, PROVEN_WIN, PROVEN_LOSS = -1, -2, -3
PLY = -2  # added to the code of a proven move for each ply to the end of the game, the move itself among them
PROVEN = 2**30  # size of the total of a proven child: chosen always, or only when all are lost
HOPELESS = -(2**31)  # total of a full column: below even a proven loss
CENTRE_FIRST = np.array(COLUMNS_FROM_CENTRE)
UNVISITED = 2.0**12  # score of an unvisited child, plus its rank: above any but a proven win's


class PlayoutTrees(NamedTuple):
    """Trees of `lanes` searches. L lanes, C rows a tree, D = 43 levels at most."""

    rows: NDArray[np.int32]  # (L * C * WIDTH,) nodes; the root is row 0 of its tree
    used: NDArray[np.int64]  # (L,) rows in use
    simulations: NDArray[np.int64]  # (L,) executed so far
    current: NDArray[np.uint64]  # (L,) root position
    mask: NDArray[np.uint64]  # (L,)
    key: NDArray[np.uint64]  # (L,) what the playouts' draws are made from
    weights: NDArray[np.float32]  # ((1 + L) * 8,) exploration weights: ones, then each root's
    order: NDArray[np.float32]  # (L * 8,) scores of unvisited children, for every node of the tree
    bonus: NDArray[np.float32]  # (C,) exploration constant * sqrt(ln N) for N visits of a node
    # scratch of the descent, by lane
    node: NDArray[np.int64]
    visits: NDArray[np.int64]
    leaf_current: NDArray[np.uint64]
    leaf_mask: NDArray[np.uint64]
    depth: NDArray[np.int64]
    path: NDArray[np.int64]  # (D * L,) the chosen slot at each level
    descending: NDArray[np.int64]  # lanes that have not reached a leaf
    playouts: Lanes


def new_trees(lanes: int, simulations: int, exploration: float) -> PlayoutTrees:
    """Room for `lanes` searches of up to `simulations` each. Untouched rows cost no memory."""
    capacity = simulations + 2
    visits = np.arange(capacity, dtype=np.float64)
    visits[0] = 1.0
    return PlayoutTrees(
        rows=new_rows(lanes * capacity),
        key=np.zeros(lanes, np.uint64),
        weights=np.ones((1 + lanes) * SLOTS, np.float32),
        order=np.zeros(lanes * SLOTS, np.float32),
        bonus=(exploration * np.sqrt(np.log(visits))).astype(np.float32),
        playouts=new_lanes(lanes),
        **by_lane(lanes),
    )


def by_lane(lanes: int) -> dict[str, NDArray[Any]]:
    """The fields by lane that trees of either kind have, all zero."""
    numbers = ("used", "simulations", "node", "visits", "depth", "descending")
    found: dict[str, NDArray[Any]] = {name: np.zeros(lanes, np.int64) for name in numbers}
    found |= {name: np.zeros(lanes, np.uint64) for name in ("current", "mask", "leaf_current", "leaf_mask")}
    return found | {"path": np.zeros((CELLS + 1) * lanes, np.int64)}


def new_rows(number: int) -> NDArray[np.int32]:
    """int32 (number * WIDTH,), aligned to cache lines. Untouched rows cost no memory."""
    line = 64 // 4
    rows = np.empty(number * WIDTH + line, np.int32)
    offset = -rows.ctypes.data % 64 // 4
    return rows[offset : offset + number * WIDTH]


@inline
def root_row(trees: Any, lane: Any) -> Any:
    """Where the row of a lane's root begins, in trees of either kind."""
    return lane * len(trees.bonus) * WIDTH


@jit
def root_noise(gamma: Any, mask: Any, noise: Any) -> Any:
    """Dirichlet noise of a root: (2, 7), each open column's share of it, and the weight of its exploration.

    The shares are the gamma variates, (7,), over their sum; the weight is n_open * ((1 - f) / n_open + f * share) for
    a noise fraction f.
    """
    allowed, legal, total = open_columns(mask), 0, 0.0
    for column in range(COLUMNS):
        if allowed >> column & 1:
            legal += 1
            total += gamma[column]
    found = np.zeros((2, COLUMNS))
    for column in range(COLUMNS):
        if allowed >> column & 1:
            share = gamma[column] / total if total > 0.0 else 1.0 / legal
            found[0, column], found[1, column] = share, legal * ((1.0 - noise) / legal + noise * share)
    return found


@inline
def clear_row(rows: Any, base: Any, mask: Any) -> None:
    """An unvisited node at a position with these stones."""
    for column in range(WIDTH):
        rows[base + column] = 0
    for column in range(SLOTS):
        if column == COLUMNS or mask >> U(BITS_PER_COLUMN * column + ROWS - 1) & ONE != ZERO:
            rows[base + column] = 1
            rows[base + TOTAL + column] = HOPELESS


@jit
def begin_at(trees: PlayoutTrees, lane: int, current: Any, mask: Any, key: Any) -> None:
    """Start a search of a position that is not over; `weights` and `order` of the lane are the caller's."""
    trees.current[lane], trees.mask[lane], trees.key[lane] = current, mask, key
    trees.simulations[lane] = 0
    trees.used[lane] = 1
    clear_row(trees.rows, root_row(trees, lane), mask)


def descent(best: Any) -> Any:
    """The function `descend(trees, live, count)` for a scoring rule.

    `best(trees, base, level, lane)` is the column that a simulation of this lane takes in the node whose row begins at
    `base`, `level` plies below the root; `trees.visits[lane]` tells how often the node was entered.
    """

    @inline
    def descend(trees: Any, live: Any, count: Any) -> None:
        """Select a leaf in every live tree, expanding on the way; visits are counted on the way down."""
        rows, capacity, lanes = trees.rows, len(trees.bonus), len(trees.node)
        for j in range(count):
            lane = live[j]
            trees.descending[j] = lane
            trees.node[lane] = 0
            trees.visits[lane] = trees.simulations[lane]
            trees.leaf_current[lane], trees.leaf_mask[lane] = trees.current[lane], trees.mask[lane]
        level = 0
        while count > 0:
            still = 0
            for j in range(count):
                lane = trees.descending[j]
                base = (lane * capacity + trees.node[lane]) * WIDTH
                column = best(trees, base, level, lane)
                slot = base + column
                visits, child = rows[slot], np.int64(rows[slot + CHILD])
                rows[slot] = visits + 1
                trees.path[level * lanes + lane] = slot
                trees.depth[lane] = level + 1
                mask = trees.leaf_mask[lane]
                trees.leaf_current[lane] ^= mask
                mask |= mask + (ONE << U(BITS_PER_COLUMN * column))
                trees.leaf_mask[lane] = mask
                inner = (visits > 0) & (child >= 0)
                if inner & (child == 0):
                    child = trees.used[lane]
                    trees.used[lane] = child + 1
                    rows[slot + CHILD] = child
                    clear_row(rows, (lane * capacity + child) * WIDTH, mask)
                trees.node[lane] = child
                trees.visits[lane] = visits
                trees.descending[still] = lane
                still += np.int64(inner)
            count = still
            level += 1

    return descend


@inline
def _best_by_ucb1(trees: Any, base: Any, level: Any, lane: Any) -> Any:
    weights = (lane + 1) * SLOTS if level == 0 else 0
    bonus = trees.bonus[trees.visits[lane]]
    return best_ucb1(trees.rows, base, trees.weights, weights, trees.order, lane * SLOTS, bonus)


_descend = descent(_best_by_ucb1)


@inline
def _evaluate(trees: Any, live: Any, count: Any, heuristic: Any) -> None:
    """Play out every leaf; those that end the game are valued in `_backup`."""
    lanes = trees.playouts
    for j in range(count):
        lane = live[j]
        lanes.own[j] = trees.leaf_current[lane]
        lanes.other[j] = trees.leaf_current[lane] ^ trees.leaf_mask[lane]
        lanes.random[j] = playout_seed(trees.key[lane], trees.simulations[lane])
    playouts(lanes, count, heuristic)


@inline
def _backup(trees: Any, live: Any, count: Any, proving: Any) -> None:
    """Add each leaf's value along its path, the sign alternating with the side to move."""
    rows, lanes = trees.rows, len(trees.node)
    for j in range(count):
        lane = live[j]
        value = trees.playouts.results[j]
        last = trees.depth[lane] - 1
        leaf = trees.path[last * lanes + lane]
        mask = trees.leaf_mask[lane]
        won = has_four(trees.leaf_current[lane] ^ mask)
        if won | (mask == FULL):
            value = -1 if won else 0
            rows[leaf + CHILD] = TERMINAL
        elif rows[leaf + CHILD] < 0:
            value = 1 if is_loss(rows[leaf + CHILD]) else -1
        add_along_path(trees, lane, value)
        if proving and won:
            rows[leaf + TOTAL] = PROVEN
            carry_loss(trees, lane, last - 1, 2)


@inline
def add_along_path(trees: Any, lane: Any, value: Any) -> None:
    """Back up a value, for the side to move at the leaf, along the lane's path: one simulation is done."""
    lanes = len(trees.node)
    for level in range(trees.depth[lane] - 1, -1, -1):
        value = -value
        trees.rows[trees.path[level * lanes + lane] + TOTAL] += value
    trees.simulations[lane] += 1


@inline
def is_loss(code: Any) -> Any:
    """Whether a proven move's code, in `child`, says that it loses."""
    return code & 1 == PROVEN_LOSS & 1


@inline
def plies_to_end(code: Any) -> Any:
    """Plies to the end of the game that a proven move's code tells; below 1 for what is not proven."""
    return (PROVEN_WIN - code) // -PLY


@inline
def carry_loss(trees: Any, lane: Any, level: Any, plies: Any) -> None:
    """Mark the move at this level of the path as lost, and carry that to the root (MCTS-Solver, Winands et al. 2008).

    A node all of whose moves are lost makes the move that led to it a win, as far off as the longest of them, and a
    node with a winning move makes the move that led to it a loss. `plies`: to the end of the game, from before the
    move on.
    """
    rows, lanes = trees.rows, len(trees.node)
    while level >= 0:
        into = trees.path[level * lanes + lane]
        rows[into + CHILD], rows[into + TOTAL] = PROVEN_LOSS + PLY * plies, -PROVEN
        base = into - into % SLOTS
        lost = True
        for column in range(SLOTS):
            lost &= rows[base + TOTAL + column] < -PROVEN // 2
            plies = max(plies, plies_to_end(np.int64(rows[base + CHILD + column])))
        if level == 0 or not lost:
            break
        won = trees.path[(level - 1) * lanes + lane]
        rows[won + CHILD], rows[won + TOTAL] = PROVEN_WIN + PLY * (plies + 1), PROVEN
        level -= 2
        plies += 2


@jit
def advance(
    trees: PlayoutTrees, live: NDArray[np.int64], count: int, rounds: int, heuristic: bool, proving: bool
) -> None:
    """Execute `rounds` simulations in each of the trees live[:count]."""
    for _ in range(rounds):
        _descend(trees, live, count)
        _evaluate(trees, live, count, heuristic)
        _backup(trees, live, count, proving)

"""Search trees whose leaves a network values: the arrays of `puct.py`'s searches, and what they mean.

A lane holds one game, and of that game one tree at a time, in the rows of `playout_trees.py`. Other than the teacher's,
a node gets its row when it is first reached, because the network's priors for its moves go into the eight slots that
the teacher leaves unused: as float32 bits, seven priors and the network's own value of the node. Totals are whole
multiples of 1/UNIT, so a mean does not depend on the order of its parts.

`walk.py` runs the simulations, `root.py` begins and ends a search, `gumbel.py` is the other way to spend simulations at
a root. What runs once a simulation is compiled into its caller: passing trees to a function counts references to all of
their arrays, which costs as much as the function itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS
from distill.mcts.compiled import SLOTS, inline
from distill.mcts.playout_trees import (
    CHILD,
    PROVEN,
    TOTAL,
    WIDTH,
    add_along_path,
    by_lane,
    is_loss,
    new_rows,
    plies_to_end,
)

PRIOR = 3 * SLOTS
OWN_VALUE = PRIOR + COLUMNS
UNIT = 2**14
"""Of the totals: values are rounded to 1/16,384."""
MOST_VISITS = 2**15
"""Of a tree: 2^15 visits of UNIT each stay below half of PROVEN."""


class Rules(NamedTuple):
    """What a search does, as compiled code reads it; the fields of `puct.PuctSettings`."""

    simulations: int
    printed: bool  # score by the printed UCB term, without prior
    from_parent: bool  # first-play urgency: the node's own value less a reduction; else 0
    reduction: float
    noise: float
    sampling_plies: int
    temperature: float
    discount: float
    reuse: bool
    solver: bool
    gumbel: bool
    considered: int
    c_visit: float
    c_scale: float
    worth: NDArray[np.int64]  # (44,) by plies to the end: what a won game is worth, in UNIT
    schedule: NDArray[np.int32]  # (8, simulations): visits that a considered column has when it is its turn


class GuidedRecord(NamedTuple):
    """What was played and found in G games of at most S positions. A = 7 columns.

    `length` is 0 until the game has ended, then the number of positions recorded.
    """

    current: NDArray[np.uint64]  # (G, S)
    mask: NDArray[np.uint64]  # (G, S)
    label: NDArray[np.int8]  # (G, S) the column the search holds for best
    move: NDArray[np.int8]  # (G, S) the column played, drawn by the visits in the first plies
    visits: NDArray[np.int32]  # (G, S, A) without those of a reused tree; a Gumbel root's policy in gumbel.POLICY_UNITS
    simulations: NDArray[np.int32]  # (G, S)
    value: NDArray[np.float64]  # (G, S) mean of the root's returns, or what its proof is worth
    length: NDArray[np.int64]  # (G,)
    result: NDArray[np.int8]  # (G,) 1 if the last move won, else 0


class GuidedTrees(NamedTuple):
    """Trees of L lanes, C rows a tree; up to S searches a game. The first fields are those of `PlayoutTrees`."""

    rows: NDArray[np.int32]  # (L * C * WIDTH,)
    used: NDArray[np.int64]  # (L,)
    simulations: NDArray[np.int64]  # (L,) visits of the root, with those of a reused tree
    current: NDArray[np.uint64]  # (L,) root position
    mask: NDArray[np.uint64]
    bonus: NDArray[np.float64]  # (C,) exploration factor of a node entered N times
    node: NDArray[np.int64]
    visits: NDArray[np.int64]
    leaf_current: NDArray[np.uint64]
    leaf_mask: NDArray[np.uint64]
    depth: NDArray[np.int64]  # 0 where the leaf is the root itself
    path: NDArray[np.int64]
    descending: NDArray[np.int64]
    # of this module
    rules: Rules
    floats: NDArray[np.float32]  # `rows`, seen as floats
    spare: NDArray[np.int32]  # (C * WIDTH,) room to move a subtree
    game: NDArray[np.int64]  # (L,) index into the record; -1 for an idle lane
    step: NDArray[np.int64]  # (L,) position of the game being searched
    planted: NDArray[np.bool_]  # (L,) whether the root has its row
    done: NDArray[np.int64]  # (L,) simulations of this search
    carried: NDArray[np.int64]  # (L, 8) visits of the root's columns when this search began
    forced: NDArray[np.int64]  # (L,) the root's next column where halving decides it; -1 for the best score
    weights: NDArray[np.float64]  # (L, 8) of the printed term's exploration at the root
    scores: NDArray[np.float64]  # (8,) scratch: the root's columns by Gumbel, prior and completed value
    gamma: NDArray[np.float64]  # (L, S, A) standard gamma variates: over their sum, Dirichlet noise
    gumbel: NDArray[np.float64]  # (L, S, A) standard Gumbel variates
    uniform: NDArray[np.float64]  # (L, S, 2) for the move, and for the rounding of a policy to visits
    known: NDArray[np.uint64]  # (E,) keys of the answers kept; E a power of two
    answers: NDArray[np.float32]  # (E * 8,) seven priors and the value of each


def new_trees(lanes: int, steps: int, rules: Rules, bonus: NDArray[np.float64], cache: int) -> GuidedTrees:
    """Room for `lanes` games of up to `steps` searches, and 2^cache kept answers. Untouched rows cost no memory."""
    capacity = len(bonus)
    rows = new_rows(lanes * capacity)
    return GuidedTrees(
        rows=rows,
        bonus=bonus,
        rules=rules,
        floats=rows.view(np.float32),
        spare=np.zeros(capacity * WIDTH if rules.reuse else 0, np.int32),
        game=np.full(lanes, -1),
        step=np.zeros(lanes, np.int64),
        planted=np.zeros(lanes, np.bool_),
        done=np.zeros(lanes, np.int64),
        carried=np.zeros((lanes, SLOTS), np.int64),
        forced=np.full(lanes, -1),
        weights=np.ones((lanes, SLOTS)),
        scores=np.zeros(SLOTS),
        gamma=np.zeros((lanes, steps, COLUMNS)),
        gumbel=np.zeros((lanes, steps, COLUMNS)),
        uniform=np.zeros((lanes, steps, 2)),
        known=np.zeros(1 << cache, np.uint64),
        answers=np.zeros(SLOTS << cache, np.float32),
        **by_lane(lanes),
    )


@inline
def mean_return(trees: Any, slot: Any) -> Any:
    """Mean return of a visited or proven column in [-1, 1]."""
    rows = trees.rows
    n, total = np.int64(rows[slot]), np.int64(rows[slot + TOTAL])
    mean = total / (UNIT * n) if n > 0 else 0.0
    if abs(total) > PROVEN // 2:
        code = np.int64(rows[slot + CHILD])
        mean = trees.rules.worth[plies_to_end(code)] / UNIT
        if is_loss(code):
            mean = -mean
    return mean


@inline
def back_up(trees: Any, lane: Any, value: Any) -> None:
    """Add a value in UNIT, for the side to move at the leaf, along the lane's path: one simulation is done.

    It counts for less the farther it lies ahead, by the factor `discount` a ply.
    """
    if trees.rules.discount == 1.0:
        add_along_path(trees, lane, value)
    else:
        lanes = len(trees.node)
        for level in range(trees.depth[lane] - 1, -1, -1):
            value = -np.int64(np.rint(value * trees.rules.discount))
            trees.rows[trees.path[level * lanes + lane] + TOTAL] += value
        trees.simulations[lane] += 1

"""Simulations of guided trees, up to where the network is needed and on from its answers.

`gather` walks every live lane until it needs the network: simulations that end in a finished or proven position, or in
one that the cache of answers knows, are backed up at once, searches that are over make their move, and the next search
begins. `absorb` takes the network's answers in. A lane's game is a function of its own draws and of the
answers, whichever other games are in flight.

With `solver` (MCTS-Solver), a position where a stone wins at once is won without asking the network, a move after which
the opponent wins at once is lost from birth, and both are carried towards the root.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import BITS_PER_COLUMN, COLUMNS
from distill.search import playout_trees
from distill.search.compiled import SLOTS, inline, jit
from distill.search.guided_trees import OWN_VALUE, PRIOR, UNIT, GuidedRecord, GuidedTrees
from distill.search.gumbel import halve
from distill.search.playout_trees import (
    CENTRE_FIRST,
    CHILD,
    HOPELESS,
    PROVEN,
    PROVEN_LOSS,
    PROVEN_WIN,
    TERMINAL,
    TOTAL,
    WIDTH,
    root_row,
)
from distill.search.rollout import BOTTOM, FULL, ONE, ZERO, U, has_four, landing, mix, open_columns, winning_cells
from distill.search.root import conclude, go_on, open_search

WON, LOST = 1e9, -1e9
"""Scores of proven moves."""


@inline
def _best(trees: Any, base: Any, level: Any, lane: Any) -> Any:
    """The column with the highest score, the nearest to the centre of equals; proven wins first, losses last.

    With Q the mean return, P the prior, n the column's visits and N those of the node, its own evaluation among them:

        Q + bonus[N] · P / (1 + n)        an unvisited column has for Q the first-play value
        Q + bonus[N] · w / sqrt(n)        the printed term; unvisited columns first, by prior
    """
    rules, rows, floats = trees.rules, trees.rows, trees.floats
    bonus = trees.bonus[trees.visits[lane] + np.int64(level == 0)]
    first = 0.0
    if rules.from_parent:
        seen = 0.0
        for column in range(COLUMNS):
            if rows[base + column] > 0 and rows[base + TOTAL + column] != HOPELESS:
                seen += floats[base + PRIOR + column]
        first = floats[base + OWN_VALUE] - rules.reduction * np.sqrt(seen)
    best, highest = np.int64(-1), -np.inf
    for column in CENTRE_FIRST:
        n, total = np.int64(rows[base + column]), np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        prior = np.float64(floats[base + PRIOR + column])
        mean = total / (UNIT * n) if n > 0 else first
        if rules.printed:
            weight = trees.weights[lane, column] if level == 0 else 1.0
            score = mean + bonus * weight / np.sqrt(np.float64(n)) if n > 0 else WON / 2 + prior
        else:
            score = mean + bonus * prior / (1 + n)
        if total > PROVEN // 2:
            score = WON
        elif total < -PROVEN // 2:
            score = LOST + prior / (1 + n)
        if score > highest:
            best, highest = column, score
    if level == 0 and trees.forced[lane] >= 0:
        best = trees.forced[lane]
    return best


_descend = playout_trees.descent(_best)


@jit
def _losing(own: Any, mask: Any) -> Any:
    """Bit c set where a stone in column c lets the opponent win at once; own wins are not looked at."""
    threats = winning_cells(own ^ mask)
    found = 0
    for column in range(COLUMNS):
        stone = landing(mask, column)
        if stone != ZERO:
            stones = mask | stone
            if threats & (stones + BOTTOM) & FULL & ~stones != ZERO:
                found |= 1 << column
    return found


@inline
def _settle(trees: Any, lane: Any) -> Any:
    """Whether the rules or a proof decide the leaf; if so, it is backed up."""
    rows, level = trees.rows, trees.depth[lane] - 1
    slot = trees.path[level * len(trees.node) + lane]
    own, mask = trees.leaf_current[lane], trees.leaf_mask[lane]
    code = rows[slot + CHILD]
    settled = True
    if has_four(own ^ mask):
        rows[slot + CHILD] = TERMINAL
        playout_trees.add_along_path(trees, lane, -UNIT)
        if trees.rules.solver:
            rows[slot + TOTAL] = PROVEN
            playout_trees.carry_loss(trees, lane, level - 1)
    elif mask == FULL:
        rows[slot + CHILD] = TERMINAL
        playout_trees.add_along_path(trees, lane, 0)
    elif code == PROVEN_WIN:
        playout_trees.add_along_path(trees, lane, -UNIT)
    elif code == PROVEN_LOSS:
        playout_trees.add_along_path(trees, lane, UNIT)
    elif not trees.rules.solver:
        settled = False
    elif winning_cells(own) & (mask + BOTTOM) & FULL & ~mask != ZERO:
        playout_trees.add_along_path(trees, lane, UNIT)
        playout_trees.carry_loss(trees, lane, level)
    elif _losing(own, mask) == open_columns(mask):
        playout_trees.add_along_path(trees, lane, -UNIT)
        rows[slot + CHILD], rows[slot + TOTAL] = PROVEN_WIN, PROVEN
        playout_trees.carry_loss(trees, lane, level - 1)
    else:
        settled = False
    return settled


@inline
def _entry(trees: Any, lane: Any) -> Any:
    """Where the answer for a lane's leaf lies or would lie in the cache."""
    return np.int64(mix(trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE) & U(len(trees.known) - 1))


@inline
def _expand(trees: Any, lane: Any, entry: Any) -> None:
    """Give the leaf its row, with the priors of an answer, and back up the answer's value."""
    rows, floats, mask = trees.rows, trees.floats, trees.leaf_mask[lane]
    depth = trees.depth[lane]
    node = np.int64(0)
    if depth > 0:
        node = trees.used[lane]
        rows[trees.path[(depth - 1) * len(trees.node) + lane] + CHILD] = node
    trees.used[lane] = node + 1
    base = root_row(trees, lane) + node * WIDTH
    playout_trees.clear_row(rows, base, mask)
    for place in range(SLOTS):
        floats[base + PRIOR + place] = trees.answers[entry * SLOTS + place]
    if trees.rules.solver:
        own = trees.leaf_current[lane]
        losing = _losing(own, mask)
        wins = winning_cells(own) & (mask + BOTTOM) & FULL & ~mask  # at a root only: elsewhere the leaf is settled
        for column in range(COLUMNS):
            if wins & (U(63) << U(BITS_PER_COLUMN * column)) != ZERO:
                rows[base + TOTAL + column] = PROVEN
            elif losing >> column & 1:
                rows[base + TOTAL + column], rows[base + CHILD + column] = -PROVEN, PROVEN_LOSS
    if depth > 0:
        playout_trees.add_along_path(trees, lane, np.int64(np.rint(trees.answers[entry * SLOTS + COLUMNS] * UNIT)))
    else:
        open_search(trees, lane)


@jit
def gather(trees: GuidedTrees, record: GuidedRecord, live: NDArray[np.int64], leaves: NDArray[np.int64]) -> int:
    """Walk each live lane until it needs the network or its game has ended; how many leaves wait for answers.

    `leaves` receives their lanes; their positions stand in `leaf_current` and `leaf_mask`.
    """
    rules, one, waiting = trees.rules, np.zeros(1, np.int64), 0
    for lane in live:
        one[0] = lane
        while trees.game[lane] >= 0:
            if not trees.planted[lane]:
                trees.depth[lane] = 0
                trees.leaf_current[lane], trees.leaf_mask[lane] = trees.current[lane], trees.mask[lane]
            elif trees.done[lane] == rules.simulations:
                go_on(trees, record, lane, conclude(trees, record, lane))
                continue
            else:
                if rules.gumbel:
                    trees.forced[lane] = halve(trees, lane)
                trees.done[lane] += 1
                _descend(trees, one, 1)
                if _settle(trees, lane):
                    continue
            entry = _entry(trees, lane)
            if trees.known[entry] == trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE:
                _expand(trees, lane, entry)
                continue
            leaves[waiting] = lane
            waiting += 1
            break
    return waiting


@jit
def absorb(
    trees: GuidedTrees, leaves: NDArray[np.int64], logits: NDArray[np.float32], value: NDArray[np.float32]
) -> None:
    """Take in the network's answers for the leaves: logits (B, 7), masked here, and values (B,) in [-1, 1]."""
    for j in range(len(leaves)):
        lane = leaves[j]
        entry = _entry(trees, lane)
        allowed = open_columns(trees.leaf_mask[lane])
        highest, total = -np.inf, 0.0
        for column in range(COLUMNS):
            if allowed >> column & 1:
                highest = max(highest, np.float64(logits[j, column]))
        for column in range(COLUMNS):
            weight = np.exp(np.float64(logits[j, column]) - highest) if allowed >> column & 1 else 0.0
            trees.answers[entry * SLOTS + column] = weight
            total += weight
        for column in range(COLUMNS):
            trees.answers[entry * SLOTS + column] /= total
        trees.answers[entry * SLOTS + COLUMNS] = min(max(value[j], -1.0), 1.0)
        trees.known[entry] = trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE
        _expand(trees, lane, entry)

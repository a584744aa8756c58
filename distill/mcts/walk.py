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
from distill.mcts import playout_trees
from distill.mcts.compiled import SLOTS, inline, jit
from distill.mcts.guided_trees import OWN_VALUE, PRIOR, UNIT, GuidedRecord, GuidedTrees, back_up
from distill.mcts.gumbel import halve
from distill.mcts.playout_trees import (
    CENTRE_FIRST,
    CHILD,
    HOPELESS,
    PLY,
    PROVEN,
    PROVEN_LOSS,
    PROVEN_WIN,
    TERMINAL,
    TOTAL,
    WIDTH,
    carry_loss,
    is_loss,
    plies_to_end,
    root_row,
)
from distill.mcts.rollout import BOTTOM, FULL, ONE, ZERO, U, has_four, landing, mix, open_columns, winning_cells
from distill.mcts.root import conclude, go_on, open_search

WON, LOST = 1e9, -1e9
"""Scores of proven moves, before the plies to the end are counted: the quickest win and the slowest loss first."""


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
            score = WON - plies_to_end(np.int64(rows[base + CHILD + column]))
        elif total < -PROVEN // 2:
            score = LOST + plies_to_end(np.int64(rows[base + CHILD + column]))
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
    own, mask, worth = trees.leaf_current[lane], trees.leaf_mask[lane], trees.rules.worth
    code = np.int64(rows[slot + CHILD])
    settled = True
    if has_four(own ^ mask):
        rows[slot + CHILD] = TERMINAL
        back_up(trees, lane, -worth[0])
        if trees.rules.solver:
            rows[slot + CHILD], rows[slot + TOTAL] = PROVEN_WIN + PLY, PROVEN
            carry_loss(trees, lane, level - 1, 2)
    elif mask == FULL:
        rows[slot + CHILD] = TERMINAL
        back_up(trees, lane, 0)
    elif code < TERMINAL:
        left = worth[plies_to_end(code) - 1]
        back_up(trees, lane, left if is_loss(code) else -left)
    elif not trees.rules.solver:
        settled = False
    elif winning_cells(own) & (mask + BOTTOM) & FULL & ~mask != ZERO:
        back_up(trees, lane, worth[1])
        carry_loss(trees, lane, level, 2)
    elif _losing(own, mask) == open_columns(mask):
        back_up(trees, lane, -worth[2])
        rows[slot + CHILD], rows[slot + TOTAL] = PROVEN_WIN + 3 * PLY, PROVEN
        carry_loss(trees, lane, level - 1, 4)
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
                rows[base + TOTAL + column], rows[base + CHILD + column] = PROVEN, PROVEN_WIN + PLY
            elif losing >> column & 1:
                rows[base + TOTAL + column], rows[base + CHILD + column] = -PROVEN, PROVEN_LOSS + 2 * PLY
    if depth > 0:
        back_up(trees, lane, np.int64(np.rint(trees.answers[entry * SLOTS + COLUMNS] * UNIT)))
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

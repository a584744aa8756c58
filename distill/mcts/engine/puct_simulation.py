"""One simulation of PUCT: select, evaluate, expand, back up. Each lane walks alone until it needs the network.

`advance_to_leaves` runs every lane up to a leaf that the network must evaluate, `take_evaluations` resumes there.
Simulations that end where the rules or a proof decide, or at a position whose evaluation is kept, need no network;
searches that are complete play their move and the next search starts. A lane's game depends only on its own random
numbers and on the evaluations, not on the other lanes.

With `mcts_solver`, a position where a stone wins at once is won without an evaluation, a move after which the opponent
wins at once is lost from the start, and both proofs are propagated to the root.
"""

from __future__ import annotations

import numpy as np

from distill.game.rules import BITS_PER_COLUMN, COLUMNS, COLUMNS_FROM_CENTRE
from distill.mcts.engine import bits, tree
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.bits import FULL, ONE, ZERO, U
from distill.mcts.engine.jit import Float32s, Int64s, inline, int64, jit
from distill.mcts.engine.puct_moves import column_by_halving, finish_search, start_next, start_search
from distill.mcts.engine.puct_tree import NODE_VALUE, PuctTrees, root_row
from distill.mcts.engine.tree import CHILD, HOPELESS, PRIOR, TERMINAL, TOTAL, WIDTH
from distill.mcts.results import GameRecord
from distill.mcts.settings import LOST, UNIT, WON

UNDECIDED = 2 * UNIT
"""Stands for the value of a leaf that only the network can evaluate."""


@inline
def select(trees: PuctTrees, lane: int) -> None:
    """Follow the best moves from the root to a position without a row, counting visits on the way."""
    rows, root = trees.rows, root_row(trees, lane)
    current, mask = trees.current[lane], trees.mask[lane]
    base, entered, level = root, trees.simulations[lane] + 1, 0
    child = int64(1)
    while child > 0:
        if level == 0 and trees.parameters.gumbel:
            column = column_by_halving(trees, lane)
        else:
            column = best_column(trees, lane, base, entered, level == 0)
        slot = base + column
        entered, child = int64(rows[slot]), int64(rows[slot + CHILD])
        rows[slot] += 1
        trees.path[level, lane] = slot
        current ^= mask
        mask |= mask + (ONE << U(BITS_PER_COLUMN * column))
        base = root + child * WIDTH
        level += 1
    trees.depth[lane], trees.leaf_current[lane], trees.leaf_mask[lane] = level, current, mask


@inline
def best_column(trees: PuctTrees, lane: int, base: int, entered: int, is_root: bool) -> int:
    """The column with the highest score, the nearest to the centre of equals; proven wins first, losses last.

    With Q the mean value, P the prior, n the move's visits and N those of the node, its own evaluation included:

        Q + bonus[N] · P / (1 + n)        an unvisited move has the first-play value for Q
        Q + bonus[N] · w / sqrt(n)        rule "printed"; unvisited moves first, by prior
    """
    parameters, rows, floats = trees.parameters, trees.rows, trees.floats
    bonus = trees.bonus[entered]
    first_play = 0.0
    if parameters.fpu_reduction >= 0.0:
        visited_prior = 0.0
        for column in range(COLUMNS):
            if rows[base + column] > 0 and rows[base + TOTAL + column] != HOPELESS:
                visited_prior += floats[base + PRIOR + column]
        # The more of the prior has been visited, the less the remaining moves promise.
        first_play = floats[base + NODE_VALUE] - parameters.fpu_reduction * np.sqrt(visited_prior)
    best, highest = int64(-1), -np.inf
    for column in COLUMNS_FROM_CENTRE:
        n, total = int64(rows[base + column]), int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        prior = np.float64(floats[base + PRIOR + column])
        mean = total / (UNIT * n) if n > 0 else first_play
        if parameters.printed:
            weight = trees.weights[lane, column] if is_root else 1.0
            score = mean + bonus * weight / np.sqrt(np.float64(n)) if n > 0 else WON / 2 + prior
        else:
            score = mean + bonus * prior / (1 + n)
        # A proof overrules the score.
        if tree.is_won(total):
            score = WON - tree.plies_to_end(int64(rows[base + CHILD + column]))
        elif tree.is_lost(total):
            score = LOST + tree.plies_to_end(int64(rows[base + CHILD + column]))
        if score > highest:
            best, highest = column, score
    return best


@inline
def evaluate_by_rules(trees: PuctTrees, lane: int) -> tuple[int, int, bool]:
    """The leaf's value in UNITs where the rules or a proof decide it, else UNDECIDED.

    Returns also what is proven about the move that led there: plies to the end, 0 for no new proof, and whether it
    wins.
    """
    parameters, rows = trees.parameters, trees.rows
    win_value = parameters.win_value
    slot = trees.path[trees.depth[lane] - 1, lane]
    current, mask = trees.leaf_current[lane], trees.leaf_mask[lane]
    child = int64(rows[slot + CHILD])
    value, plies, wins = int64(UNDECIDED), 0, True
    if bits.has_four(current ^ mask):
        rows[slot + CHILD] = TERMINAL
        value, plies = -win_value[0], 1
    elif mask == FULL:
        rows[slot + CHILD] = TERMINAL
        value = int64(0)
    elif child < TERMINAL:  # proven before
        value = win_value[tree.plies_to_end(child) - 1]
        if tree.is_won(rows[slot + TOTAL]):
            value = -value
    elif parameters.mcts_solver:  # look one move ahead: a win in one, or only moves that lose
        if bits.winning_cells(current) & bits.playable_cells(mask) != ZERO:
            value, plies, wins = win_value[1], 2, False
        elif bits.losing_columns(current, mask) == bits.open_columns(mask):
            value, plies = -win_value[2], 3
    return value, plies, wins


@inline
def entry_of(trees: PuctTrees, lane: int) -> int:
    """Where the evaluation of the lane's leaf is kept, or would be."""
    return int64(bits.mix(trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE) & U(len(trees.kept.known) - 1))


@inline
def is_known(trees: PuctTrees, lane: int) -> bool:
    """Whether the evaluation of the lane's leaf is kept."""
    return trees.kept.known[entry_of(trees, lane)] == trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE


@inline
def keep_evaluation(trees: PuctTrees, lane: int, logits: Float32s, value: np.float32) -> None:
    """Keep the evaluation of the lane's leaf: the softmax of the logits, (7,), over open columns, and the value."""
    entry = entry_of(trees, lane)
    values = trees.kept.values[entry * SLOTS :]
    allowed = bits.open_columns(trees.leaf_mask[lane])
    # The softmax, after subtracting the highest logit, so that nothing overflows.
    highest, total = -np.inf, 0.0
    for column in range(COLUMNS):
        if allowed >> column & 1:
            highest = max(highest, np.float64(logits[column]))
    for column in range(COLUMNS):
        weight = np.exp(np.float64(logits[column]) - highest) if allowed >> column & 1 else 0.0
        values[column] = weight
        total += weight
    values[:COLUMNS] /= total
    values[COLUMNS] = min(max(float(value), -1.0), 1.0)
    trees.kept.known[entry] = trees.leaf_current[lane] + trees.leaf_mask[lane] + ONE


@inline
def expand(trees: PuctTrees, lane: int) -> None:
    """Give the leaf its row, with the priors of its evaluation and what one ply of look-ahead proves."""
    rows, floats, mask, node = trees.rows, trees.floats, trees.leaf_mask[lane], trees.used[lane]
    if node > 0:
        rows[trees.path[trees.depth[lane] - 1, lane] + CHILD] = node
    trees.used[lane] = node + 1
    base = root_row(trees, lane) + node * WIDTH
    tree.clear_row(rows, base, mask)
    floats[base + PRIOR :][:SLOTS] = trees.kept.values[entry_of(trees, lane) * SLOTS :][:SLOTS]
    if trees.parameters.mcts_solver:
        current = trees.leaf_current[lane]
        losing = bits.losing_columns(current, mask)
        # A win in one stands at a root only: elsewhere the rules decide the leaf.
        wins = bits.winning_cells(current) & bits.playable_cells(mask)
        for column in range(COLUMNS):
            if wins & bits.column_cells(column) != ZERO:
                tree.write_proof(rows, base + column, True, 1)
            elif losing >> column & 1:
                tree.write_proof(rows, base + column, False, 2)


@inline
def backup(trees: PuctTrees, lane: int, value: int) -> None:
    """Add a value in UNITs, for the side to move at the leaf, along the path; each ply discounts it."""
    discount = trees.parameters.discount
    for level in range(trees.depth[lane] - 1, -1, -1):
        value = -value if discount == 1.0 else -int64(np.rint(value * discount))
        trees.rows[trees.path[level, lane] + TOTAL] += value
    trees.simulations[lane] += 1


@inline
def expand_and_backup(trees: PuctTrees, lane: int) -> None:
    """Finish the simulation, or the start of the search, whose leaf's evaluation is kept now."""
    expand(trees, lane)
    if trees.depth[lane] == 0:
        start_search(trees, lane)
    else:
        value = trees.kept.values[entry_of(trees, lane) * SLOTS + COLUMNS]
        backup(trees, lane, int64(np.rint(value * UNIT)))


@jit
def advance_to_leaves(trees: PuctTrees, record: GameRecord, leaves: Int64s) -> int:
    """Run each lane until it needs the network or its game has ended; the number of leaves to evaluate.

    `leaves` receives their lanes; their positions are in `leaf_current` and `leaf_mask`.
    """
    waiting = 0
    for lane in range(len(trees.game)):
        while trees.game[lane] >= 0:
            # A search begins with the evaluation of its root.
            if trees.used[lane] == 0:
                trees.depth[lane] = 0
                trees.leaf_current[lane], trees.leaf_mask[lane] = trees.current[lane], trees.mask[lane]
            elif trees.simulations[lane] == trees.parameters.simulations:
                start_next(trees, record, lane, finish_search(trees, record, lane))
                continue
            else:
                select(trees, lane)
                value, plies, wins = evaluate_by_rules(trees, lane)
                if value != UNDECIDED:
                    backup(trees, lane, value)
                    if plies > 0 and trees.parameters.mcts_solver:
                        tree.propagate_proof(trees.rows, trees.path, lane, trees.depth[lane] - 1, wins, plies)
                    continue
            # The leaf needs an evaluation: a kept one, or the network's, for which the lane waits.
            if is_known(trees, lane):
                expand_and_backup(trees, lane)
                continue
            leaves[waiting] = lane
            waiting += 1
            break
    return waiting


@jit
def take_evaluations(trees: PuctTrees, leaves: Int64s, logits: Float32s, value: Float32s) -> None:
    """Continue from the network's evaluations of the leaves: logits (B, 7), masked here, and values (B,) in [-1, 1]."""
    for j in range(len(leaves)):
        keep_evaluation(trees, leaves[j], logits[j], value[j])
        expand_and_backup(trees, leaves[j])

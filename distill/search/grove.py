"""Search trees whose leaves a network values: the compiled half of `puct.py`.

A grove holds one game a lane, and of that game one tree at a time, in the rows of `tree.py`. Other than the teacher's,
a node gets its row when it is first reached, because the network's priors for its moves go into the eight slots that
the teacher leaves unused: as float32 bits, seven priors and the network's own value of the node. Totals are whole
multiples of 1/UNIT, so a mean does not depend on the order of its parts.

`gather` walks every live lane until it needs the network: simulations that end in a finished or proven position, or in
one that the cache of answers knows, are backed up at once, searches that are over make their move, and the next search
begins. `absorb` takes the network's answers in. A lane's game is a function of its own draws and of the
answers, whichever other games are in flight.

What runs once a simulation is compiled into its caller: passing a grove to a function counts references to all of its
arrays, which costs as much as the function itself.

With `solver` (MCTS-Solver), a position where a stone wins at once is won without asking the network, a move after which
the opponent wins at once is lost from birth, and both are carried towards the root.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import BITS_PER_COLUMN, CELLS, COLUMNS, COLUMNS_FROM_CENTRE
from distill.search import tree
from distill.search.compiled import SLOTS, inline, jit, popcount
from distill.search.rollout import BOTTOM, FULL, ONE, ZERO, U, has_four, mix, winning_cells
from distill.search.tree import CHILD, HOPELESS, PROVEN, PROVEN_LOSS, PROVEN_WIN, TERMINAL, TOTAL, WIDTH

PRIOR = 3 * SLOTS
OWN_VALUE = PRIOR + COLUMNS
UNIT = 2**14
"""Of the totals: values are rounded to 1/16,384."""
POLICY_UNITS = 1000
"""The visits recorded for a Gumbel root sum to this: its policy, finer than its few simulations could say."""
MOST_VISITS = 2**15
"""Of a tree: 2^15 visits of UNIT each stay below half of PROVEN."""
WON, LOST = 1e9, -1e9  # scores of proven moves
_CENTRE_FIRST = np.array(COLUMNS_FROM_CENTRE)


class Rules(NamedTuple):
    """What a search does, as compiled code reads it; the fields of `puct.PuctSettings`."""

    simulations: int
    printed: bool  # score by the printed UCB term, without prior
    from_parent: bool  # first-play urgency: the node's own value less a reduction; else 0
    reduction: float
    noise: float
    sampling_plies: int
    temperature: float
    reuse: bool
    solver: bool
    gumbel: bool
    considered: int
    c_visit: float
    c_scale: float
    schedule: NDArray[np.int32]  # (8, simulations): visits that a considered column has when it is its turn


class Record(NamedTuple):
    """What was played and found in G games of at most S positions. A = 7 columns.

    `length` is 0 until the game has ended, then the number of positions recorded.
    """

    current: NDArray[np.uint64]  # (G, S)
    mask: NDArray[np.uint64]  # (G, S)
    label: NDArray[np.int8]  # (G, S) the column the search holds for best
    move: NDArray[np.int8]  # (G, S) the column played, drawn by the visits in the first plies
    visits: NDArray[np.int32]  # (G, S, A) without those of a reused tree; a Gumbel root's policy in POLICY_UNITS
    simulations: NDArray[np.int32]  # (G, S)
    value: NDArray[np.float64]  # (G, S) mean of the root's returns, or 1 or -1 where proven
    length: NDArray[np.int64]  # (G,)
    result: NDArray[np.int8]  # (G,) 1 if the last move won, else 0


class Grove(NamedTuple):
    """Trees of L lanes, C rows a tree; up to S searches a game. The first fields are those of `tree.Forest`."""

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
    asked: NDArray[np.int64]  # (3,) leaves sent to the network, answered from the cache, settled by the rules


def new_grove(lanes: int, steps: int, rules: Rules, bonus: NDArray[np.float64], cache: int) -> Grove:
    """Room for `lanes` games of up to `steps` searches, and 2^cache kept answers. Untouched rows cost no memory."""
    capacity = len(bonus)
    line = 64 // 4
    rows = np.empty(lanes * capacity * WIDTH + line, np.int32)
    offset = -rows.ctypes.data % 64 // 4
    rows = rows[offset : offset + lanes * capacity * WIDTH]

    def numbers() -> NDArray[np.int64]:
        return np.zeros(lanes, np.int64)

    def bits() -> NDArray[np.uint64]:
        return np.zeros(lanes, np.uint64)

    return Grove(
        rows=rows,
        used=numbers(),
        simulations=numbers(),
        current=bits(),
        mask=bits(),
        bonus=bonus,
        node=numbers(),
        visits=numbers(),
        leaf_current=bits(),
        leaf_mask=bits(),
        depth=numbers(),
        path=np.zeros((CELLS + 1) * lanes, np.int64),
        descending=numbers(),
        rules=rules,
        floats=rows.view(np.float32),
        spare=np.zeros(capacity * WIDTH if rules.reuse else 0, np.int32),
        game=np.full(lanes, -1),
        step=numbers(),
        planted=np.zeros(lanes, np.bool_),
        done=numbers(),
        carried=np.zeros((lanes, SLOTS), np.int64),
        forced=np.full(lanes, -1),
        weights=np.ones((lanes, SLOTS)),
        scores=np.zeros(SLOTS),
        gamma=np.zeros((lanes, steps, COLUMNS)),
        gumbel=np.zeros((lanes, steps, COLUMNS)),
        uniform=np.zeros((lanes, steps, 2)),
        known=np.zeros(1 << cache, np.uint64),
        answers=np.zeros(SLOTS << cache, np.float32),
        asked=np.zeros(3, np.int64),
    )


@inline
def _best(grove: Any, base: Any, level: Any, lane: Any) -> Any:
    """The column with the highest score, the nearest to the centre of equals; proven wins first, losses last.

    With Q the mean return, P the prior, n the column's visits and N those of the node, its own evaluation among them:

        Q + bonus[N] · P / (1 + n)        an unvisited column has for Q the first-play value
        Q + bonus[N] · w / sqrt(n)        the printed term; unvisited columns first, by prior
    """
    rules, rows, floats = grove.rules, grove.rows, grove.floats
    bonus = grove.bonus[grove.visits[lane] + np.int64(level == 0)]
    first = 0.0
    if rules.from_parent:
        seen = 0.0
        for column in range(COLUMNS):
            if rows[base + column] > 0 and rows[base + TOTAL + column] != HOPELESS:
                seen += floats[base + PRIOR + column]
        first = floats[base + OWN_VALUE] - rules.reduction * np.sqrt(seen)
    best, highest = np.int64(-1), -np.inf
    for column in _CENTRE_FIRST:
        n, total = np.int64(rows[base + column]), np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        prior = np.float64(floats[base + PRIOR + column])
        mean = total / (UNIT * n) if n > 0 else first
        if rules.printed:
            weight = grove.weights[lane, column] if level == 0 else 1.0
            score = mean + bonus * weight / np.sqrt(np.float64(n)) if n > 0 else WON / 2 + prior
        else:
            score = mean + bonus * prior / (1 + n)
        if total > PROVEN // 2:
            score = WON
        elif total < -PROVEN // 2:
            score = LOST + prior / (1 + n)
        if score > highest:
            best, highest = column, score
    if level == 0 and grove.forced[lane] >= 0:
        best = grove.forced[lane]
    return best


_descend = tree.descent(_best)


@inline
def _root(grove: Any, lane: Any) -> Any:
    return lane * len(grove.bonus) * WIDTH


@jit
def _losing(own: Any, mask: Any) -> Any:
    """Bit c set where a stone in column c lets the opponent win at once; own wins are not looked at."""
    threats = winning_cells(own ^ mask)
    found = 0
    for column in range(COLUMNS):
        stone = (mask + (ONE << U(BITS_PER_COLUMN * column))) & (U(63) << U(BITS_PER_COLUMN * column))
        if stone != ZERO:
            stones = mask | stone
            if threats & (stones + BOTTOM) & FULL & ~stones != ZERO:
                found |= 1 << column
    return found


@jit
def _open_columns(mask: Any) -> Any:
    """Bit c set where column c has an empty cell."""
    found = 0
    for column in range(COLUMNS):
        if (mask + BOTTOM) & FULL & (U(63) << U(BITS_PER_COLUMN * column)) != ZERO:
            found |= 1 << column
    return found


@inline
def _settle(grove: Any, lane: Any) -> Any:
    """Whether the rules or a proof decide the leaf; if so, it is backed up."""
    rows, level = grove.rows, grove.depth[lane] - 1
    slot = grove.path[level * len(grove.node) + lane]
    own, mask = grove.leaf_current[lane], grove.leaf_mask[lane]
    code = rows[slot + CHILD]
    settled = True
    if has_four(own ^ mask):
        rows[slot + CHILD] = TERMINAL
        tree.add_along_path(grove, lane, -UNIT)
        if grove.rules.solver:
            rows[slot + TOTAL] = PROVEN
            tree.carry_loss(grove, lane, level - 1)
    elif mask == FULL:
        rows[slot + CHILD] = TERMINAL
        tree.add_along_path(grove, lane, 0)
    elif code == PROVEN_WIN:
        tree.add_along_path(grove, lane, -UNIT)
    elif code == PROVEN_LOSS:
        tree.add_along_path(grove, lane, UNIT)
    elif not grove.rules.solver:
        settled = False
    elif winning_cells(own) & (mask + BOTTOM) & FULL & ~mask != ZERO:
        tree.add_along_path(grove, lane, UNIT)
        tree.carry_loss(grove, lane, level)
    elif _losing(own, mask) == _open_columns(mask):
        tree.add_along_path(grove, lane, -UNIT)
        rows[slot + CHILD], rows[slot + TOTAL] = PROVEN_WIN, PROVEN
        tree.carry_loss(grove, lane, level - 1)
    else:
        settled = False
    return settled


@inline
def _entry(grove: Any, lane: Any) -> Any:
    """Where the answer for a lane's leaf lies or would lie in the cache."""
    return np.int64(mix(grove.leaf_current[lane] + grove.leaf_mask[lane] + ONE) & U(len(grove.known) - 1))


@inline
def _expand(grove: Any, lane: Any, entry: Any) -> None:
    """Give the leaf its row, with the priors of an answer, and back up the answer's value."""
    rows, floats, mask = grove.rows, grove.floats, grove.leaf_mask[lane]
    depth = grove.depth[lane]
    node = np.int64(0)
    if depth > 0:
        node = grove.used[lane]
        rows[grove.path[(depth - 1) * len(grove.node) + lane] + CHILD] = node
    grove.used[lane] = node + 1
    base = _root(grove, lane) + node * WIDTH
    tree.clear_row(rows, base, mask)
    for place in range(SLOTS):
        floats[base + PRIOR + place] = grove.answers[entry * SLOTS + place]
    if grove.rules.solver:
        own = grove.leaf_current[lane]
        losing = _losing(own, mask)
        wins = winning_cells(own) & (mask + BOTTOM) & FULL & ~mask  # at a root only: elsewhere the leaf is settled
        for column in range(COLUMNS):
            if wins & (U(63) << U(BITS_PER_COLUMN * column)) != ZERO:
                rows[base + TOTAL + column] = PROVEN
            elif losing >> column & 1:
                rows[base + TOTAL + column], rows[base + CHILD + column] = -PROVEN, PROVEN_LOSS
    if depth > 0:
        tree.add_along_path(grove, lane, np.int64(np.rint(grove.answers[entry * SLOTS + COLUMNS] * UNIT)))
    else:
        _open_search(grove, lane)


@inline
def _open_search(grove: Any, lane: Any) -> None:
    """The root has its row: mix the noise into its priors (or, for the printed term, weigh its exploration)."""
    rules, floats, step = grove.rules, grove.floats, grove.step[lane]
    grove.planted[lane] = True
    grove.done[lane] = 0
    if rules.noise > 0.0 and not rules.gumbel:
        base, allowed = _root(grove, lane), _open_columns(grove.mask[lane])
        legal, total = 0, 0.0
        for column in range(COLUMNS):
            if allowed >> column & 1:
                legal += 1
                total += grove.gamma[lane, step, column]
        for column in range(COLUMNS):
            if allowed >> column & 1:
                share = grove.gamma[lane, step, column] / total if total > 0.0 else 1.0 / legal
                prior = np.float64(floats[base + PRIOR + column])
                floats[base + PRIOR + column] = (1.0 - rules.noise) * prior + rules.noise * share
                grove.weights[lane, column] = legal * ((1.0 - rules.noise) / legal + rules.noise * share)


@inline
def _mean(rows: Any, slot: Any) -> Any:
    """Mean return of a visited or proven column in [-1, 1]."""
    n, total = np.int64(rows[slot]), np.int64(rows[slot + TOTAL])
    mean = total / (UNIT * n) if n > 0 else 0.0
    if total > PROVEN // 2:
        mean = 1.0
    elif total < -PROVEN // 2:
        mean = -1.0
    return mean


@jit
def _score_root(grove: Any, lane: Any, chance: Any) -> Any:
    """Fill `scores` with chance · g + ln P + sigma(q); returns the most visits of a column.

    sigma(q) = (c_visit + max n) · c_scale · (1 + q) / 2. An unvisited column's q is the mixed value of Danihelka et al.
    2022: (v + N / sum P · sum P Q) / (1 + N), sums over visited columns, v the network's own value of the root.
    """
    rows, floats, rules = grove.rows, grove.floats, grove.rules
    base, step = _root(grove, lane), grove.step[lane]
    most, visits, weight, returns = np.int64(0), np.int64(0), 0.0, 0.0
    for column in range(COLUMNS):
        n = np.int64(rows[base + column])
        if rows[base + TOTAL + column] == HOPELESS or n == 0:
            continue
        most, visits = max(most, n), visits + n
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        weight += prior
        returns += prior * _mean(rows, base + column)
    mixed = np.float64(floats[base + OWN_VALUE])
    if visits > 0:
        mixed = (mixed + visits * returns / weight) / (1 + visits)
    for column in range(COLUMNS):
        grove.scores[column] = -np.inf
        total = np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        seen = rows[base + column] > 0 or abs(total) > PROVEN // 2
        q = _mean(rows, base + column) if seen else mixed
        prior = max(np.float64(floats[base + PRIOR + column]), 1e-12)
        sigma = (rules.c_visit + most) * rules.c_scale * (1.0 + q) / 2
        grove.scores[column] = chance * grove.gumbel[lane, step, column] + np.log(prior) + sigma
    return most


@inline
def _best_with_visits(grove: Any, lane: Any, visits: Any) -> Any:
    """The column of the highest score in `scores` among those visited so often; -1 where there is none."""
    base = _root(grove, lane)
    best, highest = np.int64(-1), -np.inf
    for column in _CENTRE_FIRST:
        if np.int64(grove.rows[base + column]) == visits and grove.scores[column] > highest:
            best, highest = column, grove.scores[column]
    return best


@inline
def _halve(grove: Any, lane: Any) -> Any:
    """The root's column for this simulation by sequential halving, one of those whose turn the schedule says it is."""
    rules = grove.rules
    _score_root(grove, lane, 1.0)
    considered = min(rules.considered, np.int64(popcount(U(_open_columns(grove.mask[lane])))))
    return _best_with_visits(grove, lane, np.int64(rules.schedule[considered, grove.done[lane]]))


@jit
def _conclude(grove: Any, record: Any, lane: Any) -> Any:
    """Record the search of a lane's position and return the column to play.

    The label is a column that wins at once, then one proven to win, then the most visited that is not proven to lose
    (with a Gumbel root, the likeliest by its improved policy).
    """
    rows, rules = grove.rows, grove.rules
    base, g, s = _root(grove, lane), grove.game[lane], grove.step[lane]
    label, most, best_mean = np.int64(-1), np.int64(-(2**40)), -2.0
    visits, returns, highest, lost = np.int64(0), 0.0, -2.0, True
    wins = winning_cells(grove.current[lane]) & (grove.mask[lane] + BOTTOM) & FULL & ~grove.mask[lane]
    for column in _CENTRE_FIRST:
        total = np.int64(rows[base + TOTAL + column])
        if total == HOPELESS:
            continue
        n, mean = np.int64(rows[base + column]), _mean(rows, base + column)
        record.visits[g, s, column] = n - grove.carried[lane, column]
        visits += n
        returns += n * mean
        weight = n
        if total > PROVEN // 2:
            at_once = wins & (U(63) << U(BITS_PER_COLUMN * column)) != ZERO
            weight, highest = n + 2**30 + 2**30 * np.int64(at_once), 1.0
        if total < -PROVEN // 2:
            weight = n - 2**30
        else:
            lost = False
        if weight > most or (weight == most and mean > best_mean):
            label, most, best_mean = column, weight, mean
    move = label
    if rules.gumbel:
        top = _score_root(grove, lane, 1.0)
        move = _best_with_visits(grove, lane, top)
        _score_root(grove, lane, 0.0)
        if highest < 1.0 and not lost:
            label = np.int64(-1)
            for column in _CENTRE_FIRST:
                if label < 0 or grove.scores[column] > grove.scores[label]:
                    label = column
        if highest == 1.0:
            record.visits[g, s, :] = 0
            record.visits[g, s, label] = POLICY_UNITS
        else:
            _improved_policy(grove, record, lane, label)
    ply = np.int64(popcount(grove.mask[lane]))
    if ply >= rules.sampling_plies or highest == 1.0 or lost:
        move = label
    elif not rules.gumbel:
        move = _sample(grove, lane, label)
    record.label[g, s], record.move[g, s] = label, move
    record.simulations[g, s] = grove.done[lane]
    record.value[g, s] = 1.0 if highest == 1.0 else (-1.0 if lost else returns / visits)
    return move


@inline
def _sample(grove: Any, lane: Any, label: Any) -> Any:
    """A column drawn by visits^(1 / temperature) among those not proven lost."""
    rows, base, power = grove.rows, _root(grove, lane), 1.0 / grove.rules.temperature
    most = max(1.0, np.float64(rows[base + label]))
    total = 0.0
    for column in range(COLUMNS):
        if rows[base + TOTAL + column] > -PROVEN // 2:
            total += (rows[base + column] / most) ** power
    left = grove.uniform[lane, grove.step[lane], 0] * total
    move = label
    for column in range(COLUMNS):
        if rows[base + TOTAL + column] > -PROVEN // 2:
            left -= (rows[base + column] / most) ** power
            if left < 0.0:
                move = np.int64(column)
                break
    return move


@inline
def _improved_policy(grove: Any, record: Any, lane: Any, label: Any) -> None:
    """Record softmax(`scores`) as visits, in units of 1 / POLICY_UNITS.

    Rounded by systematic sampling: one uniform number shifts all the steps, so that each column gets its share on
    average.
    """
    g, s = grove.game[lane], grove.step[lane]
    total = 0.0
    for column in range(COLUMNS):
        total += np.exp(grove.scores[column] - grove.scores[label])
    shift, below, before = grove.uniform[lane, s, 1], 0.0, np.int64(0)
    for column in range(COLUMNS):
        below += np.exp(grove.scores[column] - grove.scores[label])
        here = np.int64(np.floor(below / total * POLICY_UNITS + shift))
        record.visits[g, s, column] = here - before
        before = here


@jit
def _go_on(grove: Any, record: Any, lane: Any, move: Any) -> None:
    """Play the column; the lane goes on with the next position or, where the game has ended, is idle."""
    rows, g, s = grove.rows, grove.game[lane], grove.step[lane]
    own, mask = grove.current[lane], grove.mask[lane]
    stone = (mask + (ONE << U(BITS_PER_COLUMN * move))) & (U(63) << U(BITS_PER_COLUMN * move))
    won = has_four(own | stone)
    if won or mask | stone == FULL or s + 1 == record.label.shape[1]:
        record.result[g] = np.int8(won)
        record.length[g] = s + 1
        grove.game[lane] = -1
    else:
        grove.current[lane], grove.mask[lane], grove.step[lane] = own ^ mask, mask | stone, s + 1
        record.current[g, s + 1], record.mask[g, s + 1] = own ^ mask, mask | stone
        child = np.int64(rows[_root(grove, lane) + CHILD + move])
        grove.planted[lane] = False
        grove.carried[lane, :] = 0
        grove.simulations[lane] = 0
        if grove.rules.reuse and child > 0:
            _keep_subtree(grove, lane, child)


@inline
def _keep_subtree(grove: Any, lane: Any, child: Any) -> None:
    """Make a child's tree the lane's, unless it is so large that a search would not fit beside it."""
    rows, spare, root = grove.rows, grove.spare, _root(grove, lane)
    first = root + child * WIDTH
    carried = np.int64(0)
    for column in range(COLUMNS):
        if rows[first + TOTAL + column] != HOPELESS:
            carried += rows[first + column]
    if carried + grove.rules.simulations + 2 < len(grove.bonus):
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
                grove.carried[lane, column] = rows[root + column]
        grove.used[lane], grove.simulations[lane] = made, carried
        _open_search(grove, lane)


@jit
def gather(grove: Grove, record: Record, live: NDArray[np.int64], leaves: NDArray[np.int64]) -> int:
    """Walk each live lane until it needs the network or its game has ended; how many leaves wait for answers.

    `leaves` receives their lanes; their positions stand in `leaf_current` and `leaf_mask`.
    """
    rules, one, waiting = grove.rules, np.zeros(1, np.int64), 0
    for lane in live:
        one[0] = lane
        while grove.game[lane] >= 0:
            if not grove.planted[lane]:
                grove.depth[lane] = 0
                grove.leaf_current[lane], grove.leaf_mask[lane] = grove.current[lane], grove.mask[lane]
            elif grove.done[lane] == rules.simulations:
                _go_on(grove, record, lane, _conclude(grove, record, lane))
                continue
            else:
                if rules.gumbel:
                    grove.forced[lane] = _halve(grove, lane)
                grove.done[lane] += 1
                _descend(grove, one, 1)
                if _settle(grove, lane):
                    grove.asked[2] += 1
                    continue
            entry = _entry(grove, lane)
            if grove.known[entry] == grove.leaf_current[lane] + grove.leaf_mask[lane] + ONE:
                grove.asked[1] += 1
                _expand(grove, lane, entry)
                continue
            leaves[waiting] = lane
            waiting += 1
            break
    return waiting


@jit
def absorb(grove: Grove, leaves: NDArray[np.int64], logits: NDArray[np.float32], value: NDArray[np.float32]) -> None:
    """Take in the network's answers for the leaves: logits (B, 7), masked here, and values (B,) in [-1, 1]."""
    for j in range(len(leaves)):
        lane = leaves[j]
        entry = _entry(grove, lane)
        allowed = _open_columns(grove.leaf_mask[lane])
        highest, total = -np.inf, 0.0
        for column in range(COLUMNS):
            if allowed >> column & 1:
                highest = max(highest, np.float64(logits[j, column]))
        for column in range(COLUMNS):
            weight = np.exp(np.float64(logits[j, column]) - highest) if allowed >> column & 1 else 0.0
            grove.answers[entry * SLOTS + column] = weight
            total += weight
        for column in range(COLUMNS):
            grove.answers[entry * SLOTS + column] /= total
        grove.answers[entry * SLOTS + COLUMNS] = min(max(value[j], -1.0), 1.0)
        grove.known[entry] = grove.leaf_current[lane] + grove.leaf_mask[lane] + ONE
        grove.asked[0] += 1
        _expand(grove, lane, entry)

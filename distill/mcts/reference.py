"""The textbook: both tree searches of this package in plain Python, written to be read and changed.

    UCT     leaves are evaluated by a playout; K independent searches vote. This is the teacher, and labels positions.
            Kocsis & Szepesvári, Bandit based Monte-Carlo planning, 2006.
    PUCT    leaves are evaluated by a network, which also says which moves to try first.
            Silver et al., A general reinforcement learning algorithm (AlphaZero), Science 362, 2018.

Both repeat the same simulation:

    select      from the root, follow the move with the highest score until a position outside the tree is reached
    expand      add that position to the tree
    evaluate    estimate its value
    backup      add the value to every move on the way back to the root

One sign rule: a value is from the point of view of the side to move in that position, in [-1, 1]. So backup changes the
sign at every ply, and the mean kept at a move is from the point of view of the side that plays it.

The compiled engine runs many such searches in lock step. It shares no code with this file, draws the same random
numbers, and must build the same trees: the tests compare them node for node. Where this file computes in a particular
order or in float32 (`f32`), it does so to round as the engine does.

A board is a list of seven columns, each a list of stones from the bottom up; a stone is the side, 0 or 1, that owns it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from distill.mcts.puct import PuctSettings
    from distill.mcts.teacher import SearchSettings

ROWS, COLUMNS = 6, 7
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
"""Ties go to the column nearest the centre, then to the lower one."""
WON, LOST, UNKNOWN = 1, -1, 0
"""What is proven about a move: the side that plays it wins, or loses, whatever the other side does."""
f32 = np.float32

# The game -------------------------------------------------------------------------------------------------------------

LINES = [
    [(column + i * right, row + i * up) for i in range(4)]
    for column in range(COLUMNS)
    for row in range(ROWS)
    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1))
    if 0 <= column + 3 * right < COLUMNS and 0 <= row + 3 * up < ROWS
]
"""All 69 lines of four cells, each cell as (column, row)."""
LINES_THROUGH = {(c, r): [line for line in LINES if (c, r) in line] for c in range(COLUMNS) for r in range(ROWS)}


@dataclass
class Board:
    """A position: seven columns of stones, and the side to move."""

    columns: list[list[int]]
    side: int

    @classmethod
    def from_bits(cls, current: int, mask: int) -> Board:
        """The board of two bitboards (`game.rules`)."""
        side = mask.bit_count() % 2  # side 0 has the first move
        columns: list[list[int]] = [[] for _ in range(COLUMNS)]
        for column in range(COLUMNS):
            for row in range(ROWS):
                cell = 1 << (7 * column + row)
                if mask & cell:
                    columns[column].append(side if current & cell else 1 - side)
        return cls(columns, side)

    def to_bits(self) -> tuple[int, int]:
        """Stones of the side to move, and all stones, as bitboards."""
        current = mask = 0
        for column, stones in enumerate(self.columns):
            for row, owner in enumerate(stones):
                mask |= 1 << (7 * column + row)
                current |= (owner == self.side) << (7 * column + row)
        return current, mask

    @property
    def stones(self) -> int:
        return sum(map(len, self.columns))

    def legal(self) -> list[int]:
        """Columns that are not full."""
        return [column for column in range(COLUMNS) if len(self.columns[column]) < ROWS]

    def after(self, column: int) -> Board:
        """The board after the side to move has played a column."""
        columns = [list(stones) for stones in self.columns]
        columns[column].append(self.side)
        return Board(columns, 1 - self.side)

    def has_four(self, side: int) -> bool:
        """Whether a side has four in a line."""
        return any(all(self._owner(*cell) == side for cell in line) for line in LINES)

    def makes_four(self, column: int, side: int) -> bool:
        """Whether a stone of this side in a column that is not full would complete a line."""
        cell = (column, len(self.columns[column]))
        return any(all(other == cell or self._owner(*other) == side for other in line) for line in LINES_THROUGH[cell])

    def _owner(self, column: int, row: int) -> int | None:
        stones = self.columns[column]
        return stones[row] if row < len(stones) else None

    def winning_moves(self) -> list[int]:
        """Columns that win at once for the side to move."""
        return [column for column in self.legal() if self.makes_four(column, self.side)]

    def losing_moves(self) -> list[int]:
        """Columns after which the opponent wins at once."""
        return [column for column in self.legal() if self.after(column).winning_moves()]


def best(board: Board, score: Callable[[int], Any]) -> int:
    """The legal column with the highest score, ties to the centre."""
    return max((column for column in CENTRE_FIRST if column in board.legal()), key=score)


# Chance ---------------------------------------------------------------------------------------------------------------

WORD = 2**64 - 1


def random_generator(seed: int, game: int, stream: int) -> np.random.Generator:
    """Random numbers that depend on the run's seed, the game and the stream alone (Philox, counter-based)."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, game], np.uint64), counter=[0, 0, 0, stream]))


def playout_state(key: int, simulation: int) -> int:
    """The first state of a playout's generator: SplitMix64 of the search's key and the simulation (never 0)."""
    word = (key + simulation * 0x9E3779B97F4A7C15) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return (word ^ (word >> 31)) | 1


def next_state(state: int) -> int:
    """The next state of a playout's generator: xorshift64 (Marsaglia 2003)."""
    state ^= state << 13 & WORD
    state ^= state >> 7
    return state ^ (state << 17 & WORD)


# UCT ------------------------------------------------------------------------------------------------------------------


@dataclass
class UctNode:
    """A position in the tree; lists have one entry a column, for the move played there."""

    board: Board
    visits: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    total: list[int] = field(default_factory=lambda: [0] * COLUMNS)  # sum of results, 1, 0 or -1, for the side to move
    proven: list[int] = field(default_factory=lambda: [UNKNOWN] * COLUMNS)
    children: list[UctNode | None] = field(default_factory=lambda: [None] * COLUMNS)


def uct(
    board: Board, settings: SearchSettings, key: int, order: list[float], weights: list[float] | None = None
) -> UctNode:
    """One search of a position where the game is not over; returns the root of its tree.

    Args:
      key: seed of all playouts.
      order: (7,), unvisited moves are tried in descending order of this.
      weights: (7,), factors of the root's exploration term (`noisy_weights`); None: 1.
    """
    root = UctNode(board)
    for simulation in range(settings.simulations):
        node, path, entered = root, [], simulation
        while True:
            # Select: the best-scored move. `entered` counts the visits to this node before the current one.
            column = uct_select(node, entered, order, (weights if node is root else None), settings.exploration)
            path.append((node, column))
            after, entered = node.board.after(column), node.visits[column]
            # Evaluate, where the simulation ends: the game is over, its result is proven, or the move is new.
            if after.has_four(1 - after.side):
                value = -1  # the side to move has lost
                break
            if node.proven[column]:
                value = -node.proven[column]
                break
            if not after.legal():
                value = 0
                break
            if not entered:
                value = playout(after, playout_state(key, simulation), settings.rollout == "heuristic")
                break
            # Expand: a move's position gets its node at the second visit; the first one only needs its count.
            child = node.children[column]
            if child is None:
                child = node.children[column] = UctNode(after)
            node = child
        # Backup.
        for node, column in reversed(path):
            value = -value
            node.visits[column] += 1
            node.total[column] += value
        if settings.mcts_solver and after.has_four(1 - after.side):
            uct_prove(path)
    return root


def uct_select(node: UctNode, entered: int, order: list[float], weights: list[float] | None, exploration: float) -> int:
    """The legal move with the highest UCB1 score, mean + c · w · sqrt(ln N / n); unvisited moves come first."""
    legal = node.board.legal()
    unvisited = [column for column in legal if not node.visits[column]]
    if unvisited and WON not in node.proven:
        return max(unvisited, key=lambda column: order[column])
    bonus = f32(exploration * math.sqrt(math.log(entered)))

    def score(column: int) -> Any:
        root_n = f32(1) / np.sqrt(f32(node.visits[column]))
        return (f32(node.total[column]) * root_n + bonus * f32(weights[column] if weights else 1)) * root_n

    return max((column for column in legal if node.visits[column]), key=score)  # ties: the lowest column


def playout(board: Board, state: int, heuristic: bool) -> int:
    """Play to the end at random; the result, 1, 0 or -1, for the side to move on `board`.

    The heuristic policy: take a win, else block one, else play the centre with probability 0.2, else any legal column.
    """
    first = board.side
    while legal := board.legal():
        state = next_state(state)
        move = legal[(state >> 32) * len(legal) >> 32]  # the upper half of the state draws the column
        if heuristic:
            blocks = [column for column in legal if board.makes_four(column, 1 - board.side)]
            if wins := board.winning_moves():
                move = wins[0]
            elif blocks:
                move = blocks[0]
            elif 3 in legal and state % 2**32 < round(0.2 * 2**32):  # the lower half decides on the centre
                move = 3
        if board.makes_four(move, board.side):
            return 1 if board.side == first else -1
        board = board.after(move)
    return 0


def uct_prove(path: list[tuple[UctNode, int]]) -> None:
    """The last move of the path wins: carry that proof towards the root (MCTS-Solver, Winands et al. 2008).

    A move wins if it ends the game or leaves only losing replies; it loses if one reply wins. A proven move's total
    becomes a number that no sum of results reaches.
    """
    result = WON
    for node, column in reversed(path):
        node.proven[column] = result
        node.total[column] = result * 2**30
        if result == LOST and any(node.proven[other] != LOST for other in node.board.legal()):
            return  # another move may still save the side to move
        result = -result


def noisy_weights(board: Board, gamma: NDArray[np.float64], noise: float) -> list[float]:
    """(7,) factors of the root's exploration: L · ((1 − f) / L + f · Dirichlet), L legal moves, f the noise fraction.

    `gamma`, (7,), are standard gamma variates; over their sum on the legal columns they are a Dirichlet draw.
    """
    legal = board.legal()
    total = sum(float(gamma[column]) for column in legal)
    return [len(legal) * ((1.0 - noise) / len(legal) + noise * (float(g) / total)) for g in gamma]


def uct_choose(root: UctNode) -> int:
    """The search's move: proven wins first and proven losses last, then most visits, then the higher mean."""
    mean = {c: uct_total(root, c) / root.visits[c] if root.visits[c] else -2.0 for c in root.board.legal()}
    return best(root.board, lambda column: (root.proven[column], root.visits[column], mean[column]))


def uct_total(root: UctNode, column: int) -> int:
    """The sum of a move's results; every visit to a proven move counts as its proof."""
    return root.proven[column] * root.visits[column] if root.proven[column] else root.total[column]


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """What K searches of one position found: `votes` (K,), `label`, `visits` (7,) summed, mean root `value`."""

    votes: list[int]
    label: int
    visits: list[int]
    value: float


def label(board: Board, settings: SearchSettings, seed: int, game: int = 0, step: int = 0, steps: int = 1) -> Labelled:
    """K independent searches, each with its own root noise and playouts, and their majority.

    A game's draws are made at once, for all its `steps` searched positions; `step` says which this is.
    """
    votes, visits, value = [], [0] * COLUMNS, 0.0
    for vote in range(settings.votes):
        random = random_generator(seed, game, 1 + vote)
        key = int(random.integers(0, 2**64, steps, np.uint64)[step])
        order = random.random((steps, COLUMNS)).argsort(-1)[step].tolist()
        gamma = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))[step]
        noise = settings.noise_fraction if settings.noise_at == "label" else 0.0
        root = uct(board, settings, key, order, noisy_weights(board, gamma, noise))
        votes.append(uct_choose(root))
        visits = [ours + more for ours, more in zip(visits, root.visits, strict=True)]
        value += sum(uct_total(root, c) for c in range(COLUMNS)) / settings.simulations / settings.votes
    return Labelled(votes=votes, label=majority(votes, visits), visits=visits, value=value)


def majority(votes: list[int], visits: list[int]) -> int:
    """Most votes, then most summed visits, then nearest the centre."""
    return max(CENTRE_FIRST, key=lambda column: (votes.count(column), column in votes and visits[column]))


# PUCT -----------------------------------------------------------------------------------------------------------------

Evaluate = Callable[[int, int], tuple[list[float], float]]
"""The network: current and mask of one position to seven logits and a value."""

UNIT = 16_384
"""Values are summed as whole multiples of 1 / UNIT, so that a sum does not depend on the order of its terms."""


@dataclass
class PuctNode:
    """A position in the tree; lists have one entry a column, for the move played there."""

    board: Board
    priors: list[Any]  # float32, the network's policy: 0 on full columns, sums to 1
    value: Any  # float32, the network's value of this position
    discount: float
    visits: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    total: list[int] = field(default_factory=lambda: [0] * COLUMNS)  # sum of values for the side to move, in UNITs
    proven: list[int] = field(default_factory=lambda: [UNKNOWN] * COLUMNS)
    plies: list[int] = field(default_factory=lambda: [0] * COLUMNS)  # of a proven move: until the end of the game
    weights: list[float] = field(default_factory=lambda: [1.0] * COLUMNS)  # noise of the rule without priors
    children: list[PuctNode | None] = field(default_factory=lambda: [None] * COLUMNS)

    def mean(self, column: int) -> float:
        """The value of a move: proven, or the mean of its simulations; 0 without any."""
        if self.proven[column]:
            return self.proven[column] * discounted(self.discount, self.plies[column]) / UNIT
        return self.total[column] / (UNIT * self.visits[column]) if self.visits[column] else 0.0


@dataclass
class PuctDraws:
    """The random numbers of one game: `gamma` and `gumbel` (S, 7), `uniform` (S, 2), S positions."""

    gamma: NDArray[np.float64]
    gumbel: NDArray[np.float64]
    uniform: NDArray[np.float64]


def discounted(discount: float, plies: int) -> int:
    """The value, in UNITs, of a win after this many plies."""
    return round(UNIT * discount**plies)


def puct_expand(board: Board, evaluate: Evaluate, settings: PuctSettings, is_root: bool = False) -> PuctNode:
    """The node of a position, evaluated by the network, with what one ply of look-ahead proves about its moves."""
    logits, value = evaluate(*board.to_bits())
    legal = board.legal()
    highest = max(float(f32(logits[column])) for column in legal)
    odds = [math.exp(float(f32(logits[c])) - highest) if c in legal else 0.0 for c in range(COLUMNS)]
    node = PuctNode(
        board=board,
        priors=[f32(float(f32(each)) / sum(odds)) for each in odds],
        value=f32(min(max(float(f32(value)), -1.0), 1.0)),
        discount=settings.discount,
    )
    if settings.mcts_solver:
        for column in board.losing_moves():
            node.proven[column], node.plies[column] = LOST, 2
        for column in board.winning_moves() if is_root else []:  # inside the tree such a position is no leaf
            node.proven[column], node.plies[column] = WON, 1
    return node


def puct_simulate(root: PuctNode, settings: PuctSettings, evaluate: Evaluate, first_move: int | None = None) -> None:
    """One simulation; a Gumbel root chooses the first move itself."""
    node, path, entered = root, list[tuple[PuctNode, int]](), sum(root.visits) + 1
    while True:
        # Select.
        column = puct_select(node, entered, settings, node is root) if first_move is None else first_move
        first_move, proof = None, (UNKNOWN, 0)
        path.append((node, column))
        after, entered = node.board.after(column), node.visits[column]
        # Evaluate by the rules where the game is over, or its result is proven or seen two plies ahead.
        if after.has_four(1 - after.side):
            value, proof = -UNIT, (WON, 1)
            break
        if not after.legal():
            value = 0
            break
        if node.proven[column]:
            value = -node.proven[column] * discounted(settings.discount, node.plies[column] - 1)
            break
        if settings.mcts_solver and after.winning_moves():
            value, proof = discounted(settings.discount, 1), (LOST, 2)
            break
        if settings.mcts_solver and after.losing_moves() == after.legal():
            value, proof = -discounted(settings.discount, 2), (WON, 3)
            break
        # Expand, and evaluate by the network.
        child = node.children[column]
        if child is None:
            child = node.children[column] = puct_expand(after, evaluate, settings)
            value = int(np.rint(float(child.value) * UNIT))
            break
        node = child
    # Backup.
    puct_backup(path, value)
    if settings.mcts_solver and proof[0]:
        puct_prove(path, *proof)


def puct_select(node: PuctNode, entered: int, settings: PuctSettings, is_root: bool) -> int:
    """The legal move with the highest score, Q + c · P · sqrt(N) / (1 + n); proven wins first, proven losses last.

    The rule "growing" has c(N) = c + ln((N + 19653) / 19652), the AlphaZero paper's; "printed" has no prior:
    Q + c(N) · sqrt(ln N / n). An unvisited move's Q is the node's value less `fpu_reduction` · sqrt(visited prior).
    """
    c = settings.exploration
    if settings.rule != "constant":
        c += math.log((entered + 19653) / 19652)
    bonus = c * math.sqrt(math.log(entered) if settings.rule == "printed" else entered)
    unvisited_q = 0.0
    if settings.fpu_reduction is not None:
        visited_prior = sum(float(node.priors[c]) for c in node.board.legal() if node.visits[c])
        unvisited_q = float(node.value) - settings.fpu_reduction * math.sqrt(visited_prior)

    def score(column: int) -> float:
        n, prior = node.visits[column], float(node.priors[column])
        if node.proven[column]:  # the quickest win, or the slowest loss
            return node.proven[column] * (1e9 - node.plies[column])
        q = node.total[column] / (UNIT * n) if n else unvisited_q
        if settings.rule == "printed":
            return q + bonus * (node.weights[column] if is_root else 1.0) / math.sqrt(n) if n else 5e8 + prior
        return q + bonus * prior / (1 + n)

    return best(node.board, score)


def puct_backup(path: list[tuple[PuctNode, int]], value: int) -> None:
    """Add a leaf's value, in UNITs for its side to move, to every move that led there."""
    for node, column in reversed(path):
        value = -round(value * node.discount)
        node.visits[column] += 1
        node.total[column] += value


def puct_prove(path: list[tuple[PuctNode, int]], result: int, plies: int) -> None:
    """The last move of the path wins or loses in so many plies: carry that proof towards the root, as `uct_prove`."""
    for node, column in reversed(path):
        node.proven[column], node.plies[column] = result, plies
        node.children[column] = None  # its tree is no longer needed
        if result == LOST:
            if any(node.proven[other] != LOST for other in node.board.legal()):
                return
            plies = max(node.plies[other] for other in node.board.legal())  # the side to move resists longest
        result, plies = -result, plies + 1


# The root of a PUCT search: noise, Gumbel, what is recorded and played ------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a PUCT search found: `visits` (7,) and `value` to learn from, the `label`, and the `move` that is played."""

    visits: list[int]
    label: int
    move: int
    value: float


def puct(
    root: PuctNode, settings: PuctSettings, evaluate: Evaluate, draws: PuctDraws, step: int, kept: list[int]
) -> Found:
    """Search from an expanded root; `kept`, (7,), are visits that an earlier search left in its tree."""
    if settings.root == "puct" and settings.noise_fraction:
        mix_noise(root, draws.gamma[step], settings.noise_fraction)
    considered = min(settings.considered, len(root.board.legal()))
    turns = halving_schedule(settings.simulations, considered)
    for simulation in range(settings.simulations):
        first_move = None
        if settings.root == "gumbel":
            scores = gumbel_scores(root, settings, draws.gumbel[step])
            turn = [column for column in CENTRE_FIRST if column in scores and root.visits[column] == turns[simulation]]
            first_move = max(turn, key=lambda column: scores[column])
        puct_simulate(root, settings, evaluate, first_move)

    legal = [column for column in CENTRE_FIRST if column in root.board.legal()]
    won = [column for column in legal if root.proven[column] == WON]
    lost = all(root.proven[column] == LOST for column in legal)
    not_lost = [column for column in legal if root.proven[column] != LOST]
    if won or lost:  # proven: the quickest win, or the slowest loss, gets all visits
        sign = -1 if won else 1
        label = max(won or legal, key=lambda c: (sign * root.plies[c], root.visits[c], root.mean(c)))
        count = POLICY_UNITS if settings.root == "gumbel" else settings.simulations
        visits = [count * (column == label) for column in range(COLUMNS)]
        return Found(visits=visits, label=label, move=label, value=root.mean(label))

    sampled = root.board.stones < settings.sampling_plies
    if settings.root == "gumbel":
        scores = gumbel_scores(root, settings, np.zeros(COLUMNS))
        label = best(root.board, lambda column: scores[column])
        odds = {c: math.exp(scores[c] - scores[label]) for c in sorted(legal)}
        q = {c: root.mean(c) if root.visits[c] or root.proven[c] else float(root.value) for c in legal}
        value = sum(odds[c] * q[c] for c in odds) / sum(odds.values())
        noisy, most = gumbel_scores(root, settings, draws.gumbel[step]), max(root.visits)
        move = max((c for c in legal if root.visits[c] == most), key=lambda c: noisy[c]) if sampled else label
        return Found(visits=policy_in_units(odds, draws.uniform[step][1]), label=label, move=move, value=value)

    label = max(not_lost, key=lambda c: (root.visits[c], root.mean(c)))
    move = sample_by_visits(root, not_lost, label, settings.temperature, draws.uniform[step][0]) if sampled else label
    value = sum(root.visits[c] * root.mean(c) for c in legal) / sum(root.visits)
    return Found(visits=[root.visits[c] - kept[c] for c in range(COLUMNS)], label=label, move=move, value=value)


def mix_noise(root: PuctNode, gamma: NDArray[np.float64], noise: float) -> None:
    """Mix Dirichlet noise into the root's priors, and into the weights of the rule without priors."""
    legal = root.board.legal()
    total = sum(float(gamma[column]) for column in legal)
    root.weights = noisy_weights(root.board, gamma, noise)
    for column in legal:
        share = float(gamma[column]) / total
        root.priors[column] = f32((1.0 - noise) * float(root.priors[column]) + noise * share)


def sample_by_visits(root: PuctNode, columns: list[int], label: int, temperature: float, uniform: float) -> int:
    """A column drawn with probability proportional to visits^(1 / temperature)."""
    most = max(1, root.visits[label])
    odds = {c: (root.visits[c] / most) ** (1 / temperature) for c in sorted(columns)}
    left = float(uniform) * sum(odds.values())
    for column, weight in odds.items():
        left -= weight
        if left < 0:
            return column
    return label


# Gumbel root: Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022 ---------------------------------

POLICY_UNITS = 1000
"""A Gumbel root records its improved policy as visits that sum to this."""


def halving_schedule(simulations: int, considered: int) -> list[int]:
    """For each simulation, the visits of the columns whose turn it is (sequential halving, Karnin et al. 2013).

    All considered columns get equally many visits, then the better half of them, and so on down to two.
    """
    if considered == 1:
        return list(range(simulations))
    rounds, turns, visits, left = math.ceil(math.log2(considered)), list[int](), [0] * considered, considered
    while len(turns) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            turns += visits[:left]
            visits[:left] = [count + 1 for count in visits[:left]]
        left = max(2, left // 2)
    return turns[:simulations]


def gumbel_scores(root: PuctNode, settings: PuctSettings, gumbel: NDArray[np.float64]) -> dict[int, float]:
    """g + ln P + sigma(q) by legal column, sigma(q) = (c_visit + max n) · c_scale · (1 + q) / 2.

    An unvisited column's q is the mixed value (v + N / sum P · sum P Q) / (1 + N), sums over visited columns, v the
    network's value of the root.
    """
    legal = root.board.legal()
    prior = {column: max(float(root.priors[column]), 1e-12) for column in legal}
    visited = [column for column in legal if root.visits[column]]
    mixed, total = float(root.value), sum(root.visits[column] for column in visited)
    if visited:
        mean = sum(prior[c] * root.mean(c) for c in visited) / sum(prior[c] for c in visited)
        mixed = (mixed + total * mean) / (1 + total)
    scale = (settings.c_visit + max(root.visits)) * settings.c_scale
    q = {c: root.mean(c) if root.visits[c] or root.proven[c] else mixed for c in legal}
    return {c: float(gumbel[c]) + math.log(prior[c]) + scale * (1 + q[c]) / 2 for c in legal}


def policy_in_units(odds: dict[int, float], shift: float) -> list[int]:
    """(7,) odds over their sum in units of 1 / POLICY_UNITS, rounded by systematic sampling, without bias."""
    below, before, visits = 0.0, 0, []
    for column in range(COLUMNS):
        below += odds.get(column, 0.0)
        here = math.floor(below / sum(odds.values()) * POLICY_UNITS + float(shift))
        visits.append(here - before)
        before = here
    return visits


def play(board: Board, settings: PuctSettings, evaluate: Evaluate, draws: PuctDraws, room: int) -> list[Found]:
    """A whole game; `room` is how many visits a tree may hold before a reused one is dropped."""
    found, root, kept = list[Found](), puct_expand(board, evaluate, settings, is_root=True), [0] * COLUMNS
    while True:
        found.append(puct(root, settings, evaluate, draws, len(found), kept))
        after, child = root.board.after(found[-1].move), root.children[found[-1].move]
        if after.has_four(1 - after.side) or not after.legal():
            return found
        if settings.reuse and child is not None and sum(child.visits) + settings.simulations + 2 < room:
            root, kept = child, list(child.visits)
        else:
            root, kept = puct_expand(after, evaluate, settings, is_root=True), [0] * COLUMNS

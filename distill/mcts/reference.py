"""The textbook, part one: UCT with rollouts in plain Python, written to be read and changed.

    Kocsis & Szepesvári, Bandit based Monte-Carlo planning, ECML 2006.
    Browne et al., A survey of Monte Carlo tree search methods, 2012.

`uct` searches one position: it repeats the same four steps and returns the tree.

    select      from the root, follow the move with the highest score, until a move that is new or ends the game
    expand      a position becomes a node of the tree at its second visit
    evaluate    the value of the leaf: the rules, a proof, or a rollout, which plays to the end by a simple policy
    backup      add the value to every move on the path, changing its sign at every ply

`label` runs K such searches, each with its own noise, which vote. `reference_puct.py` is part two: the search that a
network guides. `textbook.py` makes a labeller of `label_boards`.

One sign rule: a value is for the side to move in that position, in [-1, 1]. So the mean value of a move is for the side
that plays it.

The compiled engine shares no code with this file and must build the same trees: the tests compare them node for node.
Where this file computes in a particular order or in float32 (`f32`), it does so to round as the engine does. After a
change here, `generate --labeller distill.mcts.textbook:label` labels by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from distill.game import rules
from distill.game.encoding import bitboards
from distill.game.rules import CENTRE, COLUMNS, Position, is_over, is_won, legal_columns, next_position
from distill.mcts.labeller import Labels

if TYPE_CHECKING:
    from distill.mcts.settings import UctSettings

WON, LOST, UNKNOWN = 1, -1, 0
"""What is proven about a move: the side that plays it wins, or loses, whatever the other side does."""
f32 = np.float32


def winning_moves(position: Position) -> list[int]:
    """Columns that win at once for the side to move."""
    return [column for column in legal_columns(position) if is_won(next_position(position, column))]


def losing_moves(position: Position) -> list[int]:
    """Columns after which the opponent wins at once."""
    return [column for column in legal_columns(position) if winning_moves(next_position(position, column))]


def best(position: Position, score: Callable[[int], float | tuple[float, ...]]) -> int:
    """The legal column with the highest score, of equals the nearest to the centre, then the lower one."""
    legal = legal_columns(position)
    return max((column for column in rules.COLUMNS_FROM_CENTRE if column in legal), key=score)


# One search -----------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Node:
    """A position in the tree; lists have one entry a column, for the move played there."""

    position: Position
    visits: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    total: list[int] = field(default_factory=lambda: [0] * COLUMNS)  # sum of values for the side to move
    proven: list[int] = field(default_factory=lambda: [UNKNOWN] * COLUMNS)
    plies: list[int] = field(default_factory=lambda: [0] * COLUMNS)  # of a proven move: until the end of the game
    weights: list[float] = field(default_factory=lambda: [1.0] * COLUMNS)  # of the exploration; noise at the root
    children: list[Self | None] = field(default_factory=lambda: [None] * COLUMNS)


Path = list[tuple[Node, int]]
"""The moves of one simulation, each as the node and the column."""


def uct(position: Position, settings: UctSettings, key: int, order: Sequence[float], weights: list[float]) -> Node:
    """One search of a position where the game is not over; returns the root of its tree.

    Args:
      key: seed of all rollouts.
      order: (7,), unvisited moves are tried in descending order of this.
      weights: (7,), factors of the root's exploration term (`exploration_weights`).
    """
    root = Node(position=position, weights=weights)
    for simulation in range(settings.simulations):
        path = select(root, simulation, order, settings.exploration)
        value = evaluate(path, rollout_seed(key, simulation), settings.rollout == "heuristic")
        backup(path, value)
        if settings.mcts_solver and is_won(position_after(path)):
            propagate_proof(path, WON, plies=1)
    return root


def select(root: Node, simulation: int, order: Sequence[float], exploration: float) -> Path:
    """The moves from the root to a leaf: a move that is new, ends the game or is proven."""
    path: Path = []
    node, entered = root, simulation  # `entered` counts the earlier visits to the node
    while True:
        column = best_ucb1(node, entered, order, exploration)
        path.append((node, column))
        entered = node.visits[column]
        if not entered or node.proven[column] or is_over(position_after(path)):
            return path
        node = node.children[column] or expand(node, column)


def best_ucb1(node: Node, entered: int, order: Sequence[float], exploration: float) -> int:
    """The legal move with the highest UCB1 score, mean + c · w · sqrt(ln N / n); unvisited moves come first."""
    legal = legal_columns(node.position)
    unvisited = [column for column in legal if not node.visits[column]]
    if unvisited and WON not in node.proven:
        return max(unvisited, key=lambda column: order[column])
    bonus = f32(exploration * math.sqrt(math.log(entered)))

    def score(column: int) -> float:
        root_n = f32(1) / np.sqrt(f32(node.visits[column]))
        return float((f32(node.total[column]) * root_n + bonus * f32(node.weights[column])) * root_n)

    return max((column for column in legal if node.visits[column]), key=score)  # ties: the lowest column


def expand(node: Node, column: int) -> Node:
    """Give the position after a move its node."""
    child = node.children[column] = Node(position=next_position(node.position, column))
    return child


def position_after(path: Path) -> Position:
    """The position after the last move of the path."""
    node, column = path[-1]
    return next_position(node.position, column)


def evaluate(path: Path, seed: int, heuristic: bool) -> int:
    """The value of the leaf for its side to move: by the rules, by a proof, else by a rollout."""
    (node, column), leaf = path[-1], position_after(path)
    if is_won(leaf):
        return -1
    if node.proven[column]:
        return -node.proven[column]
    return rollout(leaf, seed, heuristic)


def rollout(position: Position, state: int, heuristic: bool) -> int:
    """Play to the end at random; the result, 1, 0 or -1, for the side to move in this position.

    The heuristic policy: take a win, else block one, else play the centre with probability 0.2, else any legal column.
    """
    sign = 1  # of a win for the side to move
    while legal := legal_columns(position):
        state = next_state(state)
        move = legal[(state >> 32) * len(legal) >> 32]  # the upper half of the state draws the column
        if heuristic:
            wins, blocks = winning_moves(position), winning_moves(Position(position.opponent, position.mask))
            if wins or blocks:
                move = (wins or blocks)[0]
            elif CENTRE in legal and state % 2**32 < round(0.2 * 2**32):  # the lower half decides on the centre
                move = CENTRE
        position = next_position(position, move)
        if is_won(position):
            return sign
        sign = -sign
    return 0


def backup(path: Path, value: int, discount: float = 1.0) -> None:
    """Add the leaf's value to every move on the path, for the side that played it; each ply discounts it."""
    for node, column in reversed(path):
        value = -round(value * discount)
        node.visits[column] += 1
        node.total[column] += value


def propagate_proof(path: Path, result: int, plies: int) -> None:
    """The last move of the path wins or loses in so many plies: carry that proof towards the root.

    MCTS-Solver (Winands et al. 2008): a move wins if it ends the game or leaves only losing replies; it loses if one
    reply wins. A proven move's total becomes a number that no sum of values reaches.
    """
    for node, column in reversed(path):
        node.proven[column], node.plies[column], node.total[column] = result, plies, result * 2**30
        if result == LOST:
            legal = legal_columns(node.position)
            if any(node.proven[other] != LOST for other in legal):
                return  # another move may still save the side to move
            plies = max(node.plies[other] for other in legal)  # the losing side resists as long as it can
        result, plies = -result, plies + 1


# Chance ---------------------------------------------------------------------------------------------------------------

WORD = 2**64 - 1


def rollout_seed(key: int, simulation: int) -> int:
    """The first state of a rollout's generator: SplitMix64 of the search's key and the simulation (never 0)."""
    word = (key + simulation * 0x9E3779B97F4A7C15) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return (word ^ (word >> 31)) | 1


def next_state(state: int) -> int:
    """The next state of a rollout's generator: xorshift64 (Marsaglia 2003)."""
    state ^= state << 13 & WORD
    state ^= state >> 7
    return state ^ (state << 17 & WORD)


def dirichlet(position: Position, gamma: Sequence[float]) -> list[float]:
    """(7,) a Dirichlet draw over the legal columns, 0 elsewhere: gamma variates, (7,), over their sum."""
    legal = legal_columns(position)
    total = sum(float(gamma[column]) for column in legal)
    return [(float(gamma[c]) / total if total else 1 / len(legal)) if c in legal else 0.0 for c in range(COLUMNS)]


def exploration_weights(position: Position, gamma: Sequence[float], noise: float) -> list[float]:
    """(7,) factors of the root's exploration, L · ((1 − f) / L + f · Dirichlet), of L legal moves; f is `noise`."""
    legal = len(legal_columns(position))
    return [legal * ((1.0 - noise) / legal + noise * share) for share in dirichlet(position, gamma)]


# K searches -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Result:
    """What K searches of one position found.

    Args:
      votes: (K,) columns, and their majority, the `label`.
      visits: (7,) of the root, summed over the searches.
      value: mean value of the root.
      move: the column that is played.
    """

    votes: list[int]
    label: int
    visits: list[int]
    value: float
    move: int


def label(
    position: Position,
    keys: Sequence[int],
    orders: Sequence[Sequence[float]],
    gammas: Sequence[Sequence[float]],
    move: Sequence[float],
    settings: UctSettings,
) -> Result:
    """K independent searches, each with its own noise and rollouts, and their majority.

    Random numbers: `keys`, `orders` and `gammas` have one entry a search, as `uct` and `exploration_weights` take them;
    `move`, (8,), is for `noisy_move`.
    """
    votes, visits, value = [], [0] * COLUMNS, 0.0
    for key, order, gamma in zip(keys, orders, gammas, strict=True):
        root = uct(position, settings, key, order, exploration_weights(position, gamma, settings.label_noise))
        votes.append(best_visited(root))
        visits = [before + more for before, more in zip(visits, root.visits, strict=True)]
        value += sum(total_of(root, column) for column in range(COLUMNS)) / settings.simulations
    label = majority(votes, visits)
    played = noisy_move(position, label, move, settings.move_noise)
    return Result(votes=votes, label=label, visits=visits, value=value / settings.votes, move=played)


def label_boards(boards: NDArray[np.int8], seeds: NDArray[np.uint64], settings: UctSettings) -> Labels:
    """`label` as a `Labeller` of boards, int8 (B, 6, 7); every random number comes from a position's seed."""
    labels = list[Result]()
    for current, mask, seed in zip(*bitboards(boards), seeds, strict=True):
        random = np.random.default_rng(seed)
        keys = random.integers(2**64, size=settings.votes, dtype=np.uint64).tolist()
        orders = [random.permutation(COLUMNS).tolist() for _ in keys]
        gammas = random.standard_gamma(settings.dirichlet_alpha, (settings.votes, COLUMNS)).tolist()
        no_chance = [0.0] * (COLUMNS + 1)  # `generate` draws the noise of moves
        labels.append(label(Position(int(current), int(mask)), keys, orders, gammas, no_chance, settings))
    arrays = {name: np.array([getattr(one, name) for one in labels]) for name in ("visits", "value", "label", "votes")}
    return Labels(**arrays)


def best_visited(root: Node) -> int:
    """The search's move: proven wins first and proven losses last, then most visits, then the higher mean.

    The total of a proven move is about 2^30 or -2^30, which outweighs all visits.
    """

    def score(column: int) -> tuple[int, float]:
        weight = root.visits[column] + (root.total[column] if root.proven[column] else 0)
        return weight, total_of(root, column) / root.visits[column] if root.visits[column] else -2.0

    return best(root.position, score)


def total_of(root: Node, column: int) -> int:
    """The sum of a move's values; every visit to a proven move counts as its proof."""
    return root.proven[column] * root.visits[column] if root.proven[column] else root.total[column]


def majority(votes: list[int], visits: list[int]) -> int:
    """Most votes, then most summed visits, then nearest the centre."""
    return max(rules.COLUMNS_FROM_CENTRE, key=lambda column: (votes.count(column), column in votes and visits[column]))


def noisy_move(position: Position, label: int, chance: Sequence[float], noise: float) -> int:
    """The move played: drawn from (1 − f) · [the label] + f · Dirichlet; the label without noise.

    `chance`: seven gamma variates and a uniform number.
    """
    left = chance[COLUMNS]
    for column, share in enumerate(dirichlet(position, chance)):
        left -= noise * share + (1.0 - noise) * (column == label)
        if noise and left < 0:
            return column
    return label

"""The textbook, part two: PUCT and the Gumbel root in plain Python, written to be read and changed.

    Silver et al., A general reinforcement learning algorithm (AlphaZero), Science 362, 2018.
    Danihelka et al., Policy improvement by planning with Gumbel, ICLR 2022.

An evaluator, such as a network, says how good a position is (value) and which moves to try first (prior). `simulate` is
one simulation:

    select      from the root, follow the move with the highest score to a position outside the tree
    expand      add it to the tree, with the evaluator's priors for its moves
    evaluate    its value: by the rules or a proof where they decide it, else the evaluator's
    backup      add the value to every move on the path, changing its sign at every ply

`search` runs a whole search and chooses a move. `game/rules.py` draws the board, and `reference.py` explains
the sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, Position, is_over, is_won, legal_columns, next_position
from distill.mcts import reference
from distill.mcts.reference import LOST, UNKNOWN, WON, Node, Path, Result, best, f32

if TYPE_CHECKING:
    from distill.mcts.settings import PuctSettings

EvaluateOne = Callable[[Position], tuple[Sequence[float], float]]
"""The evaluator: a position to seven logits and a value."""

UNIT = 16_384
"""Values are summed as whole multiples of 1 / UNIT, so that a sum does not depend on the order of its terms."""


@dataclass(kw_only=True)
class PuctNode(Node):
    """A position in the tree, with its evaluation; totals are in UNITs."""

    priors: list[np.float32]  # the evaluator's policy: 0 on full columns, sums to 1
    value: np.float32  # the evaluator's value of this position
    discount: float

    def mean(self, column: int) -> float:
        """The value of a move: proven, or the mean of its simulations; 0 without any."""
        if self.proven[column]:
            return self.proven[column] * discounted_win(self.discount, self.plies[column]) / UNIT
        return self.total[column] / (UNIT * self.visits[column]) if self.visits[column] else 0.0


def discounted_win(discount: float, plies: int) -> int:
    """The value, in UNITs, of a win after this many plies."""
    return round(UNIT * discount**plies)


# One simulation -------------------------------------------------------------------------------------------------------


def simulate(root: PuctNode, evaluate: EvaluateOne, settings: PuctSettings, first_move: int | None = None) -> None:
    """One simulation; a Gumbel root chooses the first move itself."""
    path, leaf = select(root, settings, first_move)
    value, proof, plies = evaluate_by_rules(path, leaf, settings)
    if value is None:
        child = expand(leaf, evaluate, settings)
        node, column = path[-1]
        node.children[column] = child
        value = int(np.rint(float(child.value) * UNIT))
    reference.backup(path, value, settings.discount)
    if settings.mcts_solver and proof:
        reference.propagate_proof(path, proof, plies)


def select(root: PuctNode, settings: PuctSettings, first_move: int | None) -> tuple[Path, Position]:
    """The moves from the root to a position that has no node, and this position."""
    path: Path = []
    node: PuctNode | None = root
    entered = sum(root.visits) + 1  # visits to the node, its own evaluation included
    while node:
        column = best_score(node, entered, settings) if first_move is None else first_move
        path.append((node, column))
        leaf, entered, first_move = next_position(node.position, column), node.visits[column], None
        node = None if node.proven[column] else node.children[column]
    return path, leaf


def best_score(node: PuctNode, entered: int, settings: PuctSettings) -> int:
    """The legal move with the highest score, Q + c · P · sqrt(N) / (1 + n); proven wins first, proven losses last.

    The rule "growing" has c(N) = c + ln((N + 19653) / 19652), the AlphaZero paper's; "printed" has no prior:
    Q + c(N) · sqrt(ln N / n). An unvisited move's Q is the node's value less `fpu_reduction` · sqrt(visited prior).
    """
    factor = settings.exploration
    if settings.rule != "constant":
        factor += math.log((entered + 19653) / 19652)
    bonus = factor * math.sqrt(math.log(entered) if settings.rule == "printed" else entered)
    unvisited_q = 0.0
    if settings.fpu_reduction is not None:
        visited_prior = sum(float(node.priors[c]) for c in legal_columns(node.position) if node.visits[c])
        unvisited_q = float(node.value) - settings.fpu_reduction * math.sqrt(visited_prior)

    def score(column: int) -> float:
        n, prior = node.visits[column], float(node.priors[column])
        if node.proven[column]:  # the quickest win, or the slowest loss
            return node.proven[column] * (1e9 - node.plies[column])
        q = node.total[column] / (UNIT * n) if n else unvisited_q
        if settings.rule == "printed":
            return q + bonus * node.weights[column] / math.sqrt(n) if n else 5e8 + prior
        return q + bonus * prior / (1 + n)

    return best(node.position, score)


def evaluate_by_rules(path: Path, leaf: Position, settings: PuctSettings) -> tuple[int | None, int, int]:
    """The leaf's value in UNITs where the rules or a proof decide it, else None.

    Returns also what is proven about the last move, and in how many plies the game then ends. With `mcts_solver` the
    rules look two plies ahead.
    """
    node, column = path[-1]
    if is_won(leaf):
        return -UNIT, WON, 1
    if is_over(leaf):
        return 0, UNKNOWN, 0
    if node.proven[column]:
        return -node.proven[column] * discounted_win(settings.discount, node.plies[column] - 1), UNKNOWN, 0
    if settings.mcts_solver and reference.winning_moves(leaf):
        return discounted_win(settings.discount, 1), LOST, 2
    if settings.mcts_solver and reference.losing_moves(leaf) == legal_columns(leaf):
        return -discounted_win(settings.discount, 2), WON, 3
    return None, UNKNOWN, 0


def expand(position: Position, evaluate: EvaluateOne, settings: PuctSettings) -> PuctNode:
    """The node of a position, evaluated, with what one ply of look-ahead proves about its moves."""
    logits, value = evaluate(position)
    legal = legal_columns(position)
    highest = max(float(f32(logits[column])) for column in legal)
    odds = [math.exp(float(f32(logits[c])) - highest) if c in legal else 0.0 for c in range(COLUMNS)]
    node = PuctNode(
        position=position,
        priors=[f32(float(f32(weight)) / sum(odds)) for weight in odds],
        value=f32(min(max(float(f32(value)), -1.0), 1.0)),
        discount=settings.discount,
    )
    if settings.mcts_solver:
        for column in reference.losing_moves(position):
            node.proven[column], node.plies[column] = LOST, 2
        # A win in one is of a root only: inside the tree the rules decide such a position.
        for column in reference.winning_moves(position):
            node.proven[column], node.plies[column] = WON, 1
    return node


# One search -----------------------------------------------------------------------------------------------------------


def search(
    position: Position, noise: list[float], uniform: list[float], evaluate: EvaluateOne, settings: PuctSettings
) -> Result:
    """Search one position, and choose a move.

    Random numbers: `noise`, (7,), at the root, gamma variates, or Gumbel variates for a Gumbel root; and two uniform
    ones, for the move and for rounding a policy to visits.
    """
    root = expand(position, evaluate, settings)
    if settings.root == "puct" and settings.noise_fraction:
        mix_noise(root, noise, settings.noise_fraction)
    turns = halving_schedule(settings.simulations, len(legal_columns(position)))
    for simulation in range(settings.simulations):
        first_move = next_by_halving(root, noise, turns[simulation]) if settings.root == "gumbel" else None
        simulate(root, evaluate, settings, first_move)

    # Choose a move: by a proof, by the Gumbel root's policy, or by visits.
    if result := proven_result(root, settings):
        return result
    sampled = position.ply < settings.sampling_plies
    if settings.root == "gumbel":
        return gumbel_result(root, noise, uniform[1], sampled)
    label = best(position, lambda c: (root.proven[c] != LOST, root.visits[c], root.mean(c)))
    move = sample_by_visits(root, label, settings.temperature, uniform[0]) if sampled else label
    value = sum(root.visits[c] * root.mean(c) for c in COLUMNS_FROM_CENTRE) / sum(root.visits)
    return Result(votes=[label], visits=list(root.visits), label=label, move=move, value=value)


def mix_noise(root: PuctNode, gamma: list[float], noise: float) -> None:
    """Mix Dirichlet noise into the root's priors, and into the weights of the rule without priors."""
    root.weights = reference.exploration_weights(root.position, gamma, noise)
    for column, share in enumerate(reference.dirichlet(root.position, gamma)):
        root.priors[column] = f32((1.0 - noise) * float(root.priors[column]) + noise * share)


def proven_result(root: PuctNode, settings: PuctSettings) -> Result | None:
    """The result of a proven root: the quickest win, or the slowest loss, gets all visits."""
    legal = [column for column in COLUMNS_FROM_CENTRE if column in legal_columns(root.position)]
    won = [column for column in legal if root.proven[column] == WON]
    if not won and any(root.proven[column] != LOST for column in legal):
        return None
    sign = -1 if won else 1
    label = max(won or legal, key=lambda c: (sign * root.plies[c], root.visits[c], root.mean(c)))
    count = POLICY_UNITS if settings.root == "gumbel" else settings.simulations
    visits = [count * (column == label) for column in range(COLUMNS)]
    return Result(votes=[label], visits=visits, label=label, move=label, value=root.mean(label))


def sample_by_visits(root: PuctNode, label: int, temperature: float, uniform: float) -> int:
    """A column not proven to lose, drawn with probability proportional to visits^(1 / temperature)."""
    most = max(1, root.visits[label])
    columns = [column for column in legal_columns(root.position) if root.proven[column] != LOST]
    odds = {column: (root.visits[column] / most) ** (1 / temperature) for column in columns}
    left = float(uniform) * sum(odds.values())
    for column, weight in odds.items():
        left -= weight
        if left < 0:
            return column
    return label


# The Gumbel root ------------------------------------------------------------------------------------------------------

POLICY_UNITS = 1000
"""A Gumbel root records its improved policy as visits that sum to this."""
C_VISIT, C_SCALE = 50.0, 0.3
"""How values weigh against logits; values are taken on [0, 1]."""


def halving_schedule(simulations: int, considered: int) -> list[int]:
    """For each simulation, the visits of the columns whose turn it is (sequential halving, Karnin et al. 2013).

    All columns considered get equally many visits, then the better half of them, and so on down to two.
    """
    if considered == 1:
        return list(range(simulations))
    rounds, turns, visits, left = math.ceil(math.log2(considered)), list[int](), [0] * considered, considered
    while len(turns) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            turns += visits[:left]
            visits[:left] = [count + 1 for count in visits[:left]]
        left = max(2, left // 2)  # the better half continues
    return turns[:simulations]


def next_by_halving(root: PuctNode, gumbel: list[float], turn: int) -> int:
    """The best-scored column among those with `turn` visits."""
    scores = gumbel_scores(root, gumbel)
    return max((c for c in COLUMNS_FROM_CENTRE if c in scores and root.visits[c] == turn), key=lambda c: scores[c])


def gumbel_scores(root: PuctNode, gumbel: list[float]) -> dict[int, float]:
    """g + ln P + sigma(Q) by legal column, sigma(Q) = (C_VISIT + max n) · C_SCALE · (1 + Q) / 2.

    An unvisited column's Q is the mixed value (v + N / sum P · sum P Q) / (1 + N), sums over visited columns, v the
    evaluator's value of the root.
    """
    legal = legal_columns(root.position)
    prior = {column: max(float(root.priors[column]), 1e-12) for column in legal}
    visited = [column for column in legal if root.visits[column]]
    mixed, total = float(root.value), sum(root.visits[column] for column in visited)
    if visited:
        mean = sum(prior[c] * root.mean(c) for c in visited) / sum(prior[c] for c in visited)
        mixed = (mixed + total * mean) / (1 + total)
    scale = (C_VISIT + max(root.visits)) * C_SCALE
    q = {c: root.mean(c) if root.visits[c] or root.proven[c] else mixed for c in legal}
    return {c: float(gumbel[c]) + math.log(prior[c]) + scale * (1 + q[c]) / 2 for c in legal}


def gumbel_result(root: PuctNode, gumbel: list[float], shift: float, sampled: bool) -> Result:
    """The improved policy, the softmax of the scores without noise, as visits; its best column; its value.

    The move that is `sampled` is the best by noisy scores among the columns visited most.
    """
    legal = legal_columns(root.position)
    scores = gumbel_scores(root, [0.0] * COLUMNS)
    label = best(root.position, lambda column: scores[column])
    odds = {c: math.exp(scores[c] - scores[label]) for c in legal}
    q = {c: root.mean(c) if root.visits[c] or root.proven[c] else float(root.value) for c in legal}
    value = sum(odds[c] * q[c] for c in odds) / sum(odds.values())
    noisy = gumbel_scores(root, gumbel)
    move = best(root.position, lambda c: (root.visits[c], noisy[c])) if sampled else label
    visits = policy_in_units(odds, shift)
    return Result(votes=[label], visits=visits, label=label, move=move, value=value)


def policy_in_units(odds: dict[int, float], shift: float) -> list[int]:
    """(7,) odds over their sum in units of 1 / POLICY_UNITS, rounded by systematic sampling, without bias."""
    below, before, visits = 0.0, 0, []
    for column in range(COLUMNS):
        below += odds.get(column, 0.0)
        rounded = math.floor(below / sum(odds.values()) * POLICY_UNITS + float(shift))
        visits.append(rounded - before)
        before = rounded
    return visits

"""The slow twin of `search/puct.py`: the same searches in plain Python, on lists instead of bits.

It shares no code with `distill.search`. For the same draws and the same answers of a network it must grow the same
tree: the same visits, labels and moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from twin import CENTRE_FIRST, COLUMNS, Board

UNIT = 16_384
f32 = np.float32

Predict = Callable[[int, int], tuple[list[float], float]]
"""Logits and value of one position, given as (current, mask)."""


def bits(board: Board) -> tuple[int, int]:
    """Stones of the side to move and all stones, seven bits a column."""
    current = mask = 0
    for column, stones in enumerate(board.columns):
        for row, side in enumerate(stones):
            mask |= 1 << (7 * column + row)
            current |= (side == board.side) << (7 * column + row)
    return current, mask


def after(board: Board, column: int) -> Board:
    board = board.copy()
    board.play(column)
    return board


def wins(board: Board) -> list[int]:
    """Columns in which the side to move has four at once."""
    return [column for column in board.legal() if board.wins_at(column, board.side)]


def losing(board: Board) -> list[int]:
    """Columns after which the opponent has four at once."""
    return [column for column in board.legal() if wins(after(board, column))]


@dataclass
class Node:
    board: Board
    priors: list[Any]
    value: Any
    visits: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    total: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    proven: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    plies: list[int] = field(default_factory=lambda: [0] * COLUMNS)
    discount: float = 1.0
    children: list[Node | None] = field(default_factory=lambda: [None] * COLUMNS)
    weights: list[float] = field(default_factory=lambda: [1.0] * COLUMNS)

    def mean(self, column: int) -> float:
        if self.proven[column]:
            return self.proven[column] * worth(self.discount, self.plies[column]) / UNIT
        return self.total[column] / (UNIT * self.visits[column]) if self.visits[column] else 0.0


@dataclass
class Draws:
    """One game's chance: gamma and gumbel (S, 7), uniform (S, 2)."""

    gamma: Any
    gumbel: Any
    uniform: Any


def worth(discount: float, plies: int) -> int:
    """Of a game won in so many plies."""
    return round(UNIT * discount**plies)


def expand(board: Board, predict: Predict, settings: Any, is_root: bool) -> Node:
    logits, value = predict(*bits(board))
    legal = board.legal()
    highest = max(float(f32(logits[column])) for column in legal)
    raw = [math.exp(float(f32(logits[c])) - highest) if c in legal else 0.0 for c in range(COLUMNS)]
    total = sum(raw)
    node = Node(board, [f32(float(f32(weight)) / total) for weight in raw], f32(min(max(f32(value), -1), 1)))
    node.discount = settings.discount
    if settings.mcts_solver:
        for column in losing(board):
            node.proven[column], node.plies[column] = -1, 2
        for column in wins(board) if is_root else []:
            node.proven[column], node.plies[column] = 1, 1
    return node


def factor(settings: Any, entered: int) -> float:
    c = settings.exploration
    if settings.rule != "constant":
        c += math.log((entered + 19653) / 19652)
    return c * math.sqrt(math.log(entered) if settings.rule == "printed" else entered)


def select(node: Node, entered: int, settings: Any, is_root: bool) -> int:
    bonus = factor(settings, entered)
    first = 0.0
    if settings.first_play is not None:
        seen = sum(float(node.priors[c]) for c in node.board.legal() if node.visits[c])
        first = float(node.value) - settings.first_play * math.sqrt(seen)
    scores = {}
    for column in node.board.legal():
        n, prior = node.visits[column], float(node.priors[column])
        mean = node.total[column] / (UNIT * n) if n else first
        if settings.rule == "printed":
            weight = node.weights[column] if is_root else 1.0
            score = mean + bonus * weight / math.sqrt(n) if n else 5e8 + prior
        else:
            score = mean + bonus * prior / (1 + n)
        if node.proven[column] == 1:
            score = 1e9 - node.plies[column]
        elif node.proven[column] == -1:
            score = -1e9 + node.plies[column]
        scores[column] = score
    return max((c for c in CENTRE_FIRST if c in scores), key=lambda c: scores[c])


def simulate(root: Node, settings: Any, predict: Predict, entered: int, forced: int | None) -> None:
    """One simulation from a root that was entered so often, its own evaluation among them."""
    node, path = root, []
    while True:
        is_root = node is root
        column = forced if is_root and forced is not None else select(node, entered, settings, is_root)
        path.append((node, column))
        entered = node.visits[column]
        board = after(node.board, column)
        if board.has_four(1 - board.side):
            back_up(path, -UNIT)
            if settings.mcts_solver:
                prove(path, 1, 1)
            return
        if not board.legal():
            back_up(path, 0)
            return
        if node.proven[column]:
            back_up(path, worth(settings.discount, node.plies[column] - 1) * -node.proven[column])
            return
        if settings.mcts_solver and wins(board):
            back_up(path, worth(settings.discount, 1))
            prove(path, -1, 2)
            return
        if settings.mcts_solver and losing(board) == board.legal():
            back_up(path, -worth(settings.discount, 2))
            prove(path, 1, 3)
            return
        child = node.children[column]
        if child is None:
            child = node.children[column] = expand(board, predict, settings, False)
            back_up(path, int(np.rint(float(child.value) * UNIT)))
            return
        node = child


def back_up(path: list[tuple[Node, int]], value: int) -> None:
    for node, column in reversed(path):
        value = -round(value * node.discount)
        node.visits[column] += 1
        node.total[column] += value


def prove(path: list[tuple[Node, int]], result: int, plies: int) -> None:
    """The last move of the path wins (1) or loses (-1) in so many plies; carry it up as far as it reaches."""
    for node, column in reversed(path):
        node.proven[column], node.plies[column] = result, plies
        node.children[column] = None
        if result == -1 and any(node.proven[other] != -1 for other in node.board.legal()):
            return
        if result == -1:
            plies = max(node.plies[other] for other in node.board.legal())
        result, plies = -result, plies + 1


def schedule(simulations: int, considered: int) -> list[int]:
    if considered == 1:
        return list(range(simulations))
    rounds, turns, visits, left = math.ceil(math.log2(considered)), [], [0] * considered, considered
    while len(turns) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            turns.extend(visits[:left])
            for i in range(left):
                visits[i] += 1
        left = max(2, left // 2)
    return turns[:simulations]


def root_scores(root: Node, settings: Any, gumbel: Any) -> dict[int, float]:
    """g + ln P + sigma(q) for legal columns (Danihelka et al. 2022)."""
    legal = root.board.legal()
    visited = [c for c in legal if root.visits[c]]
    prior = {c: max(float(root.priors[c]), 1e-12) for c in legal}
    mixed, total = float(root.value), sum(root.visits[c] for c in visited)
    if visited:
        mean = sum(prior[c] * root.mean(c) for c in visited) / sum(prior[c] for c in visited)
        mixed = (mixed + total * mean) / (1 + total)
    most = max([root.visits[c] for c in visited], default=0)
    scores = {}
    for column in legal:
        q = root.mean(column) if root.visits[column] or root.proven[column] else mixed
        sigma = (settings.c_visit + most) * settings.c_scale * (1 + q) / 2
        scores[column] = float(gumbel[column]) + math.log(prior[column]) + sigma
    return scores


def best(scores: dict[int, float]) -> int:
    return max((c for c in CENTRE_FIRST if c in scores), key=lambda c: scores[c])


def search(root: Node, settings: Any, predict: Predict, draws: Draws, step: int, carried: list[int]) -> dict[str, Any]:
    """What the compiled search records of one position, and the move it plays."""
    legal = root.board.legal()
    if settings.noise_fraction and settings.root == "puct":
        total = 0.0
        for column in legal:
            total += float(draws.gamma[step][column])
        for column in legal:
            share = float(draws.gamma[step][column]) / total
            keep, noise = 1.0 - settings.noise_fraction, settings.noise_fraction
            root.priors[column] = f32(keep * float(root.priors[column]) + noise * share)
            root.weights[column] = len(legal) * (keep / len(legal) + noise * share)
    turns = schedule(settings.simulations, min(settings.considered, len(legal)))
    for simulation in range(settings.simulations):
        forced = None
        if settings.root == "gumbel":
            scores = root_scores(root, settings, draws.gumbel[step])
            forced = best({c: s for c, s in scores.items() if root.visits[c] == turns[simulation]})
        simulate(root, settings, predict, sum(root.visits) + 1, forced)
    open_moves = [c for c in legal if root.proven[c] != -1] or legal
    won = [c for c in legal if root.proven[c] == 1]
    lost = all(root.proven[c] == -1 for c in legal)
    ranked = [c for c in CENTRE_FIRST if c in (won or open_moves)]
    quick = {c: root.plies[c] * (-1 if won else 1 if lost else 0) for c in ranked}
    label = max(ranked, key=lambda c: (quick[c], root.visits[c], root.mean(c)))
    visits = [root.visits[c] - carried[c] for c in range(COLUMNS)]
    returns = sum(root.visits[c] * root.mean(c) for c in CENTRE_FIRST if c in legal)
    move, value = label, returns / sum(root.visits)
    if settings.root == "gumbel":
        noisy = root_scores(root, settings, draws.gumbel[step])
        most = max(root.visits[c] for c in legal)
        move = best({c: s for c, s in noisy.items() if root.visits[c] == most})
        plain = root_scores(root, settings, [0.0] * COLUMNS)
        if not won and not lost:
            label = best(plain)
        visits = shares(plain, label, float(draws.uniform[step][1]))
        odds = {c: math.exp(plain[c] - plain[label]) for c in legal}
        q = {c: root.mean(c) if root.visits[c] or root.proven[c] else float(root.value) for c in legal}
        value = sum(odds[c] * q[c] for c in legal) / sum(odds.values())
    if won or lost:
        every = 1000 if settings.root == "gumbel" else settings.simulations
        visits = [every * (column == label) for column in range(COLUMNS)]
    if len([c for column in root.board.columns for c in column]) >= settings.sampling_plies or won or lost:
        move = label
    elif settings.root == "puct":
        move = drawn(root, open_moves, label, settings.temperature, float(draws.uniform[step][0]))
    return {"visits": visits, "label": label, "move": move, "value": root.mean(label) if won or lost else value}


def shares(scores: dict[int, float], label: int, shift: float) -> list[int]:
    """softmax(scores) in thousandths, rounded by systematic sampling."""
    odds = [math.exp(scores[c] - scores[label]) if c in scores else 0.0 for c in range(COLUMNS)]
    below, before, visits = 0.0, 0, []
    for weight in odds:
        below += weight
        here = math.floor(below / sum(odds) * 1000 + shift)
        visits.append(here - before)
        before = here
    return visits


def drawn(root: Node, columns: list[int], label: int, temperature: float, uniform: float) -> int:
    most = max(1, root.visits[label])
    odds = {c: (root.visits[c] / most) ** (1 / temperature) for c in sorted(columns)}
    left = uniform * sum(odds.values())
    for column, weight in odds.items():
        left -= weight
        if left < 0:
            return column
    return label


def play(board: Board, settings: Any, predict: Predict, draws: Draws, room: int) -> list[dict[str, Any]]:
    """A whole game's records; `room` is how many visits a tree holds, beyond which a reused one is given up."""
    found, carried = [], [0] * COLUMNS
    root = expand(board, predict, settings, True)
    while True:
        found.append(search(root, settings, predict, draws, len(found), carried))
        move = found[-1]["move"]
        board = after(root.board, move)
        if board.has_four(1 - board.side) or not board.legal():
            return found
        child = root.children[move]
        carried = [0] * COLUMNS
        if settings.reuse and child is not None and sum(child.visits) + settings.simulations + 2 < room:
            root, carried = child, list(child.visits)
        else:
            root = expand(board, predict, settings, True)

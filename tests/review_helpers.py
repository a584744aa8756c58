"""Games and marks for the tests of the page's review: moves of shipped games, perfect games, blunders."""

import random
from pathlib import Path
from types import ModuleType

import numpy as np

from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Position
from distill.games import reader
from experiments.boards.plies import moves_to_end

SHIPPED_GAMES = Path(__file__).parents[1] / "data/reference/validation"
AT_ONCE = (*range(0, 11), *range(22, 42))
"""Plies at which the solver is fast, by its book or because few moves are left."""


def end_of(solver: ModuleType, position: Position) -> tuple[int, int]:
    """How a position ends for the side to move, 1, 0 or −1, and after how many plies."""
    if rules.is_over(position):
        return (-1 if rules.is_won(position) else 0), 0
    best = max(solver.scores(position))
    return int(np.sign(best)), int(moves_to_end([best], [position.ply])[0])


def mark(solver: ModuleType, position: Position, column: int) -> str:
    """The definitions in words, from how the positions after each move end, not from the scores of moves."""
    ends = {}
    for other in rules.legal_columns(position):
        result, plies = end_of(solver, rules.next_position(position, other))
        ends[other] = (-result, plies + 1)
    best_result, best_plies = end_of(solver, position)
    result, plies = ends[column]
    if len(ends) == 1:
        return "forced"
    if result < best_result:
        return "blunder" if best_result - result == 2 else "mistake"
    lost = {1: plies - best_plies, 0: 0, -1: best_plies - plies}[result]
    if lost:
        return "inaccuracy" if lost >= 6 else "good"
    others = [ends[other][0] for other in ends if other != column]
    return "only move" if all(other < best_result for other in others) else "best"


def marks(solver: ModuleType, game: str) -> list[str]:
    """The mark of each move of a game."""
    return [mark(solver, rules.from_moves(game[:ply]), int(text) - 1) for ply, text in enumerate(game)]


def accuracy(marks: list[str]) -> int:
    """Mean points of one side's marks, rounded down, as docs/evaluation.md has them."""
    points = {"only move": 100, "best": 100, "good": 90, "inaccuracy": 70, "mistake": 30, "blunder": 0}
    return int(np.mean([points[mark] for mark in marks if mark != "forced"]))


def shipped_moves(count: int) -> list[tuple[Position, int]]:
    """The first `count` moves of shipped games that the solver grades at once, with the position before the move."""
    moves = []
    for shard in reader.open_run(SHIPPED_GAMES).shards:
        columns = reader.read(shard, ("ply", "current", "mask", "move")).values()
        for ply, current, mask, move in zip(*(values.tolist() for values in columns), strict=True):
            if ply in AT_ONCE:
                moves.append((Position(current, mask), move))
            if len(moves) == count:
                return moves
    raise AssertionError(f"fewer than {count} moves")


def with_blunder(solver: ModuleType, ply: int, seed: int = 1) -> str:
    """A game of random best moves with one blunder at `ply`: a won position becomes the fastest loss."""
    rng, game = random.Random(seed), ""
    while not rules.is_over(position := rules.from_moves(game)):
        scores = solver.scores(position)
        columns = [column for column in range(7) if scores[column] == max(scores)]
        if len(game) == ply:
            columns = [scores.index(min(score for score in scores if score != FULL_COLUMN))]
            assert max(scores) > 0 > scores[columns[0]]
        game += str(rng.choice(columns) + 1)
    return game

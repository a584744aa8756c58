"""Games for the tests of the review: moves of shipped games, perfect games, blunders."""

import random
from pathlib import Path

from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Position
from distill.games import reader
from distill.players.solver import Solver

SHIPPED_GAMES = Path(__file__).parents[1] / "data/reference/validation"
AT_ONCE = (*range(0, 11), *range(22, 42))
"""Plies at which the solver is fast, by its book or because few moves are left."""


def shipped_moves(count: int, plies: tuple[int, ...] = AT_ONCE) -> list[tuple[Position, int]]:
    """The first `count` moves of shipped games at the given plies, each with the position before it."""
    found = []
    for shard in reader.open_run(SHIPPED_GAMES).shards:
        columns = reader.read(shard, ("ply", "current", "mask", "move")).values()
        for ply, current, mask, move in zip(*(values.tolist() for values in columns), strict=True):
            if ply in plies:
                found.append((Position(current, mask), move))
            if len(found) == count:
                return found
    raise AssertionError(f"fewer than {count} moves")


def perfect_game(solver: Solver, seed: int = 1) -> str:
    """A game of random best moves."""
    rng, position, game = random.Random(seed), rules.EMPTY, ""
    while not rules.is_over(position):
        scores = solver.scores(position)
        column = rng.choice([column for column in range(7) if scores[column] == max(scores)])
        position, game = rules.play(position, column), game + str(column + 1)
    return game


def with_blunder(solver: Solver, ply: int, seed: int = 1) -> str:
    """A perfect game with one blunder at `ply`: a won position becomes the fastest loss."""
    game = perfect_game(solver, seed)[:ply]
    position = rules.from_moves(game)
    scores = solver.scores(position)
    worst = min(score for score in scores if score != FULL_COLUMN)
    assert max(scores) > 0 > worst
    game += str(scores.index(worst) + 1)
    while not rules.is_over(position := rules.from_moves(game)):
        scores = solver.scores(position)
        game += str(scores.index(max(scores)) + 1)
    return game

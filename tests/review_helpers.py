"""Games to be reviewed: moves of games that ship, and whole games of chosen players."""

from __future__ import annotations

import random
from pathlib import Path

from distill.datasets.benchmark import FULL_COLUMN
from distill.game import rules
from distill.game.rules import Position
from distill.games import games
from distill.players.solver import Solver

SHIPPED_GAMES = Path(__file__).parents[1] / "data/reference/games-20000"
AT_ONCE = (*range(0, 11), *range(22, 42))
"""Stones on boards that the solver answers at once, by its book or because few moves are left."""


def shipped_moves(count: int, plies: tuple[int, ...] = AT_ONCE) -> list[tuple[Position, int]]:
    """The first so many moves of shipped games, each with the position before it, of so many stones."""
    found = []
    for shard in games.open_run(SHIPPED_GAMES).shards:
        for rows in games.read(shard, ("ply", "current", "mask", "move")):
            columns = (rows[name].tolist() for name in ("ply", "current", "mask", "move"))
            for ply, current, mask, move in zip(*columns, strict=True):
                if ply in plies:
                    found.append((Position(current, mask), move))
                if len(found) == count:
                    return found
    raise AssertionError(f"fewer than {count} moves")


def perfect_game(solver: Solver, seed: int = 1) -> str:
    """The solver against itself, at random among its best moves."""
    rng, position, game = random.Random(seed), rules.EMPTY, ""
    while not rules.is_over(position):
        scores = solver.scores(position)
        column = rng.choice([column for column in range(7) if scores[column] == max(scores)])
        position, game = rules.play(position, column), game + str(column + 1)
    return game


def with_blunder(solver: Solver, ply: int, seed: int = 1) -> str:
    """Perfect play but for one move, after so many stones: a win that is thrown away for the soonest loss."""
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


def game_at_random(seed: int) -> str:
    """Two random players."""
    rng, position, game = random.Random(seed), rules.EMPTY, ""
    while not rules.is_over(position):
        column = rng.choice(rules.legal_columns(position))
        position, game = rules.play(position, column), game + str(column + 1)
    return game

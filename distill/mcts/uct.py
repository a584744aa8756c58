"""UCT with rollouts: K independent searches of a position vote, with noise at the root or in the moves played.

    result, = search([EMPTY], UctSettings(simulations=1000))        # one position
    record = play(current, mask, draw(seed, games, 41, settings), settings)     # whole games

The score of a move is mean return + c · w · sqrt(ln N / n), with w = 1 below the root and, at the root,
w = L · ((1 − f) / L + f · Dirichlet(alpha)) for L legal moves and a noise fraction f. A search chooses the move with
most visits, then the higher mean, then the nearest to the centre, then the lower column (with `mcts_solver` a proven
win first, and proven losses last). The label is the column with most votes, then most summed visits, then the nearest
to the centre, then the lower one.

That holds for `noise_at` "label". With "move" every w is 1, so labels and visits come from searches without noise, and
the noise acts on the move played: it is drawn from (1 − f) · [the label] + f · Dirichlet(alpha).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distill.game.rules import COLUMNS
from distill.mcts import arguments, textbook
from distill.mcts.arguments import Bitboards
from distill.mcts.engine import uct_games, uct_simulation
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.record import GameRecord, new_record
from distill.mcts.engine.uct_games import UctDraws
from distill.mcts.engine.uct_simulation import UNVISITED
from distill.mcts.results import Positions, SearchResult, bitboards_of, generator, results_of
from distill.mcts.settings import UctSettings

__all__ = ["UctSettings", "draw", "play", "search"]

SEARCH_VERSION = 1
"""Raised whenever the same settings and seed give other searches."""

LANES = 32
"""Searches side by side: enough to fill the vectors and hide memory latency, few enough for the processor's caches."""

MOVE_STREAM = 2**32
"""Random stream of a game's noisy moves; the opening has stream 0, and vote k has 1 + k."""

MOST_NODES = 2**25
"""Rows that all searches side by side may have: 4 GiB of addresses; about a quarter is used."""


def search(
    positions: Positions, settings: UctSettings, seeds: int | Sequence[int] = 0, lanes: int = LANES
) -> list[SearchResult]:
    """Search positions, or boards int8 (B, 6, 7), side by side.

    `seeds` is one seed, from which each position takes its own stream by its place in the list, or a seed for each
    position, which makes its result independent of the others. Raises ValueError where the game is over, for what is
    no position, and for seeds that do not fit.
    """
    current, mask = bitboards_of(positions)
    streams = arguments.streams("uct", seeds, len(current))
    drawn = [draw(0, [], 1, settings), *(draw(seed, [game], 1, settings) for seed, game in streams)]
    draws = UctDraws(*(np.concatenate(parts) for parts in zip(*drawn, strict=True)))
    return results_of(play(current, mask, draws, settings, lanes))


def draw(seed: int, games: Sequence[int], steps: int, settings: UctSettings) -> UctDraws:
    """The random numbers of these games; vote k of game g depends on (seed, g, k) alone, its moves on (seed, g)."""
    seed, games = arguments.whole("uct", "seed", seed), arguments.wholes("uct", "games", games)
    arguments.whole("uct", "steps", steps, least=1)
    shape = (len(games), settings.votes, steps)
    key = np.empty(shape, np.uint64)
    order = np.zeros((*shape, SLOTS), np.float32)
    gamma = np.empty((*shape, COLUMNS), np.float64)
    move = np.zeros((len(games), steps, COLUMNS + 1))
    for i, game in enumerate(games):
        # A stream for each vote, so that more votes leave the first ones as they were.
        for vote in range(settings.votes):
            random = generator(seed, game, 1 + vote)
            key[i, vote] = random.integers(0, 2**64, steps, np.uint64)
            order[i, vote, :, :COLUMNS] = UNVISITED + random.random((steps, COLUMNS)).argsort(-1)
            gamma[i, vote] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
        if settings.noise_at == "move":
            random = generator(seed, game, MOVE_STREAM)
            move[i, :, :COLUMNS] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
            move[i, :, COLUMNS] = random.random(steps)
    # Compiled code reads all votes of a position together.
    return UctDraws(key.swapaxes(1, 2).copy(), order.swapaxes(1, 2).copy(), gamma.swapaxes(1, 2).copy(), move)


def play(current: Bitboards, mask: Bitboards, draws: UctDraws, settings: UctSettings, lanes: int = LANES) -> GameRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over.

    A game ends by the rules or after the S positions for which there are draws. `lanes` games run side by side, without
    influence on the result. Raises ValueError for positions or draws that do not fit.
    """
    current, mask = arguments.starts("uct", current, mask)
    _check_draws(draws, len(current), settings.votes)
    number, steps, votes = draws.key.shape
    record = new_record(current, mask, steps, votes)
    if settings.engine == "reference":
        textbook.play(record, textbook.uct_searches(draws, settings), votes * settings.simulations)
        return record
    # Searches too large to stand side by side take turns.
    lanes = max(1, min(lanes, number, MOST_NODES // settings.simulations))
    trees = uct_simulation.new_trees(lanes, settings)
    games = uct_games.new_games(min(lanes, number))
    while games.counts[0]:  # between two calls Python can stop the run, as for Ctrl-C
        uct_games.play_games(trees, draws, record, games)
    return record


def _check_draws(draws: UctDraws, number: int, votes: int) -> None:
    """Raise ValueError unless there are draws for so many games, of any number of positions, and votes."""
    steps = draws.key.shape[1] if draws.key.ndim == 3 else 1
    arguments.whole("uct", "steps", steps, least=1)
    shape = (number, steps, votes)
    expected = {
        "key": (shape, np.uint64),
        "order": ((*shape, SLOTS), np.float32),
        "gamma": ((*shape, COLUMNS), np.float64),
        "move": ((number, steps, COLUMNS + 1), np.float64),
    }
    arguments.check_arrays("uct", draws._asdict(), expected)
    for name in ("order", "gamma", "move"):
        if not np.isfinite(getattr(draws, name)).all():
            raise ValueError(f"uct: {name} has numbers that are not finite")

"""UCT with rollouts: K independent searches of a position vote, with noise at the root or in the moves played.

    result, = search([EMPTY], UctSettings(simulations=1000))        # one position
    record = play(current, mask, UctSettings(), seeds=1)           # whole games

The score of a move is mean return + c · w · sqrt(ln N / n), with w = 1 below the root and, at the root,
w = L · ((1 − f) / L + f · Dirichlet(alpha)) for L legal moves and a noise fraction f. A search chooses the move with
most visits, then the higher mean, then the nearest to the centre, then the lower column (with `mcts_solver` a proven
win first, and proven losses last). The label is the column with most votes, then most summed visits, then the nearest
to the centre, then the lower one.

That holds for `noise_at` "label". With "move" every w is 1, so labels and visits come from searches without noise, and
the noise acts on the move played: it is drawn from (1 − f) · [the label] + f · Dirichlet(alpha).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import OutputError
from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, Bitboards, after_moves
from distill.mcts.engine import uct_simulation
from distill.mcts.engine.noise import noisy_move
from distill.mcts.engine.uct_simulation import UNVISITED
from distill.mcts.labeller import Labels, majority
from distill.mcts.results import GameRecord, Positions, SearchResult, as_bitboards, generator, seeds_of_games
from distill.mcts.settings import UctSettings

__all__ = ["UctSettings", "play", "search"]

SEARCH_VERSION = 1
"""Raised whenever the same settings and seed give other searches."""

LANES = 32
"""Most searches side by side: they fill the vectors and hide memory latency, and fit the processor's caches."""

MOVE_STREAM = 2**32
"""Random stream of a game's noisy moves; the opening has stream 0, and vote k has 1 + k."""

MOST_NODES = 2**25
"""Most rows of the searches side by side: they reserve 4 GiB of address space, and about 1 GiB is ever touched."""

LabelGames: TypeAlias = Callable[[NDArray[np.intp], int, Bitboards, Bitboards], Labels]
"""(games, step, current, mask): the positions of B games, the one with this number in each → complete labels."""


def search(positions: Positions, settings: UctSettings, seeds: int | Sequence[int] = 0) -> list[SearchResult]:
    """Search positions, or boards int8 (B, 6, 7), side by side.

    `seeds` is one seed, from which each position takes its own stream by its place in the list, or a seed for each
    position, which makes its result independent of the others. Raises ValueError where the game is over, for what is
    no position, and for seeds that do not fit.
    """
    return play(*as_bitboards(positions), settings, seeds=seeds, steps=1).first_results()


def play(
    current: Bitboards,
    mask: Bitboards,
    settings: UctSettings,
    *,
    seeds: int | Sequence[int] = 0,
    games: Sequence[int] | None = None,
    steps: int = CELLS,
    label: LabelGames | None = None,
) -> GameRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over; all games move in turn.

    The random numbers of game i come from (seeds, games[i]), by default games 0, 1, ..., or with a seed for each from
    (seeds[i], games[i]), by default games 0. A game ends by the rules or after `steps` positions. `label` labels
    instead of the search: a position's labels must depend on its game and its number in the game alone. Raises
    ValueError for arguments that do not fit, and OutputError where a labeller changes its number of votes.
    """
    draws = draw(seeds_of_games(seeds, len(current), games), steps, settings)
    label = label or by_search(draws, settings)
    record: GameRecord | None = None
    live, step = np.arange(len(current)), 0
    while record is None or len(live):
        labels: Any = label(live, step, current, mask)  # complete ones
        votes = labels.votes.shape[1]
        record = record or GameRecord.starting(current, mask, steps, votes)
        if votes != record.votes.shape[2]:
            raise OutputError(f"returned {votes} votes, but {record.votes.shape[2]} before")
        # Play the label, or a move near it.
        move = labels.label.astype(np.intp)
        if settings.move_noise:
            chances = zip(move, draws.move[live, step], mask, strict=True)
            move = np.array([noisy_move(*chance, settings.move_noise) for chance in chances])
        simulations = labels.visits.sum(axis=1)
        row = {"current": current, "mask": mask, "move": move, "simulations": simulations, **vars(labels)}
        for name, values in row.items():
            getattr(record, name)[live, step] = values
        # A game continues unless this move won it, filled the board or was the last one.
        current, mask, won = after_moves(current, mask, move)
        step += 1
        over = won | (mask == np.uint64(FULL_BOARD)) | (step == steps)
        record.length[live[over]], record.result[live[over]] = step, won[over]
        live, current, mask = live[~over], current[~over], mask[~over]
    return record


def by_search(draws: UctDraws, settings: UctSettings) -> LabelGames:
    """Label by the votes of searches, at most LANES of them side by side, without influence on the result."""
    lanes = max(1, min(LANES, MOST_NODES // settings.simulations, len(draws.key)))
    trees = uct_simulation.new_trees(lanes, settings)

    def labels_of(games: NDArray[np.intp], step: int, current: Bitboards, mask: Bitboards) -> Labels:
        votes = np.empty((len(games), settings.votes), np.int8)
        visits, value = np.zeros((len(games), COLUMNS), np.int64), np.zeros(len(games))
        for start in range(0, len(games), lanes):
            part = slice(start, start + lanes)
            for vote in range(settings.votes):
                key, order, gamma = (numbers[games[part], step, vote] for numbers in draws[:3])
                uct_simulation.search(trees, current[part], mask[part], key, order, gamma)
                counts, returns, rank = uct_simulation.root_moves(trees, len(games[part]))
                votes[part, vote] = majority(rank, returns / np.maximum(counts, 1))
                visits[part] += counts
                value[part] += returns.sum(axis=1) / settings.simulations
        label = majority((votes[:, :, None] == np.arange(COLUMNS)).sum(axis=1), visits)
        return Labels(visits=visits, value=value / settings.votes, label=label, votes=votes)

    return labels_of


class UctDraws(NamedTuple):
    """The random numbers of G games, S positions each, K votes a position; rollouts draw their own."""

    key: NDArray[np.uint64]  # (G, S, K) seeds of the rollouts
    order: NDArray[np.float32]  # (G, S, K, 7) scores of unvisited moves
    gamma: NDArray[np.float64]  # (G, S, K, 7) gamma variates: over their sum, Dirichlet noise of the root
    move: NDArray[np.float64]  # (G, S, 8) of the noise of moves: gamma variates, and a uniform number


def draw(sources: Sequence[tuple[int, int]], steps: int, settings: UctSettings) -> UctDraws:
    """The random numbers of games; those of vote k of game g depend on (seed, g, k) alone."""
    shape = (len(sources), steps, settings.votes)
    draws = UctDraws(
        key=np.empty(shape, np.uint64),
        order=np.empty((*shape, COLUMNS), np.float32),
        gamma=np.empty((*shape, COLUMNS), np.float64),
        move=np.zeros((len(sources), steps, COLUMNS + 1)),
    )
    for i, (seed, game) in enumerate(sources):
        # A stream for each vote, so that more votes leave the first ones as they were.
        for vote in range(settings.votes):
            random = generator(seed, game, 1 + vote)
            draws.key[i, :, vote] = random.integers(0, 2**64, steps, np.uint64)
            draws.order[i, :, vote] = UNVISITED + random.random((steps, COLUMNS)).argsort(-1)
            draws.gamma[i, :, vote] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
        if settings.move_noise:
            random = generator(seed, game, MOVE_STREAM)
            draws.move[i, :, :COLUMNS] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
            draws.move[i, :, COLUMNS] = random.random(steps)
    return draws

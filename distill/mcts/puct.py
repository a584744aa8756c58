"""PUCT and Gumbel search: tree search that an evaluator, such as a network, guides; many games side by side.

    result, = search([EMPTY], evaluator, PuctSettings(simulations=100))         # one position
    record = play(current, mask, on_bitboards(evaluator), PuctSettings(), seeds=1)     # whole games

Every lane plays one game and waits at one leaf at a time. The leaves of all lanes are evaluated in one batch; all that
is between two batches runs compiled (`engine/puct_simulation.py`).

Dimensions: B batch, G games, S positions a game, A = 7 columns. Values are in [−1, 1] for the side to move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distill.game import outputs
from distill.game.rules import CELLS, COLUMNS, Bitboards
from distill.mcts.engine import puct_moves, puct_simulation, puct_tree
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.puct_tree import KeptEvaluations, PuctDraws
from distill.mcts.evaluator import BitboardEvaluator, Evaluator, on_bitboards
from distill.mcts.results import Ended, GameRecord, Positions, SearchResult, as_bitboards, generator, seeds_of_games
from distill.mcts.settings import PuctSettings

__all__ = ["PuctSettings", "new_kept", "play", "quiet", "search"]

PUCT_VERSION = 3
"""Raised whenever the same settings, seed and evaluations give other searches."""

LANES = 256
"""Games side by side, and so the largest batch that is evaluated."""

KEPT = 2**18
"""Evaluations that are kept for positions that are reached again, a power of two: 10 MB."""


def quiet(settings: PuctSettings) -> PuctSettings:
    """The same search without chance: no noise, no sampled moves. For matches."""
    return settings.replace(noise_fraction=0.0, sampling_plies=0)


def search(
    positions: Positions, evaluator: Evaluator, settings: PuctSettings, seeds: int | Sequence[int] = 0
) -> list[SearchResult]:
    """Search positions, or boards int8 (B, 6, 7), side by side, evaluated by any `Evaluator`.

    `seeds` is one seed, from which each position takes its own stream by its place in the list, or a seed for each
    position, which makes its result independent of the others. Raises ValueError where the game is over, for what is
    no position, and for seeds that do not fit; and OutputError, which names the evaluator, for logits or values that no
    search can use.
    """
    with outputs.named(getattr(evaluator, "__name__", type(evaluator).__name__)):
        record = play(*as_bitboards(positions), on_bitboards(evaluator), settings, seeds=seeds, steps=1)
    return record.first_results()


def play(
    current: Bitboards,
    mask: Bitboards,
    evaluate: BitboardEvaluator,
    settings: PuctSettings,
    *,
    seeds: int | Sequence[int] = 0,
    games: Sequence[int] | None = None,
    lanes: int = LANES,
    steps: int = CELLS,
    ended: Ended | None = None,
    kept: KeptEvaluations | None = None,
) -> GameRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over.

    The random numbers of game i come from (seeds, games[i]), by default games 0, 1, ..., or with a seed for each from
    (seeds[i], games[i]), by default games 0. A game ends by the rules or after `steps` positions. Games start in their
    order, `lanes` of them run side by side, without influence on the result as long as a position's evaluation does not
    depend on the others in its batch. `kept` has evaluations from earlier calls with this evaluator and gets the new
    ones. Raises ValueError for arguments that do not fit, and OutputError for logits or values that no search can use.
    """
    sources, lanes = seeds_of_games(seeds, len(current), games), min(lanes, len(current))
    record, draws = GameRecord.starting(current, mask, steps), draw(sources[:lanes], steps, settings)
    trees = puct_tree.new_trees(settings, draws, kept or new_kept(), record)
    leaves, games_left = np.zeros(lanes, np.int64), iter(range(lanes, len(current)))
    while (trees.game >= 0).any():
        # Search until every lane waits for an evaluation or its game has ended.
        playing = trees.game.copy()
        waiting = puct_simulation.advance_to_leaves(trees, record, leaves)
        idle = np.flatnonzero(trees.game != playing)
        if ended is not None and len(idle):
            ended(record, playing[idle])
        # Evaluate all leaves as one batch.
        if waiting:
            lanes_waiting = leaves[:waiting]
            leaf_mask = trees.leaf_mask[lanes_waiting]
            evaluations = evaluate(trees.leaf_current[lanes_waiting], leaf_mask)
            puct_simulation.take_evaluations(trees, lanes_waiting, *outputs.evaluation(evaluations, leaf_mask))
        # Idle lanes take the next games, whose numbers are drawn only now: those of 100,000 games take 300 MB.
        for lane, game in zip(idle.tolist(), games_left, strict=False):
            for numbers, drawn in zip(draws, draw([sources[game]], steps, settings), strict=True):
                numbers[lane] = drawn[0]
            puct_moves.set_root(trees, record, lane, game, 0)
    return record


def new_kept() -> KeptEvaluations:
    """Space for evaluations to keep from one call of `play` to the next: 1.8 times the speed in a match."""
    return KeptEvaluations(np.zeros(KEPT, np.uint64), np.zeros(KEPT * SLOTS, np.float32))


def draw(sources: Sequence[tuple[int, int]], steps: int, settings: PuctSettings) -> PuctDraws:
    """The random numbers of games."""
    shape = (len(sources), steps)
    draws = PuctDraws(noise=np.zeros((*shape, COLUMNS)), uniform=np.zeros((*shape, 2)))
    for i, (seed, game) in enumerate(sources):
        random = generator(seed, game, 1)
        if settings.noise_fraction and settings.root == "gumbel":
            draws.noise[i] = random.gumbel(size=(steps, COLUMNS))
        elif settings.noise_fraction:
            draws.noise[i] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
        draws.uniform[i] = random.random((steps, 2))
    return draws

"""PUCT and Gumbel search: tree search that an evaluator, such as a network, guides; many games side by side.

    result, = search([EMPTY], evaluator, PuctSettings(simulations=100))         # one position
    record = play_games(current, mask, PuctSettings(), on_bitboards(evaluator), seeds=1)     # whole games

Every lane plays one game and waits at one leaf at a time. The leaves of all lanes are evaluated in one batch; all that
is between two batches runs compiled (`engine/puct_simulation.py`).

Dimensions: B batch, G games, S positions a game, A = 7 columns. Values are in [−1, 1] for the side to move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.rules import CELLS, COLUMNS, Bitboards
from distill.mcts import arguments
from distill.mcts.engine import puct_moves, puct_simulation, puct_tree
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.gumbel import halving_schedule
from distill.mcts.engine.puct_tree import KeptEvaluations, PuctDraws, PuctParameters, PuctTrees
from distill.mcts.engine.record import Ended, GameRecord, new_record
from distill.mcts.evaluator import BitboardEvaluator, Evaluator, on_bitboards
from distill.mcts.results import Positions, SearchResult, checked_bitboards, gamma_variates, generator, results_of
from distill.mcts.settings import PuctSettings

__all__ = ["PuctSettings", "new_kept", "play_games", "quiet", "search"]

PUCT_VERSION = 3
"""Raised whenever the same settings, seed and evaluations give other searches."""

LANES = 256
"""Games side by side, and so the largest batch that is evaluated."""

KEPT_BITS = 18
"""2^18 evaluations are kept for positions that are reached again: 10 MB."""


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
    return results_of(
        play_games(*checked_bitboards(positions), settings, on_bitboards(evaluator), seeds=seeds, steps=1)
    )


def play_games(
    current: Bitboards,
    mask: Bitboards,
    settings: PuctSettings,
    evaluate: BitboardEvaluator,
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
    current, mask = arguments.starts("puct", current, mask)
    streams = arguments.streams("puct", seeds, len(current), games)
    arguments.whole("puct", "steps", steps, least=1)
    arguments.whole("puct", "lanes", lanes, least=1)
    kept = kept or new_kept()
    _check_kept(kept)
    record = new_record(current, mask, steps)
    lanes = min(lanes, len(current))
    draws = draw(streams[:lanes], steps, settings)
    trees = _trees(settings, draws, kept, record, lanes)
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
        # Idle lanes take the next games, whose numbers are drawn only now: those of 100,000 games take 540 MB.
        for lane, game in zip(idle.tolist(), games_left, strict=False):
            for numbers, drawn in zip(draws, draw([streams[game]], steps, settings), strict=True):
                numbers[lane] = drawn[0]
            puct_moves.set_root(trees, record, lane, game, 0)
    return record


def new_kept() -> KeptEvaluations:
    """Space for evaluations to keep from one call of `play_games` to the next: 1.8 times the speed in a match."""
    return puct_tree.new_evaluations(KEPT_BITS)


def _check_kept(kept: KeptEvaluations) -> None:
    """Raise ValueError unless there is space for 2^k evaluations: compiled code finds each by k bits of a hash."""
    number, values = len(kept.known), len(kept.values)
    if number.bit_count() != 1:
        raise ValueError(f"puct: kept has space for {number} evaluations, not for a power of two")
    if values != SLOTS * number:
        raise ValueError(f"puct: kept has {values} values for {number} evaluations, {SLOTS * number} needed")


def _trees(
    settings: PuctSettings, draws: PuctDraws, kept: KeptEvaluations, record: GameRecord, lanes: int
) -> PuctTrees:
    """Trees with these settings in which the first games of the record begin."""
    schedule = [halving_schedule(settings.simulations, columns) for columns in range(COLUMNS + 1)]
    # The parameters that are settings, then those that compiled code reads in another form.
    values: dict[str, Any] = {name: getattr(settings, name, None) for name in PuctParameters._fields}
    values["gumbel"], values["printed"] = settings.root == "gumbel", settings.rule == "printed"
    values["fpu_reduction"] = -1.0 if settings.fpu_reduction is None else settings.fpu_reduction
    values["win_value"] = np.rint(puct_tree.UNIT * settings.discount ** np.arange(CELLS + 2)).astype(np.int64)
    parameters = PuctParameters(**values | {"schedule": np.array(schedule, np.int32)})
    return puct_tree.new_trees(parameters, exploration_factors(settings), draws, kept, record, lanes)


def exploration_factors(settings: PuctSettings) -> NDArray[np.float64]:
    """What multiplies P / (1 + n), or 1 / sqrt(n) for the printed rule, in a node entered N times; by N."""
    entered = np.maximum(np.arange(settings.simulations + 3, dtype=np.float64), 1.0)
    c = np.full(len(entered), settings.exploration)
    if settings.rule != "constant":
        c += np.log((entered + 19652 + 1) / 19652)
    return c * np.sqrt(np.log(entered) if settings.rule == "printed" else entered)


def draw(streams: Sequence[tuple[int, int]], steps: int, settings: PuctSettings) -> PuctDraws:
    """The random numbers of games."""
    shape = (len(streams), steps)
    draws = PuctDraws(np.zeros((*shape, COLUMNS)), np.zeros((*shape, COLUMNS)), np.zeros((*shape, 2)))
    for i, (seed, game) in enumerate(streams):
        random = generator(seed, game, 1)
        if settings.noise_fraction and settings.root == "gumbel":
            draws.gumbel[i] = random.gumbel(size=(steps, COLUMNS))
        elif settings.noise_fraction:
            draws.gamma[i] = gamma_variates(random, settings.dirichlet_alpha, steps)
        draws.uniform[i] = random.random((steps, 2))
    return draws

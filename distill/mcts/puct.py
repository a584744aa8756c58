"""PUCT and Gumbel search: tree search that an evaluator, such as a network, guides; many games side by side.

    result, = search([EMPTY], evaluator, PuctSettings(simulations=100))         # one position
    record = play(current, mask, PuctSettings(), on_bitboards(evaluator), seeds=1)     # whole games

Every lane plays one game and waits at one leaf at a time. The leaves of all lanes are evaluated in one batch; all that
is between two batches runs compiled (`engine/puct_simulation.py`).

Dimensions: B batch, G games, S positions a game, A = 7 columns. Values are in [−1, 1] for the side to move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.rules import CELLS, COLUMNS
from distill.mcts import arguments, textbook
from distill.mcts.arguments import Bitboards
from distill.mcts.engine import puct_simulation, puct_tree
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.gumbel import halving_schedule
from distill.mcts.engine.puct_tree import KeptEvaluations, PuctParameters, PuctTrees
from distill.mcts.engine.record import Ended, GameRecord, new_record
from distill.mcts.evaluator import BitboardEvaluator, Evaluator, on_bitboards
from distill.mcts.results import Positions, SearchResult, bitboards_of, generator, results_of
from distill.mcts.settings import PuctSettings

__all__ = ["PuctSettings", "new_kept", "play", "quiet", "search"]

PUCT_VERSION = 3
"""Raised whenever the same settings, seed and evaluations give other searches."""

LANES = 256
"""Games side by side, and so the largest batch that is evaluated."""

KEPT_BITS = 18
"""2^18 evaluations are kept for positions that are reached again: 10 MB."""


def quiet(settings: PuctSettings) -> PuctSettings:
    """The same search without chance: no noise, no sampled moves. For matches."""
    return replace(settings, noise_fraction=0.0, sampling_plies=0)


def search(
    positions: Positions, evaluator: Evaluator, settings: PuctSettings, seeds: int | Sequence[int] = 0
) -> list[SearchResult]:
    """Search positions, or boards int8 (B, 6, 7), side by side, evaluated by any `Evaluator`.

    `seeds` is one seed, from which each position takes its own stream by its place in the list, or a seed for each
    position, which makes its result independent of the others. Raises ValueError where the game is over, for what is
    no position, and for seeds that do not fit; and OutputError, which names the evaluator, for logits or values that no
    search can use.
    """
    return results_of(play(*bitboards_of(positions), settings, on_bitboards(evaluator), seeds=seeds, steps=1))


def play(
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
    ones. Raises ValueError for positions, seeds or games that do not fit, and OutputError for logits or values that no
    search can use.
    """
    current, mask = arguments.starts("puct", current, mask)
    number = len(current)
    streams = arguments.streams("puct", seeds, number, games)
    arguments.whole("puct", "steps", steps, least=1)
    kept = kept or new_kept()
    _check_kept(kept)
    record = new_record(current, mask, steps)
    if settings.engine == "reference":
        chances = (draw(stream, steps, settings) for stream in streams)
        textbook.play(record, textbook.puct_searches(chances, settings, evaluate), settings.simulations, ended)
        return record
    trees = _trees(settings, max(1, min(lanes, number)), steps, kept)
    live = np.arange(len(trees.game))
    leaves = np.zeros(len(live), np.int64)
    started = 0
    while len(live):
        # Give idle lanes the next games; lanes without one leave.
        for lane in live[trees.game[live] < 0][: number - started]:
            _start_game(trees, record, int(lane), started, streams[started], settings)
            started += 1
        live = live[trees.game[live] >= 0]
        # Search until every lane waits for an evaluation or its game has ended.
        playing = trees.game[live]
        waiting = puct_simulation.advance_to_leaves(trees, record, live, leaves)
        over = playing[trees.game[live] < 0]
        if ended is not None and len(over):
            ended(record, over)
        # Evaluate all leaves as one batch.
        if waiting:
            lanes_waiting = leaves[:waiting]
            leaf_mask = trees.leaf_mask[lanes_waiting]
            found = evaluate(trees.leaf_current[lanes_waiting], leaf_mask)
            puct_simulation.take_evaluations(trees, lanes_waiting, *outputs.evaluation(found, leaf_mask))
    return record


def new_kept() -> KeptEvaluations:
    """Space for evaluations to keep from one call of `play` to the next: 1.8 times the speed in a match."""
    return puct_tree.new_evaluations(KEPT_BITS)


def _check_kept(kept: KeptEvaluations) -> None:
    """Raise ValueError unless there is space for 2^k evaluations: their places are hashes of k bits."""
    number = len(kept.known)
    if number.bit_count() != 1:
        raise ValueError(f"puct: kept has space for {number} evaluations, not for a power of two")
    expected = {"known": ((number,), np.uint64), "values": ((number * SLOTS,), np.float32)}
    arguments.check_arrays("puct", kept._asdict(), expected)


def _trees(settings: PuctSettings, lanes: int, steps: int, kept: KeptEvaluations) -> PuctTrees:
    """Space for `lanes` games of at most `steps` searched positions each."""
    schedule = [halving_schedule(settings.simulations, columns) for columns in range(COLUMNS + 1)]
    # The parameters that are settings, then those that compiled code reads in another form.
    values: dict[str, Any] = {name: getattr(settings, name, None) for name in PuctParameters._fields}
    values["root"], values["rule"] = puct_tree.ROOTS.index(settings.root), puct_tree.RULES.index(settings.rule)
    values["fpu_reduction"] = -1.0 if settings.fpu_reduction is None else settings.fpu_reduction
    values["win_value"] = np.rint(puct_tree.UNIT * settings.discount ** np.arange(CELLS + 2)).astype(np.int64)
    parameters = PuctParameters(**values | {"schedule": np.array(schedule, np.int32)})
    return puct_tree.new_trees(lanes, steps, parameters, exploration_factors(settings), kept)


def exploration_factors(settings: PuctSettings) -> NDArray[np.float64]:
    """What multiplies P / (1 + n), or 1 / sqrt(n) for the printed rule, in a node entered N times; by N."""
    entered = np.maximum(np.arange(settings.simulations + 3, dtype=np.float64), 1.0)
    c = np.full(len(entered), settings.exploration)
    if settings.rule != "constant":
        c += np.log((entered + 19652 + 1) / 19652)
    return c * np.sqrt(np.log(entered) if settings.rule == "printed" else entered)


def draw(stream: tuple[int, int], steps: int, settings: PuctSettings) -> dict[str, NDArray[np.float64]]:
    """The random numbers of a game: gamma and Gumbel variates (S, 7), uniform numbers (S, 2)."""
    random = generator(*stream, 1)
    gamma = gumbel = np.zeros((steps, COLUMNS))
    if settings.root == "gumbel":
        gumbel = random.gumbel(size=(steps, COLUMNS)) if settings.noise_fraction else gumbel
    elif settings.noise_fraction:
        gamma = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
    return {"gamma": gamma, "gumbel": gumbel, "uniform": random.random((steps, 2))}


def _start_game(
    trees: PuctTrees, record: GameRecord, lane: int, game: int, stream: tuple[int, int], settings: PuctSettings
) -> None:
    """Start a game on an idle lane, with its random numbers."""
    trees.game[lane], trees.step[lane], trees.simulations[lane] = game, 0, 0
    trees.root_expanded[lane] = False
    trees.current[lane], trees.mask[lane] = record.current[game, 0], record.mask[game, 0]
    for name, numbers in draw(stream, record.label.shape[1], settings).items():
        getattr(trees, name)[lane] = numbers

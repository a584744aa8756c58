"""Everything measured of one player: accuracy by set and ply, symmetry, calibration, first move, latency."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.datasets.benchmark import GradedBoards
from distill.evaluation import grading
from distill.evaluation.grading import Calibration, Graded, Mistake
from distill.players.intervals import Estimate
from distill.players.player import Player, checked_choices, seeds_for

LATENCY_BATCHES = (1, 256)

LATENCY_SECONDS = 1.0
"""Time given to measuring each batch size, after one call that is not counted; one measured call at least."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the judge says of one player.

    Attributes:
      sets: set → metric → estimate, see `grading.by_set`.
      plies: ply → metric → estimate, see `grading.by_ply`.
      mirror: see `grading.mirror_consistency`.
      policy_calibration, value_calibration: None where the player gives no policy, or no value, or no board counts.
      mistakes: those that cost most, see `grading.mistakes`.
      empty_move: the column it opens in; empty_policy: 7 probabilities on the empty board, or None.
      latency_ms: batch size → median milliseconds a board; empty where it was not measured.
    """

    name: str
    sets: dict[str, dict[str, Estimate]]
    plies: dict[int, dict[str, Any]]
    mirror: dict[str, float]
    policy_calibration: Calibration | None
    value_calibration: Calibration | None
    mistakes: list[Mistake]
    empty_move: int
    empty_policy: list[float] | None
    latency_ms: dict[int, float]


def judge(player: Player, boards: GradedBoards, graded: Graded, seed: int, with_latency: bool) -> Verdict:
    """Sum up a player's graded answers, and ask it about the empty board."""
    empty = np.zeros(1, np.uint64)
    opening = checked_choices(player, empty, empty, seeds_for(seed, 2, 0))
    return Verdict(
        name=player.name,
        sets=grading.by_set(boards, graded),
        plies=grading.by_ply(boards, graded),
        mirror=grading.mirror_consistency(boards, graded),
        policy_calibration=grading.policy_calibration(boards, graded),
        value_calibration=grading.value_calibration(boards, graded),
        mistakes=grading.mistakes(boards, graded),
        empty_move=int(opening.moves[0]),
        empty_policy=None if opening.policy is None else opening.policy[0].tolist(),
        latency_ms={batch: latency(player, boards, batch) for batch in LATENCY_BATCHES} if with_latency else {},
    )


def latency(player: Player, boards: GradedBoards, batch: int) -> float:
    """Median wall time in milliseconds a board when `batch` boards are asked for at once.

    Boards are drawn anew for every call, so that nothing is answered from memory.
    """
    rng = np.random.default_rng(batch)
    times: list[float] = []
    began = time.perf_counter()
    for call in range(1000):
        rows: NDArray[np.int64] = rng.integers(0, len(boards), batch)
        start = time.perf_counter()
        player.play(boards.current[rows], boards.mask[rows], seeds_for(call, np.arange(batch)))
        if call:
            times.append(time.perf_counter() - start)
        if times and time.perf_counter() - began > LATENCY_SECONDS:
            break
    return 1000 * statistics.median(times) / batch

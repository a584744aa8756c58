"""How a self-play run grades its network: on boards that ship, without search. Logged, never used to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distill.datasets import benchmark
from distill.evaluation import grading
from distill.players.player import Player

SETS = {"midgame": "", "heldout": "heldout_"}
"""The graded sets, and what their metrics' names begin with."""

BLOCKED_SETS = ("block-vertical", "block-horizontal", "block-rising", "block-falling")
"""Sets of boards where only one column keeps the game-theoretic result: the block of a threat."""


def boards(number: int) -> benchmark.GradedBoards:
    """So many boards of each set, of the dev half. Raises DataError where they cannot be read."""
    return grading.sample(benchmark.read(half="dev", sets=(*SETS, *BLOCKED_SETS)), number, 0)


def grade(player: Player, graded: benchmark.GradedBoards) -> dict[str, float]:
    """A player's mean metrics on each of SETS, and `blocked`, the share of forced blocks that it plays."""
    by_set = grading.by_set(graded, grading.grade(player, graded, 0))
    metrics = {
        prefix + metric: interval.mean for name, prefix in SETS.items() for metric, interval in by_set[name].items()
    }
    # One figure for the four directions of a threat.
    return metrics | {"blocked": float(np.mean([by_set[name]["outcome"].mean for name in BLOCKED_SETS]))}


def line(metrics: Mapping[str, Any]) -> str:
    """The grades in words."""
    return "".join(
        f" · {name} {metrics[prefix + 'optimal']:.1%} optimal, {metrics[prefix + 'outcome']:.1%} outcome"
        for name, prefix in SETS.items()
    )

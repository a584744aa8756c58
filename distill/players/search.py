"""The player that searches by UCT with rollouts, as the teacher does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import executors
from distill.common.executors import Workers
from distill.game.rules import Bitboards
from distill.mcts.settings import UctSettings
from distill.players.player import Choices, Seeds

SHARED_SIMULATIONS = 20_000_000
"""Simulations from which a batch is shared between processes: some seconds of one core, against their start."""
Searched: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Labels (B,), visits (B, 7) and values (B,) of searches of B positions."""


@dataclass(frozen=True, kw_only=True)
class SearchPlayer:
    """A UCT search; its policy is the share of root visits.

    Attributes:
      workers: processes that share long searches.
      cluster: workers that share them instead.
    """

    name: str
    settings: UctSettings
    workers: int = 1
    cluster: Workers | None = None

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        return choices(*self.search(current, mask, seeds))

    def search(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Searched:
        """Search each position; bitboards and seeds are uint64 (B,)."""
        simulations = len(mask) * self.settings.simulations * self.settings.votes
        workers = self.cluster or executors.shared(self.workers)
        if simulations < SHARED_SIMULATIONS or workers.window == 1:  # this process computes
            return _search(self.settings, current, mask, seeds)
        size = -(-len(mask) // (4 * workers.number))  # several parts a worker: searches end at different times
        parts = [slice(start, start + size) for start in range(0, len(mask), size)]
        tasks = [(self.settings, current[part], mask[part], seeds[part]) for part in parts]
        label, visits, value = zip(*executors.results(workers, _search, tasks), strict=True)
        return np.concatenate(label), np.concatenate(visits), np.concatenate(value)


def _search(settings: UctSettings, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Searched:
    from distill.mcts.uct import play_games  # which loads Numba

    record = play_games(current, mask, settings, seeds=seeds.tolist(), steps=1)
    return record.label[:, 0], record.visits[:, 0], record.value[:, 0]


def choices(label: NDArray[Any], visits: NDArray[Any], value: NDArray[Any]) -> Choices:
    """The choices of a player that searches: its policy is the share of the visits."""
    policy = visits / visits.sum(1, keepdims=True, dtype=np.float64)
    return Choices(moves=label.astype(np.int64), policy=policy, value=value)

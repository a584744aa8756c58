"""The player that searches by UCT with rollouts, as the teacher does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distill.common import executors
from distill.common.executors import Workers
from distill.game.rules import COLUMNS, Bitboards, Position
from distill.mcts.settings import UctSettings
from distill.players.player import Choices, Seeds

if TYPE_CHECKING:
    from distill.mcts.results import SearchResult  # which loads Numba

SHARED_SIMULATIONS = 20_000_000
"""Simulations from which a batch is shared between processes: some seconds of one core, against their start."""


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
        results = self.search(current, mask, seeds)
        visits = np.array([result.visits for result in results], np.float64).reshape(-1, COLUMNS)
        return Choices(
            moves=np.array([result.label for result in results], np.int64),
            policy=visits / visits.sum(1, keepdims=True),
            value=np.array([result.value for result in results], np.float64),
        )

    def search(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> list[SearchResult]:
        """The result of searching each position; bitboards and seeds are uint64 (B,)."""
        from distill.mcts.uct import search

        positions = [Position(*bits) for bits in zip(current.tolist(), mask.tolist(), strict=True)]
        numbers = [int(seed) for seed in seeds]
        simulations = len(positions) * self.settings.simulations * self.settings.votes
        workers = self.cluster or executors.shared(self.workers)
        if simulations < SHARED_SIMULATIONS or workers.window == 1:  # this process computes
            return search(positions, self.settings, numbers)
        size = -(-len(positions) // (4 * workers.number))  # several parts a worker: searches end at different times
        parts = range(0, len(positions), size)
        tasks = [(positions[p : p + size], self.settings, numbers[p : p + size]) for p in parts]
        return [result for part in executors.results(workers, search, tasks) for result in part]

"""The player that searches by UCT with rollouts, as the teacher does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distill.common.workers import spread
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
      cluster: address of a Dask scheduler whose workers share them instead.
    """

    name: str
    settings: UctSettings
    workers: int = 1
    cluster: str | None = None

    def play(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
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
        there = None
        if self.cluster:
            from distill.games import executors  # which needs pyarrow, as a search does not

            there = executors.on_cluster(self.cluster)
        if (self.workers <= 1 and not there) or simulations < SHARED_SIMULATIONS:
            return search(positions, self.settings, numbers)
        # Split the batch for the worker processes, or for those of the cluster.
        workers = sum(there.check().values()) if there else self.workers
        size = -(-len(positions) // (4 * workers))  # several parts a worker: searches end at different times
        parts = range(0, len(positions), size)
        tasks = [(positions[p : p + size], self.settings, numbers[p : p + size]) for p in parts]
        found = there.spread(search, tasks) if there else spread(search, tasks, workers)
        return [result for part in found for result in part]

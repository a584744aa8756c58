"""The player that searches with random playouts, as the teacher does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distill.common.workers import spread
from distill.game.rules import COLUMNS, Position
from distill.players.player import Boards, Choices

if TYPE_CHECKING:
    from distill.mcts.results import SearchResult
    from distill.mcts.uct import UctSettings

SHARED_SIMULATIONS = 20_000_000
"""Simulations from which a batch is shared between processes: some seconds of one core, against their start."""


@dataclass(frozen=True, kw_only=True)
class SearchPlayer:
    """A UCT search; its policy is the share of root visits."""

    name: str
    settings: UctSettings
    workers: int = 1

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        results = self.search(current, mask, seeds)
        visits = np.array([result.visits for result in results], np.float64).reshape(-1, COLUMNS)
        return Choices(
            moves=np.array([result.label for result in results], np.int64),
            policy=visits / visits.sum(1, keepdims=True),
            value=np.array([result.value for result in results], np.float64),
        )

    def search(self, current: Boards, mask: Boards, seeds: Boards) -> list[SearchResult]:
        """The result of searching each position; bitboards and seeds are uint64 (B,)."""
        from distill.mcts.uct import search

        positions = [Position(*bits) for bits in zip(current.tolist(), mask.tolist(), strict=True)]
        numbers = [int(seed) for seed in seeds]
        simulations = len(positions) * self.settings.simulations * self.settings.votes
        if self.workers <= 1 or simulations < SHARED_SIMULATIONS:
            return search(positions, self.settings, numbers)
        size = -(-len(positions) // (4 * self.workers))  # several parts a worker: searches end at different times
        parts = range(0, len(positions), size)
        tasks = ((positions[p : p + size], self.settings, numbers[p : p + size]) for p in parts)
        return [result for part in spread(search, tasks, self.workers) for result in part]

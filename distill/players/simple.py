"""Players without search or network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distill.game.rules import legal_mask
from distill.game.tactics import wins
from distill.players.player import Bitboards, Choices, Seeds, draw_column


@dataclass(frozen=True, kw_only=True)
class RandomPlayer:
    """Any legal column; with `tactical` it first wins if it can and blocks if it must."""

    name: str = "random"
    tactical: bool = False

    def play(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        allowed = legal_mask(mask)
        if self.tactical:
            for stones in (current ^ mask, current):  # own wins last, so that they overrule blocks
                urgent = wins(stones, mask)
                allowed = np.where(urgent.any(1, keepdims=True), urgent, allowed)
        return Choices(moves=draw_column(allowed, seeds), policy=allowed / allowed.sum(1, keepdims=True))

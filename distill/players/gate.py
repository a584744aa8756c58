"""The gate: whether a candidate replaces the champion.

`meet` plays an arena: games from distinct openings, stored as they end. `decide` uses training games instead, a window
at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from distill.common import write_json
from distill.common.progress import Advance, silent
from distill.players.intervals import share
from distill.players.match import openings, paired, play_games
from distill.players.player import Player, seeds_for

BLOCK = 50
"""Games played side by side and then stored: a killed arena repeats at most so many."""

Block: TypeAlias = tuple[list[float], list[str]]

GateRule = Literal["lower", "mean"]
"""What is compared with the gate: the lower bound of the score's 95 % interval, or the score itself."""


def decide(
    window: Sequence[float], points: Sequence[float], *, games: int, gate: float, rule: GateRule
) -> tuple[list[float], bool]:
    """The window after a batch of games, and whether the candidate is above the gate.

    Windows are disjoint: each is evaluated once, when it holds enough games, and the next starts empty. Evaluated after
    every batch, a sliding window would sooner or later pass a candidate no better than the champion by chance.

    Args:
      window: the candidate's points in the games since the last decision, 1, ½ or 0 each.
      points: the same for the batch, against the same champion.
      games: smallest window; batches are not split.
      gate: "lower" passes with a lower bound above it, "mean" with a score that reaches it.
    """
    whole = [*window, *points]
    if len(whole) < games:
        return whole, False
    score = share(whole)
    return [], score.low > gate if rule == "lower" else score.mean >= gate


@dataclass(frozen=True, kw_only=True)
class Arena:
    """An even number of games, two from each opening of `plies` random stones that the seed gives."""

    games: int
    plies: int
    seed: int

    def block(self, candidate: Player, champion: Player, first: int, advance: Advance = silent) -> Block:
        """At most BLOCK games from `first` on, a multiple of it: results for the candidate, and moves."""
        pairings = paired(0, 1, openings(self.games // 2, self.plies, self.seed % 2**32))[first : first + BLOCK]
        played = play_games([candidate, champion], pairings, int(seeds_for(self.seed, first)[0]), advance)
        sides = np.array([1 if pairing.first == 0 else -1 for pairing in pairings])
        lines = ["".join(str(column + 1) for column in line) for line in played.lines]
        return (played.results * sides).tolist(), lines


def meet(
    arena: Arena,
    play: Callable[[Sequence[int]], Iterable[Block]],
    path: Path,
    at_once: int = 1,
    played: Advance = silent,
) -> dict[str, Any]:
    """Play an arena, or resume the one in `path`.

    Args:
      play: yields the blocks that start with these games, `at_once` of them.
      path: holds the finished games' results for the candidate and their moves; replaced after each block.
      played: called with the number of finished games.

    Returns the candidate's `score`, wins and half the draws, and the number of `distinct_games`.
    """
    results: list[float] = []
    lines: list[str] = []
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        results, lines = stored["results"], stored["lines"]
        played(len(results))
    while len(results) < arena.games:
        for more, moves in play(range(len(results), arena.games, BLOCK)[:at_once]):
            results += more
            lines += moves
            write_json(path, {"results": results, "lines": lines})
            played(len(results))
    return {"score": float((np.array(results) + 1).mean() / 2), "distinct_games": len(set(lines))}

"""The gate: whether a candidate replaces the champion, by an arena or by its training games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from distill.players.intervals import share
from distill.players.match import openings, paired, play_games, results_of
from distill.players.player import Player, seeds_for

BLOCK = 50
"""Arena games played side by side."""

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


def arena_block(
    players: Sequence[Player], games: int, plies: int, seed: int, first: int
) -> tuple[list[float], list[tuple[int, ...]]]:
    """At most BLOCK games of an arena, from number `first` on: the candidate's results, +1, 0 or −1, and the moves.

    Args:
      players: candidate and champion.
      games: of the whole arena, two from each opening of `plies` random stones that the seed gives.
      first: a multiple of BLOCK.
    """
    # All openings, so that the blocks of an arena share none.
    pairings = paired(0, 1, openings(games // 2, plies, seed % 2**32))[first : first + BLOCK]
    played = play_games(players, pairings, int(seeds_for(seed, first)[0]))
    return results_of(played, pairings).tolist(), list(played.lines)

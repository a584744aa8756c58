"""All games of a player that moves first: its moves are fixed, and the opponent's replies are enumerated.

Positions that several move orders reach are merged. Two sets of replies:

    best    every best reply by the exact solver. A line ends where the player's move gives the win away.
    all     every legal reply, by the rules alone (`enumeration.py`).

Dimensions: B positions, A = 7 columns. A layer holds the distinct positions with the same number of stones in which the
player moves, as sorted uint64 keys (`rules.from_keys`). Stones are even there, since the player moves first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common.workers import spread
from distill.evaluation.enumeration import Choose, Keys, after, replies
from distill.game.rules import (
    CELLS,
    COLUMNS,
    EMPTY,
    Position,
    from_keys,
)
from distill.players.names import make
from distill.players.player import Player, checked_choices, seeds_for
from distill.players.solver import score_boards

BATCH = 1024
"""Boards a network evaluates at once; the last batch is padded with the empty board."""

# The player's moves ---------------------------------------------------------------------------------------------------


def chooser(name: str, workers: int) -> Choose:
    """The player of that name as a function of positions, spread over processes; the same for any number of them."""

    def choose(current: Keys, mask: Keys) -> NDArray[np.integer[Any]]:
        starts = range(0, len(current), BATCH)
        tasks = ((name, current[start : start + BATCH], mask[start : start + BATCH]) for start in starts)
        return np.concatenate([*spread(_moves, tasks, workers if len(starts) > 1 else 1)])

    return choose


@functools.cache
def player(name: str) -> Player:
    """The player of that name, one a process: a network takes longer to load than to evaluate a batch."""
    return make(name, fast=True)


def _moves(name: str, current: Keys, mask: Keys) -> NDArray[np.int64]:
    """The moves in at most BATCH positions, always evaluated in batches of this size."""
    padding = (0, BATCH - len(current))
    seeds = seeds_for(0, np.pad(current + mask, padding))
    choices = checked_choices(player(name), np.pad(current, padding), np.pad(mask, padding), seeds)
    return choices.moves[: len(current)]


# Best replies ---------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class BestWalk:
    """The walk against best replies.

    Attributes:
      positions: positions by stones: of the start, then two more each.
      given_away: moves that give the win away, as the shortest line to each: columns 1–7, the player's move last.
      share_won: share of lines won where the opponent draws evenly among its best replies.
    """

    positions: list[int] = field(default_factory=list)
    given_away: list[str] = field(default_factory=list)
    share_won: float = 0.0


def best_replies(
    choose: Choose, workers: int, start: Position = EMPTY, report: Callable[[BestWalk], None] = lambda _: None
) -> BestWalk:
    """Walk every game against every best reply.

    Args:
      start: a position that the player to move can win.
      report: called after every layer.

    Raises UserError where the solver is not installed.
    """
    walk = BestWalk()
    layer, lines = np.array([start.current + start.mask], np.uint64), [""]
    share: NDArray[np.float64] = np.ones(1)
    while len(layer):
        walk.positions.append(len(layer))
        moves = choose(*from_keys(layer))
        current, mask, won = after(layer, moves)
        walk.share_won += float(share[won].sum())
        scores = np.full((len(layer), COLUMNS), -CELLS, np.int8)
        scores[~won] = score_boards(current[~won], mask[~won], workers)
        # The opponent's view: a score of 0 or more means that the win is gone.
        best = scores.max(1)
        given_away = ~won & (best >= 0)
        walk.given_away += [f"{lines[i]}{moves[i] + 1}" for i in np.flatnonzero(given_away)]
        found = replies(layer, moves, (scores == best[:, None]) & ~given_away[:, None])
        # Positions that several lines reach are walked once, with the sum of the lines' shares.
        each = share / np.maximum(np.bincount(found.parent, minlength=len(layer)), 1)
        layer, first, merged = np.unique(found.key, return_index=True, return_inverse=True)
        share = np.bincount(merged.reshape(-1), each[found.parent], len(layer)).astype(np.float64)
        ends = [(found.parent[i], found.reply[i]) for i in first.tolist()]
        lines = [f"{lines[parent]}{moves[parent] + 1}{reply + 1}" for parent, reply in ends]
        report(walk)
    return walk

"""Rollouts: games played to their end by a simple policy, many in lock step.

The heuristic policy is that of “UT Project: Connect 4”, in this order: take an immediate win; block an immediate win of
the opponent; play the centre column with probability 20 %; play a uniformly random legal column. The random policy is
the last rule alone.

All rollouts take the same steps on uint64 words without branches, so the compiler turns eight of them into one vector.
Every few plies the finished ones are dropped. A result depends only on the rollout's position and generator, never on
its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distill.game import rules
from distill.mcts.engine.bits import BOTTOM, FULL, GOLDEN, ONE, ZERO, U, mix, popcount, winning_cells
from distill.mcts.engine.jit import Int64s, UInt64s, inline, int64, jit
from distill.mcts.engine.tree import zeros

CENTRE_COLUMN = U(rules.column_bits(rules.CENTRE))
CENTRE_CHANCE = U(round(0.2 * 2**32))  # of 2^32
LOW_HALF = U(2**32 - 1)

VECTOR = 8  # rollouts in one 512-bit vector; counts are rounded up to it, so no scalar remainder runs
PLIES_BETWEEN_DROPS = 4  # dropping finished rollouts costs about as much as one ply


class Rollouts(NamedTuple):
    """Scratch space of `capacity` rollouts; each array has this length, rounded up to VECTOR."""

    current: UInt64s  # stones of the side to move
    opponent: UInt64s  # stones of the opponent
    current_wins: UInt64s  # cells that complete four for the side to move
    opponent_wins: UInt64s
    random: UInt64s  # xorshift64 state, never 0
    ended: UInt64s  # 1 once the result is known
    result: Int64s  # 1, 0, -1 for the side to move where the rollout began
    origin: Int64s  # index at which this rollout started
    results_in_order: Int64s  # results in the order of the start


def new_rollouts(capacity: int) -> Rollouts:
    """Scratch space for `capacity` rollouts in lock step."""
    padded = -(-capacity // VECTOR) * VECTOR
    return Rollouts(
        **zeros(padded, np.uint64, "current", "opponent", "current_wins", "opponent_wins", "random", "ended"),
        **zeros(padded, np.int64, "result", "origin", "results_in_order"),
    )


@inline
def rollout_seed(key: np.uint64, simulation: int) -> np.uint64:
    """First state of a rollout's generator: a function of the search's key and the simulation's number."""
    return mix(key + U(simulation) * GOLDEN) | ONE


@inline
def _play_ply(rollouts: Rollouts, i: int, sign: int, heuristic: np.uint64) -> None:
    """One ply of rollout i. `sign` is 1 where the first mover is to move; `heuristic` is all ones, or 0."""
    current, opponent, random = rollouts.current[i], rollouts.opponent[i], rollouts.random[i]
    # The next state of xorshift64.
    random ^= random << U(13)
    random ^= random >> U(7)
    random ^= random << U(17)
    rollouts.random[i] = random

    playable = ((current | opponent) + BOTTOM) & FULL
    wins = playable & rollouts.current_wins[i] & heuristic
    blocks = playable & rollouts.opponent_wins[i] & heuristic
    centre = playable & CENTRE_COLUMN & heuristic

    # A random legal cell: the upper half of the state draws its rank, and that many lower bits are cleared.
    chosen = ((random >> U(32)) * popcount(playable)) >> U(32)
    move = playable
    for rank in range(6):
        move = move & (move - ONE) if chosen > U(rank) else move
    move &= ZERO - move  # the lowest bit alone
    # Then what overrules the random cell, the strongest rule last.
    move = centre if (centre != ZERO) & ((random & LOW_HALF) < CENTRE_CHANCE) else move
    block = blocks & (ZERO - blocks)
    move = block if blocks != ZERO else move

    won = (wins | (move & rollouts.current_wins[i])) != ZERO
    lost = blocks != block  # two cells to block: the opponent takes the other one next
    ended = rollouts.ended[i]
    result = sign if won else (-sign if lost else 0)
    rollouts.result[i] = rollouts.result[i] if ended != ZERO else result
    rollouts.ended[i] = ONE if won | lost | (playable == ZERO) else ended

    # The sides change places; only the mover has new winning cells.
    after = current | move
    rollouts.current[i], rollouts.opponent[i] = opponent, after
    rollouts.current_wins[i], rollouts.opponent_wins[i] = rollouts.opponent_wins[i], winning_cells(after)


@jit
def roll_out(rollouts: Rollouts, count: int, heuristic: bool) -> None:
    """Play the first `count` rollouts to their end.

    Reads `current`, `opponent` and `random` of each and writes `results_in_order`: 1, 0 or -1 for the side to move at
    the start. The result of a game that is already over means nothing.
    """
    everywhere = ~ZERO if heuristic else ZERO
    for i in range(count):
        rollouts.current_wins[i] = winning_cells(rollouts.current[i])
        rollouts.opponent_wins[i] = winning_cells(rollouts.opponent[i])
        rollouts.ended[i] = ZERO
        rollouts.result[i] = 0
        rollouts.origin[i] = i
    sign = 1
    while count > 0:
        for _ in range(PLIES_BETWEEN_DROPS):
            for i in range((count + VECTOR - 1) // VECTOR * VECTOR):
                _play_ply(rollouts, i, sign, everywhere)
            sign = -sign
        # Keep the unfinished ones together at the front.
        kept = 0
        for i in range(count):
            rollouts.results_in_order[rollouts.origin[i]] = rollouts.result[i]
            rollouts.current[kept], rollouts.opponent[kept] = rollouts.current[i], rollouts.opponent[i]
            rollouts.current_wins[kept] = rollouts.current_wins[i]
            rollouts.opponent_wins[kept] = rollouts.opponent_wins[i]
            rollouts.random[kept], rollouts.origin[kept] = rollouts.random[i], rollouts.origin[i]
            rollouts.result[kept] = rollouts.result[i]
            ended = rollouts.ended[i]
            rollouts.ended[kept] = ended
            kept += 1 - int64(ended)
        count = kept

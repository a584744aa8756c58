"""Compiled playouts: games played to their end by a simple policy, many in lock step.

The heuristic policy of “UT Project: Connect 4”, in order: take an immediate win; block an
immediate win of the opponent; the centre column with probability 20 %; a uniformly random legal
column. The random policy is its last rule alone.

All lanes take the same steps on uint64 words without branches, so the compiler turns eight of them
into one vector. Every few plies the finished lanes are dropped. A lane's result depends on its own
position and generator alone, never on its neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game import rules
from distill.mcts.compiled import inline, jit, popcount

U = np.uint64  # a uint64 mixed with a Python integer becomes a float in compiled code
ZERO, ONE = U(0), U(1)
BOTTOM, FULL = U(rules.BOTTOM_ROW), U(rules.FULL_BOARD)
CENTRE_COLUMN = U(rules.column_bits(rules.CENTRE))
CENTRE_CHANCE = U(round(0.2 * 2**32))  # of 2^32
LOW_HALF = U(2**32 - 1)
GOLDEN = U(0x9E3779B97F4A7C15)

VECTOR = 8  # lanes of one 512-bit vector; counts are rounded up to it, so no scalar remainder runs
PLIES_BETWEEN_DROPS = 4  # dropping finished lanes costs about as much as one ply


class Lanes(NamedTuple):
    """Scratch space of up to `capacity` playouts, each array (capacity rounded up,)."""

    own: NDArray[np.uint64]  # stones of the side to move
    other: NDArray[np.uint64]  # stones of the opponent
    own_wins: NDArray[np.uint64]  # cells that complete four for the side to move
    other_wins: NDArray[np.uint64]
    random: NDArray[np.uint64]  # xorshift64 state, never 0
    ended: NDArray[np.uint64]  # 1 once the result is known
    result: NDArray[np.int64]  # 1, 0, -1 for the side to move where the playout began
    origin: NDArray[np.int64]  # place of this lane at the start
    results: NDArray[np.int64]  # results by place at the start


def new_lanes(capacity: int) -> Lanes:
    """Scratch space for `capacity` playouts in lock step."""
    padded = -(-capacity // VECTOR) * VECTOR
    scratch: list[Any] = [np.zeros(padded, np.uint64) for _ in range(6)]
    return Lanes(*scratch, *(np.zeros(padded, np.int64) for _ in range(3)))


@inline
def winning_cells(stones: Any) -> Any:
    """Cells that complete a line of four for these stones; may name filled and spare cells too.

    For each direction, a cell completes four if three neighbours on one side are stones, or two on
    one side and one on the other.
    """
    found = (stones << U(1)) & (stones << U(2)) & (stones << U(3))  # vertical: only from below
    for shift in (U(6), U(7), U(8)):
        below, above = stones << shift, stones >> shift
        two_below = below & (stones << (shift + shift))
        two_above = above & (stones >> (shift + shift))
        found |= two_below & ((stones << (shift + shift + shift)) | above)
        found |= two_above & ((stones >> (shift + shift + shift)) | below)
    return found


@inline
def has_four(stones: Any) -> Any:
    """Whether the stones hold four in a line; `rules.has_four` in compiled form."""
    pairs = stones & (stones >> U(1))
    found = pairs & (pairs >> U(2))
    for shift in (U(6), U(7), U(8)):
        pairs = stones & (stones >> shift)
        found |= pairs & (pairs >> (shift + shift))
    return found != ZERO


@jit
def open_columns(mask: Any) -> Any:
    """Bit c set where column c has an empty cell."""
    found = 0
    for column in range(rules.COLUMNS):
        if (mask + BOTTOM) & FULL & (U(63) << U(rules.BITS_PER_COLUMN * column)) != ZERO:
            found |= 1 << column
    return found


@inline
def landing(mask: Any, column: Any) -> Any:
    """The cell that a stone falling into a column takes, none where it is full; `rules.landing` in compiled form."""
    return (mask + (ONE << U(rules.BITS_PER_COLUMN * column))) & (U(63) << U(rules.BITS_PER_COLUMN * column))


@inline
def mix(word: Any) -> Any:
    """The finaliser of SplitMix64: neighbouring words become unrelated ones."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


@inline
def playout_seed(key: Any, simulation: Any) -> Any:
    """Generator state of one playout: a function of the search's key and the simulation's number."""
    return mix(key + U(simulation) * GOLDEN) | ONE


@inline
def _step(lanes: Any, i: Any, sign: Any, heuristic: Any) -> None:
    """One ply of lane i. `sign` is 1 where the first mover is to move; `heuristic` all ones, or 0."""
    own, other, random = lanes.own[i], lanes.other[i], lanes.random[i]
    random ^= random << U(13)
    random ^= random >> U(7)
    random ^= random << U(17)
    lanes.random[i] = random

    playable = ((own | other) + BOTTOM) & FULL
    wins = playable & lanes.own_wins[i] & heuristic
    blocks = playable & lanes.other_wins[i] & heuristic
    centre = playable & CENTRE_COLUMN & heuristic

    chosen = ((random >> U(32)) * popcount(playable)) >> U(32)
    move = playable
    for rank in range(6):
        move = move & (move - ONE) if chosen > U(rank) else move
    move &= ZERO - move
    move = centre if (centre != ZERO) & ((random & LOW_HALF) < CENTRE_CHANCE) else move
    block = blocks & (ZERO - blocks)
    move = block if blocks != ZERO else move

    won = (wins | (move & lanes.own_wins[i])) != ZERO
    lost = blocks != block  # two cells to block: the opponent takes the other one next
    ended = lanes.ended[i]
    result = sign if won else (-sign if lost else 0)
    lanes.result[i] = lanes.result[i] if ended != ZERO else result
    lanes.ended[i] = ONE if won | lost | (playable == ZERO) else ended

    after = own | move
    lanes.own[i], lanes.other[i] = other, after
    lanes.own_wins[i], lanes.other_wins[i] = lanes.other_wins[i], winning_cells(after)


@jit
def playouts(lanes: Lanes, count: int, heuristic: bool) -> None:
    """Play the first `count` lanes to their end.

    Reads `own`, `other` and `random` of each lane and writes `results`: 1, 0 or -1 for the side to
    move at the start. Positions must not be over; for those that are, `results` means nothing.
    """
    rules_apply = ~ZERO if heuristic else ZERO
    for i in range(count):
        lanes.own_wins[i] = winning_cells(lanes.own[i])
        lanes.other_wins[i] = winning_cells(lanes.other[i])
        lanes.ended[i] = ZERO
        lanes.result[i] = 0
        lanes.origin[i] = i
    sign = 1
    while count > 0:
        for _ in range(PLIES_BETWEEN_DROPS):
            for i in range((count + VECTOR - 1) // VECTOR * VECTOR):
                _step(lanes, i, sign, rules_apply)
            sign = -sign
        kept = 0
        for i in range(count):
            lanes.results[lanes.origin[i]] = lanes.result[i]
            lanes.own[kept], lanes.other[kept] = lanes.own[i], lanes.other[i]
            lanes.own_wins[kept], lanes.other_wins[kept] = lanes.own_wins[i], lanes.other_wins[i]
            lanes.random[kept], lanes.origin[kept] = lanes.random[i], lanes.origin[i]
            lanes.result[kept] = lanes.result[i]
            ended = lanes.ended[i]
            lanes.ended[kept] = ended
            kept += 1 - np.int64(ended)
        count = kept

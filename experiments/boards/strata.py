"""The sets of the benchmark: which boards belong to each, told from the board and from its exact scores.

In the names of lines below the side to move is X, and the other side is the opponent. The outcome is win, draw or loss
under perfect play; a board is critical where legal moves differ in it.

Dimensions: B boards, A = 7 columns. `scores` are int8 (B, A) with FULL_COLUMN, below every real score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.datasets.grades import best_scores, is_critical
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import (
    BITS_PER_COLUMN,
    BOTTOM_ROW,
    COLUMNS,
    FULL_BOARD,
    Bitboards,
    Position,
    column_bits,
    has_four,
    legal_columns,
    next_position,
)
from distill.game.tactics import DIRECTIONS, Columns, traps, wins, wins_in
from experiments.boards.plies import moves_to_end

Scores: TypeAlias = NDArray[np.int8]
Rows: TypeAlias = NDArray[np.bool_]
Seen: TypeAlias = Callable[[Bitboards, Bitboards], Rows]
Graded: TypeAlias = Callable[[Bitboards, Bitboards, Scores], Rows]


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """One set, or a part of one.

    Attributes:
      name: of the set.
      size: number of boards wanted.
      seen: (current, mask) → bool (B,), whether boards may belong, judging by their stones alone.
      graded: (current, mask, scores) → bool (B,), whether boards that pass `seen` do belong.
    """

    name: str
    size: int
    seen: Seen
    graded: Graded = lambda current, mask, scores: np.ones(len(mask), np.bool_)


# The sets -------------------------------------------------------------------------------------------------------------


def all_strata() -> list[Stratum]:
    """The sets of `benchmark.py`, in the order in which they choose their boards; a set may come in parts."""
    return [*_midgame("midgame", 10_000), *_by_stage(), *_tactical()]


def heldout_strata() -> list[Stratum]:
    """The sets of `heldout.py`: one like `midgame`, and boards of 8 to 41 stones as often as play has them."""
    return [*_midgame("heldout", 5_000), Stratum(name="heldout-all", size=5_000, seen=_of_plies(8, 41))]


def _midgame(name: str, size: int) -> list[Stratum]:
    """Boards of 10 to 16 stones, as many of each."""
    return [
        Stratum(name=name, size=size // 7 + (ply - 10 < size % 7), seen=_of_plies(ply, ply)) for ply in range(10, 17)
    ]


def _by_stage() -> list[Stratum]:
    """The stages begin (≤ 14 stones), middle (15–28), end (> 28) by plies left: easy (< 14), medium (14–28), hard."""
    sets = {
        "begin-easy": ((1, 14), (1, 13)),
        "begin-medium": ((1, 14), (14, 28)),
        "begin-hard": ((1, 14), (29, 42)),
        "middle-easy": ((15, 28), (1, 13)),
        "middle-medium": ((15, 28), (14, 28)),
        "end-easy": ((29, 41), (1, 13)),
    }
    return [
        Stratum(name=name, size=1000, seen=_of_plies(*stones), graded=_ends_in(*left))
        for name, (stones, left) in sets.items()
    ]


def _of_plies(first: int, last: int) -> Seen:
    return lambda current, mask: (first <= np.bitwise_count(mask)) & (np.bitwise_count(mask) <= last)


def _ends_in(soonest: int, latest: int) -> Graded:
    def graded(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
        left = moves_to_end(best_scores(scores), np.bitwise_count(mask))
        return np.asarray((soonest <= left) & (left <= latest))

    return graded


def _tactical() -> list[Stratum]:
    sets: list[tuple[str, Seen, Graded | None]] = [
        ("zugzwang", _late_and_quiet, _would_rather_pass),
        ("open-two", _faces_open_two, _only_the_open_two_matters),
        ("horizontal-three", _faces_horizontal_three, _is_not_lost),
        ("trap-set", lambda own, mask: _quiet(own, mask) & traps(own, mask).any(1), _wins_by_one_trap),
        ("trap-avoid", lambda own, mask: _quiet(own, mask) & traps(own ^ mask, mask).any(1), _may_be_trapped),
    ]
    for direction in DIRECTIONS:
        sets.append((f"win-{direction}", _win_in(direction), None))
        sets.append((f"block-{direction}", _block_in(direction), _is_not_lost))
    return [
        Stratum(name=name, size=500, seen=seen, **({"graded": graded} if graded else {})) for name, seen, graded in sets
    ]


def _quiet(current: Bitboards, mask: Bitboards) -> Rows:
    """Neither side can win with its next stone."""
    return np.asarray(~(wins(current, mask) | wins(current ^ mask, mask)).any(1))


def _win_in(direction: str) -> Seen:
    """One column wins at once, by a line of this direction."""
    return lambda current, mask: wins_only_in(current, mask, direction)


def _block_in(direction: str) -> Seen:
    """No win, and one column where the opponent would win, by a line of this direction."""
    return lambda current, mask: ~wins(current, mask).any(1) & wins_only_in(current ^ mask, mask, direction)


def _is_not_lost(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
    """With a threat on the board, the block holds at least a draw, so it alone keeps the outcome."""
    return best_scores(scores) >= 0


def _faces_horizontal_three(current: Bitboards, mask: Bitboards) -> Rows:
    """The opponent has three in a row, _XXX or XXX_, whose one playable end is its only threat."""
    opponent = current ^ mask
    ends = horizontal(opponent, mask, "_XXX") | horizontal(opponent, mask, "XXX_") << np.uint64(3 * BITS_PER_COLUMN)
    return _block_in("horizontal")(current, mask) & columns_of(ends).any(1)


def _open_two(current: Bitboards, mask: Bitboards) -> Columns:
    """bool (B, A), the empty cells of the opponent's _XX__ and __XX_, all of them playable, so that a third is open."""
    cells = np.zeros_like(mask)
    for pattern in ("_XX__", "__XX_"):
        start = horizontal(current ^ mask, mask, pattern)
        for step in (index for index, letter in enumerate(pattern) if letter == "_"):
            cells = cells | start << np.uint64(BITS_PER_COLUMN * step)
    return columns_of(cells)


def _faces_open_two(current: Bitboards, mask: Bitboards) -> Rows:
    return _quiet(current, mask) & _open_two(current, mask).any(1)


def _only_the_open_two_matters(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
    """Not lost, and every move away from the open two loses."""
    away = (scores != FULL_COLUMN) & ~_open_two(current, mask)
    return (best_scores(scores) >= 0) & away.any(1) & ~(away & (scores >= 0)).any(1)


def _wins_by_one_trap(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
    """One move, and no other, wins with the second stone from now; some move does not win."""
    best = best_scores(scores)
    third = moves_to_end(best, np.bitwise_count(mask)) == 3
    return (best > 0) & third & ((scores == best[:, None]).sum(1) == 1) & is_critical(scores)


def _may_be_trapped(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
    """Not lost, and at least half of the moves lose to the opponent's second stone from now."""
    legal = scores != FULL_COLUMN
    trapped = legal & (scores < 0) & (moves_to_end(scores, np.bitwise_count(mask)[:, None]) == 4)
    return (best_scores(scores) >= 0) & (2 * trapped.sum(1) >= legal.sum(1))


def _late_and_quiet(current: Bitboards, mask: Bitboards) -> Rows:
    return (np.bitwise_count(mask) > 28) & _quiet(current, mask)


def _would_rather_pass(current: Bitboards, mask: Bitboards, scores: Scores) -> Rows:
    """Passing would reach a better outcome than any move: a draw to be held in zugzwang."""
    belongs: Rows = np.asarray(is_critical(scores) & (best_scores(scores) <= 0))
    for index in np.flatnonzero(belongs):
        position = Position(int(current[index] ^ mask[index]), int(mask[index]))
        belongs[index] = -outcome(position, {}) > np.sign(best_scores(scores)[index])
    return belongs


def outcome(position: Position, known: dict[tuple[int, int], int]) -> int:
    """1, 0 or −1 for the side to move, by exhaustive search of a late position; `known` caches results.

    The solver package refuses stone counts that alternating moves cannot reach, as after a passed turn.
    """
    key = (position.current, position.mask)
    if key not in known:
        known[key] = 0 if position.mask == FULL_BOARD else -1
        for column in legal_columns(position):
            after = next_position(position, column)
            result = 1 if has_four(after.opponent) else -outcome(after, known)
            known[key] = max(known[key], result)
            if result == 1:
                break
    return known[key]


# Patterns on the board ------------------------------------------------------------------------------------------------

_COLUMN_BITS = np.array([column_bits(column) for column in range(COLUMNS)], np.uint64)


def playable(mask: Bitboards) -> Bitboards:
    """uint64 (B,), the cells a stone may fall on."""
    return (mask + np.uint64(BOTTOM_ROW)) & np.uint64(FULL_BOARD)


def horizontal(stones: Bitboards, mask: Bitboards, pattern: str) -> Bitboards:
    """uint64 (B,), the leftmost cells from which a row reads as the pattern.

    In a pattern X is one of `stones`, `_` an empty cell that may be played now.
    """
    cells = {"X": stones, "_": playable(mask)}
    found = np.full_like(mask, np.iinfo(np.uint64).max)
    for step, letter in enumerate(pattern):
        found = found & (cells[letter] >> np.uint64(BITS_PER_COLUMN * step))
    return found


def columns_of(bits: Bitboards) -> Columns:
    """bool (B, 7), True where a column holds any of the bits."""
    columns: Columns = (bits[:, None] & _COLUMN_BITS) != 0
    return columns


def wins_only_in(stones: Bitboards, mask: Bitboards, direction: str) -> NDArray[np.bool_]:
    """bool (B,), True where exactly one column wins, and by lines of this direction alone."""
    here = wins_in(stones, mask, direction)
    elsewhere = [wins_in(stones, mask, other).any(1) for other in DIRECTIONS if other != direction]
    only: NDArray[np.bool_] = (here.sum(1) == 1) & ~np.logical_or.reduce(elsewhere)
    return only

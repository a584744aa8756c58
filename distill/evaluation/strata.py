"""The sets of the benchmark: which boards belong to each, told from the board and from its exact scores.

The side to move is X in the names of lines below, the other side is "the opponent". Class means win, draw
or loss under perfect play; a board is decisive where legal moves differ in class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distill.datasets.benchmark import FULL_COLUMN
from distill.game.rules import BITS_PER_COLUMN, FULL_BOARD, Position, has_four, legal_columns, play
from distill.game.tactics import DIRECTIONS, Boards, Columns, columns_of, horizontal, traps, wins, wins_only_in
from distill.players.solver import moves_to_end

Scores = NDArray[np.int8]
Rows = NDArray[np.bool_]

MIRROR_SET = {"win-rising": "win-falling", "block-rising": "block-falling"}
MIRROR_SET |= {mirrored: name for name, mirrored in MIRROR_SET.items()}
"""The set a board's mirror belongs to, where it is another one: a rising line becomes a falling one."""


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """One set, or a part of one.

    Attributes:
      name: of the set.
      size: boards wanted.
      seen: (current, mask) → bool (B,), whether boards may belong, as far as can be seen on them.
      graded: (current, mask, scores) → bool (B,), whether boards that `seen` lets through do belong.
    """

    name: str
    size: int
    seen: Callable[[Boards, Boards], Rows]
    graded: Callable[[Boards, Boards, Scores], Rows]


def all_strata() -> list[Stratum]:
    """Every set, in the order in which they choose their boards; a set may come in parts."""
    return [*_midgame(), *_by_stage(), *_tactical()]


def heldout_strata() -> list[Stratum]:
    """The sets of `evaluation/heldout.py`: like `midgame`, and boards of 8 to 41 stones as play has them."""
    return [*_midgame("heldout", 5_000), Stratum(name="heldout-all", size=5_000, seen=_of_plies(8, 41), graded=_any)]


# What the scores say --------------------------------------------------------------------------------------------------


def best_scores(scores: Scores) -> NDArray[np.int64]:
    """int64 (B,), the score of perfect play; int8 (B, 7) `scores` have FULL_COLUMN below every real score."""
    best: NDArray[np.int64] = scores.max(1).astype(np.int64)
    return best


def keeps_class(scores: Scores) -> Columns:
    """bool (B, 7), True for moves whose class is the best there is."""
    return (scores != FULL_COLUMN) & (np.sign(scores) == np.sign(best_scores(scores))[:, None])


def is_critical(scores: Scores) -> Rows:
    """bool (B,), True where legal moves differ in class."""
    critical: Rows = ((scores != FULL_COLUMN) & ~keeps_class(scores)).any(1)
    return critical


# The sets -------------------------------------------------------------------------------------------------------------


def _midgame(name: str = "midgame", size: int = 10_000) -> list[Stratum]:
    """Boards of 10 to 16 stones, as many of each."""
    return [
        Stratum(name=name, size=size // 7 + (ply - 10 < size % 7), seen=_of_plies(ply, ply), graded=_any)
        for ply in range(10, 17)
    ]


def _by_stage() -> list[Stratum]:
    """The stages begin (≤ 14 stones), middle (15–28), end (> 28) by plies left: easy (< 14), medium (14–28), hard."""
    return [
        Stratum(name=name, size=1000, seen=_of_plies(*stage), graded=_ends_in(*left))
        for name, stage, left in (
            ("begin-easy", (1, 14), (1, 13)),
            ("begin-medium", (1, 14), (14, 28)),
            ("begin-hard", (1, 14), (29, 42)),
            ("middle-easy", (15, 28), (1, 13)),
            ("middle-medium", (15, 28), (14, 28)),
            ("end-easy", (29, 41), (1, 13)),
        )
    ]


def _tactical() -> list[Stratum]:
    sets: list[tuple[str, Callable[[Boards, Boards], Rows], Callable[[Boards, Boards, Scores], Rows]]] = [
        ("zugzwang", _late_and_quiet, _would_rather_pass),
        ("open-two", _faces_open_two, _only_the_open_two_matters),
        ("horizontal-three", _faces_horizontal_three, _is_not_lost),
        ("trap-set", lambda current, mask: _quiet(current, mask) & traps(current, mask).any(1), _wins_by_one_trap),
        (
            "trap-avoid",
            lambda current, mask: _quiet(current, mask) & traps(current ^ mask, mask).any(1),
            _may_be_trapped,
        ),
    ]
    for direction in DIRECTIONS:
        sets.append((f"win-{direction}", _win_in(direction), _any))
        sets.append((f"block-{direction}", _block_in(direction), _is_not_lost))
    return [Stratum(name=name, size=500, seen=seen, graded=graded) for name, seen, graded in sets]


def _any(current: Boards, mask: Boards, scores: Scores) -> Rows:
    return np.ones(len(mask), np.bool_)


def _of_plies(first: int, last: int) -> Callable[[Boards, Boards], Rows]:
    def seen(current: Boards, mask: Boards) -> Rows:
        ply = np.bitwise_count(mask)
        return (first <= ply) & (ply <= last)

    return seen


def _ends_in(soonest: int, latest: int) -> Callable[[Boards, Boards, Scores], Rows]:
    def graded(current: Boards, mask: Boards, scores: Scores) -> Rows:
        left = moves_to_end(best_scores(scores), np.bitwise_count(mask))
        return np.asarray((soonest <= left) & (left <= latest))

    return graded


def _quiet(current: Boards, mask: Boards) -> Rows:
    """Neither side could win with a stone now."""
    return np.asarray(~(wins(current, mask) | wins(current ^ mask, mask)).any(1))


def _win_in(direction: str) -> Callable[[Boards, Boards], Rows]:
    """One column wins at once, by a line of this direction."""
    return lambda current, mask: wins_only_in(current, mask, direction)


def _block_in(direction: str) -> Callable[[Boards, Boards], Rows]:
    """No win, and one column where the opponent would win, by a line of this direction."""
    return lambda current, mask: ~wins(current, mask).any(1) & wins_only_in(current ^ mask, mask, direction)


def _is_not_lost(current: Boards, mask: Boards, scores: Scores) -> Rows:
    """With a threat on the board: the block holds at least a draw, so it is the only move that keeps the class."""
    return best_scores(scores) >= 0


def _faces_horizontal_three(current: Boards, mask: Boards) -> Rows:
    """The opponent has three in a row, _XXX or XXX_, whose one playable end is its only threat."""
    opponent = current ^ mask
    ends = horizontal(opponent, mask, "_XXX") | horizontal(opponent, mask, "XXX_") << np.uint64(3 * BITS_PER_COLUMN)
    return _block_in("horizontal")(current, mask) & columns_of(ends).any(1)


def _open_two(current: Boards, mask: Boards) -> Columns:
    """bool (B, 7), the empty cells of the opponent's _XX__ and __XX_, all of them playable, so that a third is open."""
    cells = np.zeros_like(mask)
    for pattern in ("_XX__", "__XX_"):
        start = horizontal(current ^ mask, mask, pattern)
        for step in (index for index, letter in enumerate(pattern) if letter == "_"):
            cells = cells | start << np.uint64(BITS_PER_COLUMN * step)
    return columns_of(cells)


def _faces_open_two(current: Boards, mask: Boards) -> Rows:
    return _quiet(current, mask) & _open_two(current, mask).any(1)


def _only_the_open_two_matters(current: Boards, mask: Boards, scores: Scores) -> Rows:
    """Not lost, and every move away from the open two loses."""
    away = (scores != FULL_COLUMN) & ~_open_two(current, mask)
    elsewhere_lost = ~(away & (scores >= 0)).any(1)
    return (best_scores(scores) >= 0) & away.any(1) & elsewhere_lost


def _wins_by_one_trap(current: Boards, mask: Boards, scores: Scores) -> Rows:
    """One move, and no other, wins with the second stone from now; some move does not win."""
    best = best_scores(scores)
    third = moves_to_end(best, np.bitwise_count(mask)) == 3
    return (best > 0) & third & ((scores == best[:, None]).sum(1) == 1) & is_critical(scores)


def _may_be_trapped(current: Boards, mask: Boards, scores: Scores) -> Rows:
    """Not lost, and at least half of the moves lose to the opponent's second stone from now."""
    ply = np.bitwise_count(mask)[:, None]
    legal = scores != FULL_COLUMN
    trapped = legal & (scores < 0) & (moves_to_end(scores, ply) == 4)
    return (best_scores(scores) >= 0) & (2 * trapped.sum(1) >= legal.sum(1))


def _late_and_quiet(current: Boards, mask: Boards) -> Rows:
    return (np.bitwise_count(mask) > 28) & _quiet(current, mask)


def _would_rather_pass(current: Boards, mask: Boards, scores: Scores) -> Rows:
    """Passing would reach a better class than any move, and moves differ in class: a draw to be held in zugzwang."""
    belongs: Rows = np.asarray(is_critical(scores) & (best_scores(scores) <= 0))
    for index in np.flatnonzero(belongs):
        position = Position(int(current[index] ^ mask[index]), int(mask[index]))
        belongs[index] = -outcome(position, {}) > np.sign(best_scores(scores)[index])
    return belongs


def outcome(position: Position, known: dict[tuple[int, int], int]) -> int:
    """1, 0 or −1 for the side to move, by plain search of a late position; `known` remembers.

    The solver package refuses stone counts that alternating moves cannot reach, and a passed turn gives such counts.
    """
    key = (position.current, position.mask)
    if key not in known:
        known[key] = 0 if position.mask == FULL_BOARD else -1
        for column in legal_columns(position):
            after = play(position, column)
            result = 1 if has_four(after.opponent) else -outcome(after, known)
            known[key] = max(known[key], result)
            if result == 1:
                break
    return known[key]

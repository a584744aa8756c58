"""What is measured of a player: openings, horizontal threes by place, traps, strength by stones, moves in games.

Dimensions: B boards, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import grade_moves, is_critical, keeps_outcome
from distill.game import tactics
from distill.game.encoding import bitboards_of
from distill.game.rules import (
    BITS_PER_COLUMN,
    CELLS,
    CENTRE,
    COLUMNS,
    Bitboards,
    after_moves,
    from_moves,
    landing,
    legal_mask,
    mirror_bits,
)  # fmt: skip
from distill.players.intervals import Estimate, difference, share
from distill.players.match import Pairing, play_games
from distill.players.names import make
from distill.players.player import Player, checked_choices, seeds_for

Array: TypeAlias = NDArray[Any]

OPPONENT = "punisher"
"""Wins if it can, blocks if it must, and otherwise plays at random, so that no two games are alike."""
PLACES = ("left", "centre", "right")
"""Of a horizontal line of four: columns 1 to 4; 2 to 5 or 3 to 6; 4 to 7."""
DIRECTIONS = ("vertical", "falling", "rising")
BANDS = ((8, 12), (13, 18), (19, 24), (25, 30), (31, 41))
"""First and last number of stones."""
DRAWS = 400
"""Moves drawn on a board for the policy of a player that states none."""
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often a player does something, and how often a legal column drawn at random would."""

    rate: Estimate
    chance: float


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What is measured of a player.

    Attributes:
      openings: the policy (A,) by the moves before it, such as "4" for a first stone in column 4.
      threes: by "win" or "block" and place, horizontal threes completed or blocked; by "win" or "block" and another
        direction, the same of the other lines.
      left_less_right: completed and blocked threes, each on the left less its mirror image on the right.
      traps: boards on which the player sets, or avoids, a double threat.
      stones: by band of stones, moves that keep the outcome where legal moves differ in it.
      games: rates of its moves in games.
    """

    openings: dict[str, list[float]]
    threes: dict[str, Rate]
    left_less_right: Estimate
    traps: dict[str, Rate]
    stones: dict[str, Rate]
    games: dict[str, Rate] = field(default_factory=dict)


def habits_of(player: Player, games: int) -> Habits:
    """Measure a player. Raises DataError where the graded boards are missing."""
    boards = benchmark.read()
    by_set = {name: boards[boards.set == name] for name in boards.sets}
    threes, left_less_right = threes_of(player, by_set)
    return Habits(
        openings=openings_of(player),
        threes=threes,
        left_less_right=left_less_right,
        traps={name: outcome_rate(player, by_set[name]) for name in ("trap-set", "trap-avoid")},
        stones=stones_of(player, by_set["heldout-all"]),
        games=games_of(player, games),
    )


def moves_on(player: Player, current: Bitboards, mask: Bitboards, draw: int = 0) -> NDArray[np.int64]:
    """int64 (B,), the player's moves."""
    return checked_choices(player, current, mask, seeds_for(SEED, np.arange(len(mask)), draw)).moves


def policy_on(player: Player, line: str) -> list[float]:
    """The player's policy after these moves, or how often it plays each column where it states no policy."""
    current, mask = bitboards_of([from_moves(line)])
    policy = checked_choices(player, current, mask, seeds_for(SEED, np.zeros(1, np.int64))).policy
    if policy is None:
        moves = moves_on(player, np.repeat(current, DRAWS), np.repeat(mask, DRAWS))
        policy = np.bincount(moves, minlength=COLUMNS)[None] / DRAWS
    return [float(share) for share in policy[0]]


def openings_of(player: Player) -> dict[str, list[float]]:
    """Its policy on the empty board, after each first stone, and after its first move and each reply."""
    openings = {line: policy_on(player, line) for line in ("", *"1234567")}
    first = str(int(np.argmax(openings[""])) + 1)
    return openings | {line: policy_on(player, line) for line in (first + reply for reply in "1234567")}


def both_sides_of(boards: GradedBoards) -> tuple[Bitboards, Bitboards]:
    """The stones to move and all stones, of B boards and then of their mirror images."""
    current, mask = boards.current, boards.mask
    return np.concatenate([current, mirror_bits(current)]), np.concatenate([mask, mirror_bits(mask)])


def chance_of(columns: Array, mask: Bitboards) -> Array:
    """float (B,): the chance that a legal column drawn at random is one of these, bool (B, A)."""
    legal = legal_mask(mask)
    chances: Array = (columns & legal).sum(1) / legal.sum(1)
    return chances


def threes_of(player: Player, boards: Mapping[str, GradedBoards]) -> tuple[dict[str, Rate], Estimate]:
    """Lines of four completed and blocked: horizontal ones by place, the others by direction; and left less right."""
    rates, lefts, rights = dict[str, Rate](), list[Array](), list[Array]()
    for task in ("win", "block"):
        for direction in ("horizontal", *DIRECTIONS):
            current, mask = both_sides_of(boards[f"{task}-{direction}"])
            stones = current if task == "win" else current ^ mask
            finishing = tactics.wins(stones, mask)
            done = finishing[np.arange(len(mask)), moves_on(player, current, mask)].astype(float)
            chance = chance_of(finishing, mask)
            if direction != "horizontal":
                rate = share(done.reshape(2, -1).mean(0))
                rates[f"{task} {direction}"] = Rate(rate=rate, chance=float(chance.mean()))
                continue
            starts = line_starts(stones, mask)
            starts &= starts.sum(1, keepdims=True) == 1
            places = dict(zip(PLACES, (starts[:, 0], starts[:, 1] | starts[:, 2], starts[:, 3]), strict=True))
            for place, chosen in places.items():
                # A line in the centre is there in both orientations, one of the left or the right in one of them.
                is_twice = place == "centre"
                rate = share(done[chosen].reshape(1 + is_twice, -1).mean(0), trials=1 + is_twice)
                rates[f"{task} {place}"] = Rate(rate=rate, chance=float(chance[chosen].mean()))
            # The second half holds the mirror images of the first, in the same order.
            lefts.append(done[places["left"]])
            rights.append(np.roll(done, len(done) // 2)[places["left"]])
    return rates, difference(np.concatenate(lefts), np.concatenate(rights))


def line_starts(stones: Bitboards, mask: Bitboards) -> NDArray[np.bool_]:
    """bool (B, 4): whether a stone can complete a horizontal line that begins in column 0, 1, 2 or 3."""
    cells = landing(mask)
    starts = np.zeros((len(mask), 4), np.bool_)
    for start in range(4):
        for row in range(BITS_PER_COLUMN - 1):
            line = np.uint64(sum(1 << (BITS_PER_COLUMN * column + row) for column in range(start, start + 4)))
            complete = ((stones[:, None] | cells) & line) == line
            starts[:, start] |= (complete & ((cells & line) != 0)).any(1)
    return starts


def outcome_rate(player: Player, boards: GradedBoards) -> Rate:
    """How often its move keeps the outcome of perfect play, on boards and their mirror images."""
    current, mask = both_sides_of(boards)
    moves = moves_on(player, current, mask).reshape(2, -1)
    moves[1] = COLUMNS - 1 - moves[1]
    chance = keeps_outcome(boards.scores).sum(1) / legal_mask(boards.mask).sum(1)
    return Rate(rate=share(grade_moves(boards.scores, moves)[1].mean(0)), chance=float(chance.mean()))


def stones_of(player: Player, boards: GradedBoards) -> dict[str, Rate]:
    """By stones on the board, `outcome_rate` on boards where legal moves differ in the outcome."""
    chosen = is_critical(boards.scores)
    return {
        f"{low}–{high}": outcome_rate(player, boards[chosen & (boards.ply >= low) & (boards.ply <= high)])
        for low, high in BANDS
    }


def games_of(player: Player, games: int) -> dict[str, Rate]:
    """Rates of its moves in games against OPPONENT, as means over games.

    A board is quiet where neither side can win with its next stone.
    """
    pairings = [Pairing(first=number % 2, second=1 - number % 2) for number in range(games)]
    lines = play_games([player, make(OPPONENT)], pairings, SEED).lines
    rows = [
        (number, line[:ply], move)
        for number, line in enumerate(lines)
        for ply, move in enumerate(line)
        if ply % 2 == number % 2
    ]
    current, mask = bitboards_of([from_moves(before) for _, before, _ in rows])
    game, move = np.array([number for number, _, _ in rows]), np.array([move for _, _, move in rows])
    last = np.array([before[-1] if before else -1 for _, before, _ in rows])
    previous = np.array([before[-2] if len(before) > 1 else -1 for _, before, _ in rows])
    every = np.arange(COLUMNS)

    own, other = tactics.wins(current, mask), tactics.wins(current ^ mask, mask)
    quiet = ~own.any(1) & ~other.any(1)
    threatening = threats(current, mask)
    asked: dict[str, tuple[Any, Any]] = {  # the columns that count, and the boards on which they are counted
        "wins where it can": (own, own.any(1)),
        "answers a threat": (other, ~own.any(1) & (other.sum(1) == 1)),
        "makes a threat": (threatening, quiet & threatening.any(1)),
        "plays the centre": (np.broadcast_to(every == CENTRE, own.shape), quiet),
        "the column just played": (every == last[:, None], quiet & (last >= 0)),
        "its last column": (every == previous[:, None], quiet & (previous >= 0)),
    }
    legal, rates = legal_mask(mask), {}
    for name, (columns, counted) in asked.items():
        counted = counted & (columns & legal).any(1)
        done = columns[np.arange(len(mask)), move][counted].astype(float)
        numbers = game[counted]
        chances = chance_of(columns, mask)[counted]
        means = [
            [float(values[numbers == number].mean()) for number in np.unique(numbers)] for values in (done, chances)
        ]
        rates[name] = Rate(rate=share(means[0], trials=CELLS), chance=float(np.sum(means[1])) / max(len(means[1]), 1))
    return rates


def threats(current: Bitboards, mask: Bitboards) -> NDArray[np.bool_]:
    """bool (B, A), True where a stone of the side to move leaves it with a winning column for its next turn."""
    threatening = np.zeros((len(mask), COLUMNS), np.bool_)
    legal = legal_mask(mask)
    for column in range(COLUMNS):
        open_boards = np.flatnonzero(legal[:, column])
        moves = np.full(len(open_boards), column)
        after_current, after_mask, _ = after_moves(current[open_boards], mask[open_boards], moves)
        threatening[open_boards, column] = tactics.wins(after_current ^ after_mask, after_mask).any(1)
    return threatening

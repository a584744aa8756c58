"""What the grades of a player's moves (`datasets/grades.py`) add up to, set by set.

Every board is graded as stored and mirrored. The board is the unit of the statistics: its grade is the mean of the
two. In sets whose name holds a diagonal the mirrored half counts for the mirrored set (MIRROR_SET).

Dimensions: B boards. Everything is computed from the stored scores; no solver is needed.
`evaluate_players` is what `distill evaluate` does, for a notebook or a script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, say
from distill.common.progress import Advance, silent
from distill.datasets import benchmark
from distill.datasets.benchmark import HEADLINES, GradedBoards, Half
from distill.datasets.grades import grade_moves, is_critical
from distill.game.rules import COLUMNS, mirror_bits
from distill.players.intervals import Estimate, difference, share
from distill.players.names import make
from distill.players.player import Player, as_player, checked_choices, seeds_for

METRICS = ("optimal", "outcome", "critical")

GENERAL = (
    *HEADLINES, "heldout-all", "begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy"
)  # fmt: skip
"""Sets chosen by stage and length alone; the others are chosen by a tactic on the board."""

MIRROR_SET = {"win-rising": "win-falling", "block-rising": "block-falling"}
MIRROR_SET |= {mirrored: name for name, mirrored in MIRROR_SET.items()}
"""The set of a board's mirror image, where it is another one: a rising line becomes a falling one."""

CHUNK = 2048
"""Boards between two reports of progress."""

Array: TypeAlias = NDArray[Any]
BySet: TypeAlias = dict[str, dict[str, Estimate]]
"""Set → metric → estimate."""


# One player -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A player's moves on both orientations of B boards, turned back to the stored orientation.

    Attributes:
      optimal, outcome: bool (2, B), whether the move keeps the best score, and the outcome.
    """

    name: str
    optimal: NDArray[np.bool_]
    outcome: NDArray[np.bool_]


def grade(player: Player, boards: GradedBoards, seed: int, advance: Advance = silent) -> Graded:
    """A player's grades on every board and its mirror; `advance` is called with numbers of moves."""
    moves = np.empty((2, len(boards)), np.int64)
    sides = [(boards.current, boards.mask), (mirror_bits(boards.current), mirror_bits(boards.mask))]
    for side, (current, mask) in enumerate(sides):
        # A board's seed depends on its place alone, so a sample of players may be graded in any order.
        seeds = seeds_for(seed, side, np.arange(len(boards)))
        for start in range(0, len(mask), CHUNK):
            rows = slice(start, start + CHUNK)
            moves[side, rows] = checked_choices(player, current[rows], mask[rows], seeds[rows]).moves
            advance(len(mask[rows]))
    moves[1] = COLUMNS - 1 - moves[1]  # mirrored back
    optimal, outcome = grade_moves(boards.scores, moves)
    return Graded(name=player.name, optimal=optimal, outcome=outcome)


def sample(boards: GradedBoards, count: int, seed: int) -> GradedBoards:
    """At most `count` boards of every set, drawn evenly and kept in order; the same for every player."""
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(boards.set == name)) for name in boards.sets]
    return boards[np.concatenate([np.sort(rows[:count]) for rows in members])]


# Means by set and by ply ----------------------------------------------------------------------------------------------


def units(boards: GradedBoards, grades: Array, name: str) -> NDArray[np.float64]:
    """float64 (U,), the grade of each board of a set: the mean over its orientations that belong to the set.

    `grades` are (2, B), as stored and mirrored. Boards of a diagonal set give one orientation to their own set and
    the other to the mirrored one.
    """
    stored = boards.set == name
    if name in MIRROR_SET:
        return np.concatenate([grades[0, stored], grades[1, boards.set == MIRROR_SET[name]]]).astype(np.float64)
    return grades[:, stored].mean(0)


def set_units(boards: GradedBoards, optimal: Array, outcome: Array, name: str) -> dict[str, NDArray[np.float64]]:
    """The values of each metric, one for each board of the set; for `critical`, one for each critical board."""
    critical = units(boards, np.broadcast_to(is_critical(boards.scores), (2, len(boards))), name) > 0
    values = units(boards, outcome, name)
    return {"optimal": units(boards, optimal, name), "outcome": values, "critical": values[critical]}


def by_set(boards: GradedBoards, graded: Graded) -> BySet:
    """For every set, each of METRICS with its 95 % interval."""
    return {
        name: {
            metric: share(values, trials=1 if name in MIRROR_SET else 2)
            for metric, values in set_units(boards, graded.optimal, graded.outcome, name).items()
        }
        for name in boards.sets
    }


def compare(boards: GradedBoards, one: Graded, other: Graded) -> BySet:
    """For every set, each metric of `one` minus that of `other` on the same boards, paired."""
    result = {}
    for name in boards.sets:
        ours, theirs = (set_units(boards, graded.optimal, graded.outcome, name) for graded in (one, other))
        result[name] = {metric: difference(ours[metric], theirs[metric]) for metric in METRICS}
    return result


# Players --------------------------------------------------------------------------------------------------------------


def evaluate_players(
    players: str | Sequence[str | Player | Callable[..., Any]],
    *,
    sets: str | Sequence[str] | None = None,
    half: Half = "test",
    boards: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> dict[str, BySet]:
    """Grade players move by move against perfect play, without a solver.

        grades = distill.evaluate_players(["pillar", "uct:100", my_player], sets=["heldout"], half="dev", boards=200)
        grades["pillar"]["heldout"]["optimal"].mean    # also .low and .high, the 95 % interval, and .units

    Args:
      players: names, as `evaluate` takes them (`players/names.py`); or your own `Player`, or a function that takes
        boards, int8 (B, 6, 7), and seeds, uint64 (B,), and returns columns (B,).
      sets: sets of the benchmark, such as midgame and heldout; None takes all.
      half: "dev" for choices, "test" for headlines.
      boards: most boards of each set; None takes all.
      seed: of the sample of boards, searches and random moves.
      workers: processes for searches and the solver.

    Returns by player, set and metric (optimal, outcome, critical) the mean with its interval. Raises UserError for an
    unknown set or unusable moves, ValueError for an unknown player or two players of one name.
    """
    if half not in benchmark.HALVES or not (boards is None or boards >= 1):
        raise ValueError(f"half={half!r}, boards={boards}: half must be dev or test, boards at least 1")
    players = [players] if isinstance(players, str) else players
    sets = [sets] if isinstance(sets, str) else sets
    chosen = read_boards(half, sets, boards, seed)
    resolved = [make(player, workers) if isinstance(player, str) else as_player(player) for player in players]
    if len({player.name for player in resolved}) < len(resolved):
        raise ValueError(f"two players have one name: {', '.join(player.name for player in resolved)}")
    return {player.name: by_set(chosen, grade_aloud(player, chosen, seed)) for player in resolved}


def read_boards(half: Half, sets: Sequence[str] | None, count: int | None, seed: int) -> GradedBoards:
    """At most `count` boards of each of these sets, all for None. Raises DataError for an unknown set."""
    boards = benchmark.read(half=half, sets=sets or None)
    return boards if count is None else sample(boards, count, seed)


def grade_aloud(player: Player, boards: GradedBoards, seed: int) -> Graded:
    """A player's grades, with a progress bar."""
    say(f"grading {player.name}")
    with Progress(2 * len(boards), "moves") as progress:
        return grade(player, boards, seed, progress.advance)

"""Everything measured of one player: grades by set and ply, symmetry, first move.

`evaluate_players` is the same for a notebook or a script, with the grades alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distill.common import Progress, say
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards, Half
from distill.evaluation import grading
from distill.evaluation.grading import Graded
from distill.players.intervals import Estimate
from distill.players.names import make
from distill.players.player import Player, as_player, checked_choices, seeds_for


def evaluate_players(
    players: Sequence[str | Player | Callable[..., Any]],
    *,
    sets: Sequence[str] | None = None,
    half: Half = "test",
    boards: int | None = None,
    folder: Path | None = None,
    seed: int = 0,
    workers: int = 1,
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Grade players move by move against perfect play, without a solver.

        grades = distill.evaluate_players(["pillar", "uct:100", my_player], sets=["heldout"], half="dev", boards=200)
        grades["pillar"]["heldout"]["optimal"].mean    # also .low and .high, the 95 % interval, and .units

    Args:
      players: names, as `evaluate` takes them (`players/names.py`); or your own `Player`, or a function that takes
        boards, int8 (B, 6, 7), and seeds, uint64 (B,), and returns columns (B,).
      sets: sets of the benchmark, such as midgame and heldout; None takes all.
      half: "dev" for choices, "test" for headlines.
      boards: most boards of each set; None takes all.
      folder: of graded boards; None takes the shipped ones.
      seed: of the sample of boards, searches and random moves.
      workers: processes for searches and the solver.

    Returns by player, set and metric (optimal, outcome, critical) the mean with its interval. Raises UserError for an
    unknown set or unusable moves, ValueError for an unknown player or two
    players of one name.
    """
    chosen = graded_boards(folder, half, sets, boards, seed)
    made = [make(player, workers) if isinstance(player, str) else as_player(player) for player in players]
    if len({player.name for player in made}) < len(made):
        raise ValueError(f"two players have one name: {', '.join(player.name for player in made)}")
    return {player.name: grading.by_set(chosen, graded(player, chosen, seed)) for player in made}


def graded_boards(
    folder: Path | None, half: Half, sets: Sequence[str] | None, count: int | None, seed: int
) -> GradedBoards:
    """At most `count` boards of each of these sets, all for None. Raises DataError for an unknown set."""
    boards = benchmark.read(folder, half=half, sets=sets or None)
    return grading.sample(boards, count, seed) if count else boards


def graded(player: Player, boards: GradedBoards, seed: int) -> Graded:
    """A player's grades, with a progress bar."""
    say(f"grading {player.name}")
    with Progress(2 * len(boards), "moves", warm_up=True) as progress:
        return grading.grade(player, boards, seed, progress.advance)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was measured of one player.

    Attributes:
      sets: set → metric → estimate, see `grading.by_set`.
      mirrored_moves: see `grading.mirrored_moves`.
      empty_move: its move on the empty board.
    """

    name: str
    sets: dict[str, dict[str, Estimate]]
    mirrored_moves: float | None
    empty_move: int


def summarise(player: Player, boards: GradedBoards, graded: Graded, seed: int) -> Summary:
    """Sum up a player's grades, and let it move on the empty board."""
    empty = np.zeros(1, np.uint64)
    return Summary(
        name=player.name,
        sets=grading.by_set(boards, graded),
        mirrored_moves=grading.mirrored_moves(boards, graded),
        empty_move=int(checked_choices(player, empty, empty, seeds_for(seed, 2, 0)).moves[0]),
    )

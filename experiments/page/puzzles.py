"""Build the page's puzzles: graded boards on which a single column keeps the win or the draw.

    python -m experiments.page.puzzles

In: the benchmark (`datasets/benchmark.py`), four levels, and the solver package. Out: `distill/web/page/puzzles.json`,
whose bytes are a function of these. Takes some minutes.

The tactic of a puzzle is the benchmark set of its board. Its difficulty is the number of PLAYERS that miss the
solution. A board has no move order and the page works on move strings, so `history` finds one.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.common import cli, cores
from distill.common.files import write_atomically
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.canonical import board_keys
from distill.evaluation.grading import GENERAL, best_scores, keeps_outcome
from distill.game.encoding import FULL_COLUMN
from distill.game.mixing import mix
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, ROWS, Position, column_bits, is_over, mirror_bits, play
from distill.game.tactics import wins
from distill.players.names import make
from distill.players.player import Player, checked_choices, seeds_for
from distill.players.solver import check_installed, score_boards

OUT = Path("distill/web/page/puzzles.json")
PLAYERS = ("beginner", "casual", "club", "expert")
"""Players that try each puzzle once."""
DIFFICULTIES = ("easy", "medium", "hard")
"""Missed by fewer than half of the players, by half of them, by more."""
EACH = 60
"""Largest number of puzzles per tactic."""
LONGEST_WIN = 25
"""Largest number of plies to the end of a won puzzle."""
FEWEST_COLUMNS = 3
"""Smallest number of open columns."""

Belongs = Callable[[GradedBoards], NDArray[np.bool_]]


def _in_sets(*sets: str) -> Belongs:
    return lambda boards: np.isin(boards.set, sets)


def _quiet(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), boards from ordinary games on which neither side can win with its next stone."""
    threats = wins(boards.current, boards.mask) | wins(boards.current ^ boards.mask, boards.mask)
    return np.isin(boards.set, GENERAL) & ~threats.any(1)


_DIRECTIONS = ("vertical", "horizontal", "rising", "falling")

TACTICS: Mapping[str, Belongs] = {
    "win": _in_sets(*(f"win-{direction}" for direction in _DIRECTIONS)),
    "block": _in_sets("horizontal-three", *(f"block-{direction}" for direction in _DIRECTIONS)),
    "double-threat": _in_sets("trap-set"),
    "escape": _in_sets("trap-avoid"),
    "open-two": _in_sets("open-two"),
    "long-win": lambda boards: _quiet(boards) & (best_scores(boards.scores) > 0) & (boards.moves_to_end > 5),
    "only-draw": lambda boards: _quiet(boards) & (best_scores(boards.scores) == 0),
    "zugzwang": _in_sets("zugzwang"),
}
"""Tactic → the boards it takes its puzzles from; the tactics are disjoint."""


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Build the page's puzzles."""

    out: Path = cli.setting(OUT, "file to write")
    workers: int = cli.setting(cores(), "processes for searches and the solver; does not change the puzzles")


@dataclass(frozen=True, kw_only=True)
class Puzzle:
    """One position to solve; columns are 1–7, as on screen.

    Attributes:
      moves: move string that leads to it.
      solution: the only column that keeps the outcome.
      tactic: one of TACTICS.
      difficulty: one of DIFFICULTIES.
      missed: indices of the players that play another column.
      outcome: 1 for a win of the side to move, 0 for a draw.
      plies: stones until the game ends under perfect play, including the solution.
      line: perfect play of both sides from the solution to the end.
      scores: exact score of each column for the side to move (`players/solver.py`), None for a full one.
      replies: for each column the best reply, as a digit; "-" for the solution and for full columns.
    """

    moves: str
    solution: int
    tactic: str
    difficulty: str
    missed: list[int]
    outcome: int
    plies: int
    line: str
    scores: list[int | None]
    replies: str


def run(config: Config) -> str:
    """Select boards, let the players try them, solve, write the file."""
    check_installed()
    players = [make(word, config.workers) for word in PLAYERS]
    puzzles = make_puzzles(benchmark.read(), players, workers=config.workers)
    write_atomically(config.out, as_bytes(PLAYERS, puzzles))
    counts = Counter((puzzle.tactic, puzzle.difficulty) for puzzle in puzzles)
    for tactic in TACTICS:
        print(f"{tactic:14}", *(f"{counts[tactic, difficulty]:3} {difficulty}" for difficulty in DIFFICULTIES))
    return f"{len(puzzles)} puzzles · {config.out}"


def make_puzzles(
    boards: GradedBoards, players: Sequence[Player], each: int = EACH, seed: int = 0, workers: int = 1
) -> list[Puzzle]:
    """At most `each` puzzles per tactic, balanced by difficulty, sorted by tactic and difficulty."""
    boards = _turned(boards[_is_clear(boards)])
    solutions = keeps_outcome(boards.scores).argmax(1)
    seeds = seeds_for(seed, np.arange(len(boards)))
    missed = np.stack(
        [checked_choices(player, boards.current, boards.mask, seeds).moves != solutions for player in players]
    )
    difficulty = np.sign(2 * missed.sum(0) - len(players)) + 1
    rows, tactics = list[int](), list[str]()
    for tactic, belongs in TACTICS.items():
        kinds = [np.flatnonzero(belongs(boards) & (difficulty == level)) for level in range(len(DIFFICULTIES))]
        rows += _evenly(kinds, each)
        tactics += [tactic] * (len(rows) - len(tactics))
    positions = [Position(int(boards.current[row]), int(boards.mask[row])) for row in rows]
    lines = _lines(positions, solutions[rows].tolist(), workers)
    replies = _replies(positions, boards.scores[rows], solutions[rows].tolist(), workers)
    return [
        Puzzle(
            moves=history(positions[place]),
            solution=int(solutions[row]) + 1,
            tactic=tactics[place],
            difficulty=DIFFICULTIES[difficulty[row]],
            missed=np.flatnonzero(missed[:, row]).tolist(),
            outcome=int(np.sign(boards.scores[row].max())),
            plies=int(boards.moves_to_end[row]),
            line=lines[place],
            scores=[None if score == FULL_COLUMN else score for score in boards.scores[row].tolist()],
            replies=replies[place],
        )
        for place, row in enumerate(rows)
    ]


def _is_clear(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), whether a single column keeps the outcome, with enough open columns, and a win comes soon enough."""
    single = keeps_outcome(boards.scores).sum(1) == 1
    choice = (boards.scores != FULL_COLUMN).sum(1) >= FEWEST_COLUMNS
    soon = (best_scores(boards.scores) == 0) | (boards.moves_to_end <= LONGEST_WIN)
    return np.asarray(single & choice & soon)


def _turned(boards: GradedBoards) -> GradedBoards:
    """The boards in an order and orientation drawn per board; the stored orientation is biased to one side."""
    drawn = mix(board_keys(boards.current, boards.mask))
    boards, drawn = boards[np.argsort(drawn, kind="stable")], np.sort(drawn)
    turn = (drawn & np.uint64(1)).astype(np.bool_)
    turned = {
        "current": np.where(turn, mirror_bits(boards.current), boards.current),
        "mask": np.where(turn, mirror_bits(boards.mask), boards.mask),
        "scores": np.where(turn[:, None], boards.scores[:, ::-1], boards.scores),
    }
    return GradedBoards(**{**vars(boards), **turned})


def _evenly(kinds: Sequence[NDArray[np.int64]], count: int) -> list[int]:
    """`count` rows drawn in turn from each kind while it has any, grouped by kind."""
    turns = itertools.zip_longest(*(kind.tolist() for kind in kinds))
    taken = [(kind, row) for turn in turns for kind, row in enumerate(turn) if row is not None][:count]
    return [row for _, row in sorted(taken, key=lambda pair: pair[0])]


def history(position: Position) -> str:
    """Moves, as digits 1–7, from the empty board to a position that is not over (depth-first search).

    No line of four can arise on the way: it would still be there. Raises ValueError where no move order exists.
    """
    first = position.opponent if position.ply % 2 else position.current
    owners = [_column(first, column) for column in range(COLUMNS)]
    full = [_column(position.mask, column).bit_count() for column in range(COLUMNS)]
    dead: set[tuple[int, ...]] = set()

    def complete(heights: tuple[int, ...], moves: str) -> str | None:
        if sum(heights) == sum(full):
            return moves
        if heights in dead:
            return None
        for column in COLUMNS_FROM_CENTRE:
            height = heights[column]
            if height < full[column] and (owners[column] >> height & 1) == (len(moves) % 2 == 0):
                higher = (*heights[:column], height + 1, *heights[column + 1 :])
                if (found := complete(higher, f"{moves}{column + 1}")) is not None:
                    return found
        dead.add(heights)
        return None

    if (moves := complete((0,) * COLUMNS, "")) is None:
        raise ValueError(f"no game leads to {position}")
    return moves


def _column(bits: int, column: int) -> int:
    """The bits of one column, its bottom cell lowest."""
    return (bits & column_bits(column)) >> (column * (ROWS + 1))


def _lines(positions: Sequence[Position], solutions: Sequence[int], workers: int) -> list[str]:
    """For each position the solution and perfect play after it, to the end of the game."""
    lines = [str(column + 1) for column in solutions]
    after = {place: play(*pair) for place, pair in enumerate(zip(positions, solutions, strict=True))}
    while after := {place: position for place, position in after.items() if not is_over(position)}:
        for place, column in zip(after, best_columns(list(after.values()), workers), strict=True):
            lines[place] += str(column + 1)
            after[place] = play(after[place], column)
    return lines


def _replies(
    positions: Sequence[Position], scores: NDArray[np.int8], solutions: Sequence[int], workers: int
) -> list[str]:
    """For each position seven characters: the best reply to each wrong column, "-" for other columns."""
    wrong = [
        (place, column)
        for place, solution in enumerate(solutions)
        for column in range(COLUMNS)
        if column != solution and scores[place, column] != FULL_COLUMN
    ]
    replies = [["-"] * COLUMNS for _ in positions]
    best = best_columns([play(positions[place], column) for place, column in wrong], workers)
    for (place, column), reply in zip(wrong, best, strict=True):
        replies[place][column] = str(reply + 1)
    return ["".join(reply) for reply in replies]


def best_columns(positions: Sequence[Position], workers: int) -> list[int]:
    """The column with the best exact score in each position, ties to the centre."""
    current = np.array([position.current for position in positions], np.uint64)
    mask = np.array([position.mask for position in positions], np.uint64)
    order = np.array(COLUMNS_FROM_CENTRE)
    best: list[int] = order[score_boards(current, mask, workers)[:, order].argmax(1)].tolist()
    return best


def as_bytes(players: Sequence[str], puzzles: Sequence[Puzzle]) -> bytes:
    """The file: the players, the field names, and one line of values per puzzle."""
    names = [field.name for field in fields(Puzzle)]
    rows = ",\n".join(json.dumps(list(asdict(puzzle).values()), separators=(",", ":")) for puzzle in puzzles)
    head = f'"players": {json.dumps(list(players))},\n"fields": {json.dumps(names)}'
    return f'{{{head},\n"puzzles": [\n{rows}\n]}}\n'.encode()


main = cli.Command("page.puzzles", Config, run, package="experiments")

if __name__ == "__main__":
    raise SystemExit(main())

"""Makes the puzzles of the page from the graded boards: positions in which one column alone keeps the win or the draw.

    python -m distill.web.puzzles

In: the boards of `datasets/benchmark.py`, PLAYERS, and the solver package. Out: `page/puzzles.json`, whose bytes are a
function of these. It takes some minutes.

A puzzle's tactic comes from the set of its board (`evaluation/strata.py`), its difficulty from how many of PLAYERS miss
the column. Boards have no past and the page works on move strings, so `history` finds moves that lead to a board.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, cli, cores
from distill.common.files import write_atomically
from distill.common.progress import Advance, silent
from distill.datasets import benchmark
from distill.datasets.benchmark import FULL_COLUMN, GradedBoards
from distill.datasets.canonical import board_keys
from distill.evaluation.grading import GENERAL
from distill.evaluation.strata import best_scores, keeps_class
from distill.game.mixing import mix
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, ROWS, Position, column_bits, is_over, mirror_bits, play
from distill.game.tactics import wins
from distill.players import words
from distill.players.players import Player, checked_choices, make, seeds_for
from distill.players.solver import check_installed, score_boards

PLAYERS = ("beginner", "casual", "club", "expert")
"""Who is asked, once each; `players/words.py` explains the words."""

DIFFICULTIES = ("easy", "medium", "hard")
"""A puzzle that fewer than half of the players miss, that half of them miss, and that more of them miss."""

LONGEST_WIN = 25
"""Plies to the end: a win that takes longer is no puzzle."""

FEWEST_COLUMNS = 3
"""Columns to choose from."""

Belongs = Callable[[GradedBoards], NDArray[np.bool_]]


def _in_sets(*sets: str) -> Belongs:
    return lambda boards: np.isin(boards.set, sets)


def _quiet(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), boards of play as it comes on which neither side could win with a stone now."""
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
"""Which boards a tactic takes its puzzles from; no board belongs to two."""


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Make the puzzles of the page."""

    out: Path = cli.setting(Path("distill/web/page/puzzles.json"), "file to write")
    players: tuple[str, ...] = cli.setting(PLAYERS, f"who is asked, to tell how hard a puzzle is: {words.NAMES}")
    each: int = cli.setting(60, "puzzles of a tactic, where there are so many")
    workers: int = cli.setting(cores(), "processes for searches and the solver; the puzzles do not depend on it")
    seed: int = cli.setting(0, "of the searches")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, each=1, workers=1)
        cli.check_seed(self.seed)
        if not self.players:
            raise ValueError(f"--players names nobody; name a player: {words.NAMES}")
        for word in self.players:
            words.check(word)


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"out": cli.SMOKE_DATA / "puzzles.json", "players": ("punisher", "uct:30"), "each": 1}
}


@dataclass(frozen=True, kw_only=True)
class Puzzle:
    """One position to be solved; columns are 1–7, as on screen.

    Attributes:
      moves: move string that leads to it.
      solution: the one column that keeps the outcome.
      tactic: one of TACTICS.
      difficulty: one of DIFFICULTIES.
      missed: places, among the players asked, of those that play another column.
      outcome: 1 a win for the side to move, 0 a draw.
      plies: stones until the game ends under perfect play, the solution's among them.
      line: perfect play of both sides from the solution to the end.
      scores: the exact score of each column for the side to move (`players/solver.py`), None for a full one.
      replies: for each column the best answer to it, a digit; "-" for the solution and for full columns.
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
    """Choose, ask, solve, write."""
    check_installed()
    players = [make(word, config.workers) for word in config.players]
    puzzles = make_puzzles(benchmark.read(), players, config.each, config.seed, config.workers)
    write_atomically(config.out, as_bytes(config.players, puzzles))
    for tactic in TACTICS:
        counts = Counter(puzzle.difficulty for puzzle in puzzles if puzzle.tactic == tactic)
        print(f"{tactic:14}", *(f"{counts[difficulty]:3} {difficulty}" for difficulty in DIFFICULTIES))
    return f"{len(puzzles)} puzzles · {config.out}"


def make_puzzles(
    boards: GradedBoards, players: Sequence[Player], each: int, seed: int = 0, workers: int = 1
) -> list[Puzzle]:
    """At most `each` puzzles of every tactic, as many of each difficulty as can be had, by tactic and difficulty."""
    boards = _turned(boards[_is_clear(boards)])
    solutions = keeps_class(boards.scores).argmax(1)
    seeds = seeds_for(seed, np.arange(len(boards)))
    missed = np.stack(
        [checked_choices(player, boards.current, boards.mask, seeds).moves != solutions for player in players]
    )
    difficulty = np.sign(2 * missed.sum(0) - len(players)) + 1
    chosen = {
        tactic: _evenly([np.flatnonzero(belongs(boards) & (difficulty == d)) for d in range(len(DIFFICULTIES))], each)
        for tactic, belongs in TACTICS.items()
    }
    rows = np.array([row for members in chosen.values() for row in members], np.int64)
    tactics = [tactic for tactic, members in chosen.items() for _ in members]
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
        for place, row in enumerate(rows.tolist())
    ]


def _is_clear(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), whether one column alone keeps the class, among enough of them, and a win comes soon enough."""
    single = keeps_class(boards.scores).sum(1) == 1
    choice = (boards.scores != FULL_COLUMN).sum(1) >= FEWEST_COLUMNS
    soon = (best_scores(boards.scores) == 0) | (boards.moves_to_end <= LONGEST_WIN)
    return np.asarray(single & choice & soon)


def _turned(boards: GradedBoards) -> GradedBoards:
    """The boards in an order and an orientation drawn by the board: those that are stored lean to one side."""
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
    """`count` members drawn in turn from each kind, while it has any; those of one kind together."""
    turns = itertools.zip_longest(*(kind.tolist() for kind in kinds))
    taken = [(kind, row) for turn in turns for kind, row in enumerate(turn) if row is not None][:count]
    return [row for _, row in sorted(taken, key=lambda pair: pair[0])]


def history(position: Position) -> str:
    """Moves, as digits 1–7, that lead from the empty board to a position that is not over.

    No line of four can arise on the way: it would still be there. Raises ValueError where no order of stones does.
    """
    first = position.opponent if position.ply % 2 else position.current
    stones = [_column(position.mask, column) for column in range(COLUMNS)]
    owners = [_column(first, column) for column in range(COLUMNS)]
    full = [bits.bit_count() for bits in stones]
    dead: set[tuple[int, ...]] = set()

    def complete(heights: list[int], moves: list[int]) -> bool:
        if heights == full:
            return True
        if tuple(heights) in dead:
            return False
        for column in COLUMNS_FROM_CENTRE:
            height = heights[column]
            if height < full[column] and (owners[column] >> height & 1) == (len(moves) % 2 == 0):
                heights[column] += 1
                moves.append(column)
                if complete(heights, moves):
                    return True
                heights[column] -= 1
                moves.pop()
        dead.add(tuple(heights))
        return False

    moves: list[int] = []
    if not complete([0] * COLUMNS, moves):
        raise ValueError(f"no game leads to {position}")
    return "".join(str(column + 1) for column in moves)


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
    """For each position seven characters: the best answer to each wrong column, "-" where there is none to be given."""
    wrong = [
        (place, column)
        for place, solution in enumerate(solutions)
        for column in range(COLUMNS)
        if column != solution and scores[place, column] != FULL_COLUMN
    ]
    replies = [["-"] * COLUMNS for _ in positions]
    after = [play(positions[place], column) for place, column in wrong]
    with Progress(len(after), "answers") as progress:
        best = best_columns(after, workers, progress.advance)
    for (place, column), reply in zip(wrong, best, strict=True):
        replies[place][column] = str(reply + 1)
    return ["".join(reply) for reply in replies]


def best_columns(positions: Sequence[Position], workers: int, advance: Advance = silent) -> list[int]:
    """The column of the best score in each position, the one nearest the centre of equal ones."""
    current = np.array([position.current for position in positions], np.uint64)
    mask = np.array([position.mask for position in positions], np.uint64)
    scores = score_boards(current, mask, workers, advance)
    order = np.array(COLUMNS_FROM_CENTRE)
    best: list[int] = order[scores[:, order].argmax(1)].tolist()
    return best


def as_bytes(players: Sequence[str], puzzles: Sequence[Puzzle]) -> bytes:
    """The file: who was asked, the names of the fields, and a line of values for each puzzle."""
    names = [field.name for field in fields(Puzzle)]
    rows = ",\n".join(json.dumps(list(asdict(puzzle).values()), separators=(",", ":")) for puzzle in puzzles)
    head = f'"players": {json.dumps(list(players))},\n"fields": {json.dumps(names)}'
    return f'{{{head},\n"puzzles": [\n{rows}\n]}}\n'.encode()


main = cli.Command("web.puzzles", Config, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

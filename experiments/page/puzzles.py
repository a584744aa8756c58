"""Build the page's puzzles: graded boards in which one column alone keeps the win, or the draw, played to the end.

    python -m experiments.page.puzzles

In: the benchmark (`datasets/benchmark.py`), the four levels that err and their Elo (`players/levels.py`), and
the solver package. Out: `distill/web/page/puzzles.json`, whose bytes are a function of these. Takes some minutes.

The tactic of a puzzle is the benchmark set of its board. `lines.py` has the moves after the first. A board has no move
order and the page works on move strings, so `history` finds one.

The rating of a puzzle is on the Elo scale of the levels. Each level's chance to solve the puzzle to the end follows
from its policy; the rating is the one at which Elo's formula expects as many solutions as the levels have on average.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from distill.common import cli, cores, executors
from distill.common.files import write_atomically
from distill.common.settings import CommandLine, Settings
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import best_scores, keeps_outcome
from distill.evaluation.grading import GENERAL
from distill.game.encoding import FULL_COLUMN, bitboards_of
from distill.game.mixing import splitmix64
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, ROWS, Position, canonical_keys, column_bits, mirror_bits
from distill.game.tactics import DIRECTIONS, wins
from distill.players import levels
from distill.players.names import make
from distill.players.player import Player, checked_choices
from distill.players.solver import engine
from experiments.page.lines import Node, depth, tree

OUT = Path("distill/web/page/puzzles.json")
PLAYERS = ("beginner", "casual", "club", "expert")
"""Players that rate the puzzles."""
EACH = 60
"""Largest number of puzzles per tactic."""
CANDIDATES = 120
"""Largest number of boards per tactic that are rated."""
LONGEST_WIN = 19
"""Largest number of plies to the end of a won puzzle."""
LONGEST_DRAW = 28
"""The same of a drawn one; earlier positions take the solver seconds."""
FEWEST_COLUMNS = 3
"""Smallest number of open columns."""
MOST_NODES = 24
"""Largest number of positions in which the person is to move."""
DRAWISH = 1000
"""Rating of one more player in each fit, which solves half of all puzzles: it keeps the ratings finite."""


@dataclass(frozen=True, kw_only=True)
class Difficulty:
    """A name for puzzles below a rating. One with more moves of the person than that is left out."""

    name: str
    below: float = np.inf
    moves: float = np.inf


DIFFICULTIES = (
    Difficulty(name="easy", below=700, moves=3),
    Difficulty(name="medium", below=1050, moves=6),
    Difficulty(name="hard"),
)
"""The first whose rating fits is a puzzle's."""

Belongs = Callable[[GradedBoards], NDArray[np.bool_]]


def _in_sets(*sets: str) -> Belongs:
    return lambda boards: np.isin(boards.set, sets)


def _quiet(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), boards from ordinary games on which neither side can win with its next stone."""
    threats = wins(boards.current, boards.mask) | wins(boards.current ^ boards.mask, boards.mask)
    return np.isin(boards.set, GENERAL) & ~threats.any(1)


TACTICS: Mapping[str, Belongs] = {
    "win": _in_sets(*(f"win-{direction}" for direction in DIRECTIONS)),
    "block": _in_sets("horizontal-three", *(f"block-{direction}" for direction in DIRECTIONS)),
    "double-threat": _in_sets("trap-set"),
    "escape": _in_sets("trap-avoid"),
    "open-two": _in_sets("open-two"),
    "long-win": lambda boards: _quiet(boards) & (best_scores(boards.scores) > 0) & (boards.moves_to_end > 5),
    "only-draw": lambda boards: _quiet(boards) & (best_scores(boards.scores) == 0),
    "zugzwang": _in_sets("zugzwang"),
}
"""Tactic → the boards it takes its puzzles from; the tactics are disjoint."""


class Config(Settings):
    """Build the page's puzzles."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("out", "workers"))
    out: Path = Field(OUT, description="file to write")
    workers: int = Field(cores(), description="processes for networks and the solver; does not change the puzzles")


@dataclass(frozen=True, kw_only=True)
class Puzzle:
    """One position to solve; columns are 1–7, as on screen.

    Attributes:
      id: five characters, the same for the mirror image, for links.
      moves: move string that leads to it.
      tactic: one of TACTICS.
      difficulty: name of one of DIFFICULTIES.
      rating: on the Elo scale of PLAYERS.
      found: indices of the players that solve it more often than not.
      nodes: for each `lines.Node` its scores (None for a full column), its replies, and its `next` if any is not 0.
    """

    id: str
    moves: str
    tactic: str
    difficulty: str
    rating: int
    found: list[int]
    nodes: list[list[object]]


@dataclass(frozen=True, kw_only=True)
class _Rated:
    """A board with its tree, its players' chances to solve it, float (P,), and its rating."""

    key: int
    nodes: list[Node]
    chances: NDArray[np.float64]
    rating: int
    difficulty: int


def run(config: Config) -> str:
    """Select boards, find the moves after the first, let the players rate them, write the file."""
    engine()
    players = {word: make(word, config.workers) for word in PLAYERS}
    puzzles = make_puzzles(benchmark.read(), players, levels.elo_table(), workers=config.workers)
    write_atomically(config.out, as_bytes(PLAYERS, puzzles))
    counts = Counter((puzzle.tactic, puzzle.difficulty) for puzzle in puzzles)
    for tactic in TACTICS:
        print(f"{tactic:14}", *(f"{counts[tactic, level.name]:3} {level.name}" for level in DIFFICULTIES))
    return f"{len(puzzles)} puzzles · {config.out}"


def make_puzzles(
    boards: GradedBoards,
    players: Mapping[str, Player],
    elo: Mapping[str, float],
    each: int = EACH,
    candidates: int = CANDIDATES,
    workers: int = 1,
) -> list[Puzzle]:
    """At most `each` puzzles per tactic, balanced by difficulty, sorted by tactic, difficulty and rating."""
    boards = _turned(boards[_is_clear(boards)])
    puzzles = []
    for tactic, belongs in TACTICS.items():
        rated = _rated(boards[np.flatnonzero(belongs(boards))[:candidates]], players, elo, workers)
        kinds = [[one for one in rated if one.difficulty == level] for level in range(len(DIFFICULTIES))]
        puzzles += [
            _puzzle(one, tactic) for one in sorted(_evenly(kinds, each), key=lambda one: (one.difficulty, one.rating))
        ]
    if len({puzzle.id for puzzle in puzzles}) < len(puzzles):
        raise ValueError("two puzzles have the same id; make ids longer")
    return puzzles


def _rated(boards: GradedBoards, players: Mapping[str, Player], elo: Mapping[str, float], workers: int) -> list[_Rated]:
    """The boards whose tree is small enough and not too long for its rating, in their order."""
    pairs = zip(boards.current.tolist(), boards.mask.tolist(), strict=True)
    trees = executors.results(executors.shared(workers), tree, [(Position(*pair), MOST_NODES) for pair in pairs])
    known = canonical_keys(boards.current, boards.mask).tolist()
    keys = [key for key, nodes in zip(known, trees, strict=True) if nodes]
    kept = [nodes for nodes in trees if nodes]
    chances = np.array([_chances(player, kept) for player in players.values()]).T
    rated = []
    for key, nodes, row in zip(keys, kept, chances, strict=True):
        rating = round(fitted_rating([*(elo[word] for word in players), DRAWISH], [*row, 0.5]))
        difficulty = next(place for place, level in enumerate(DIFFICULTIES) if rating < level.below)
        if depth(nodes) <= DIFFICULTIES[difficulty].moves:
            rated.append(_Rated(key=key, nodes=nodes, chances=row, rating=rating, difficulty=difficulty))
    return rated


def _chances(player: Player, trees: Sequence[Sequence[Node]]) -> list[float]:
    """A player's chance to solve each puzzle to the end. The page rejects a slower win, so it is drawn again."""
    positions = [node.position for nodes in trees for node in nodes]
    policy = checked_choices(player, *bitboards_of(positions), np.zeros(len(positions), np.uint64)).policy
    assert policy is not None  # levels have one
    rows = iter(policy.tolist())
    return [_chance(nodes, [next(rows) for _ in nodes]) for nodes in trees]


def _chance(nodes: Sequence[Node], policies: Sequence[Sequence[float]]) -> float:
    solved = [0.0] * len(nodes)
    for index in reversed(range(len(nodes))):  # a node comes before the ones it leads to
        node, policy = nodes[index], policies[index]
        best = node.best
        right = sum(policy[column] * (solved[node.next[column]] if node.next[column] else 1) for column in best)
        slower = sum(share for column, share in enumerate(policy) if column not in best and node.scores[column] > 0)
        solved[index] = right / (1 - slower) if slower < 1 else 0.0
    return solved[0]


def fitted_rating(ratings: Sequence[float], solved: Sequence[float]) -> float:
    """The rating at which Elo's formula expects what players of these ratings solved, shares from 0 to 1."""
    low, high = -10_000.0, 10_000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        expected = sum(1 / (1 + 10 ** ((middle - rating) / 400)) for rating in ratings)
        low, high = (middle, high) if expected > sum(solved) else (low, middle)
    return (low + high) / 2


def _puzzle(rated: _Rated, tactic: str) -> Puzzle:
    nodes: list[list[object]] = []
    for node in rated.nodes:
        scores = [None if score == FULL_COLUMN else score for score in node.scores]
        nodes.append([scores, node.replies, node.next] if any(node.next) else [scores, node.replies])
    return Puzzle(
        id=_id(rated.key),
        moves=history(rated.nodes[0].position),
        tactic=tactic,
        difficulty=DIFFICULTIES[rated.difficulty].name,
        rating=rated.rating,
        found=np.flatnonzero(rated.chances > 0.5).tolist(),
        nodes=nodes,
    )


def _id(key: int) -> str:
    """Five digits and letters."""
    number, text = int(splitmix64(key).item()) % 36**5, ""
    for _ in range(5):
        number, digit = divmod(number, 36)
        text += "0123456789abcdefghijklmnopqrstuvwxyz"[digit]
    return text


def _is_clear(boards: GradedBoards) -> NDArray[np.bool_]:
    """bool (B,), whether a single column keeps the outcome, with enough open columns, and the end is near enough."""
    single = keeps_outcome(boards.scores).sum(1) == 1
    choice = (boards.scores != FULL_COLUMN).sum(1) >= FEWEST_COLUMNS
    soon = boards.moves_to_end <= np.where(best_scores(boards.scores) == 0, LONGEST_DRAW, LONGEST_WIN)
    return np.asarray(single & choice & soon)


def _turned(boards: GradedBoards) -> GradedBoards:
    """The boards in an order and orientation drawn per board; the stored orientation is biased to one side."""
    drawn = splitmix64(canonical_keys(boards.current, boards.mask))
    boards, drawn = boards[np.argsort(drawn, kind="stable")], np.sort(drawn)
    turn = (drawn & np.uint64(1)).astype(np.bool_)
    turned = {
        "current": np.where(turn, mirror_bits(boards.current), boards.current),
        "mask": np.where(turn, mirror_bits(boards.mask), boards.mask),
        "scores": np.where(turn[:, None], boards.scores[:, ::-1], boards.scores),
    }
    return GradedBoards(**{**vars(boards), **turned})


def _evenly(kinds: Sequence[Sequence[_Rated]], count: int) -> list[_Rated]:
    """`count` boards drawn in turn from each kind while it has any."""
    turns = itertools.zip_longest(*kinds)
    return [one for turn in turns for one in turn if one is not None][:count]


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


def as_bytes(players: Sequence[str], puzzles: Sequence[Puzzle]) -> bytes:
    """The file: the players, the field names, and one line of values per puzzle."""
    names = [field.name for field in fields(Puzzle)]
    rows = ",\n".join(json.dumps(list(asdict(puzzle).values()), separators=(",", ":")) for puzzle in puzzles)
    head = f'"players": {json.dumps(list(players))},\n"fields": {json.dumps(names)}'
    return f'{{{head},\n"puzzles": [\n{rows}\n]}}\n'.encode()


main = cli.Command("experiments page.puzzles", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())

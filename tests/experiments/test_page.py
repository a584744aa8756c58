"""The page's puzzles and opening book. Properties:

- a puzzle is a graded, unfinished board with one column that keeps the result, and a line of play to the end; there are
  over 300, no two equal or mirrored, with each tactic and difficulty;
- the solver agrees: the scores of 120 puzzles, the reply to each wrong column of 20, each stone of 15 lines;
- the book has the counts of a plain loop over the games; its scores are the solver's;
- games of another kind, changed games and a book without positions are refused in one line.
"""

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from distill.datasets import benchmark
from distill.datasets.canonical import board_keys
from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Position
from distill.players.solver import score_boards
from distill.web import api
from experiments.page import openings, puzzles

PAGE = api.PAGE
GAMES = Path(__file__).parents[2] / "data" / "reference" / "games-20000"


STORED = json.loads((PAGE / "puzzles.json").read_text())
PUZZLES = [dict(zip(STORED["fields"], values, strict=True)) for values in STORED["puzzles"]]
BOOK = json.loads((PAGE / "openings.json").read_text())


def solved(positions: list[Position]) -> list[list[int | None]]:
    bits = np.array([(position.current, position.mask) for position in positions], np.uint64).T
    scores = score_boards(np.ascontiguousarray(bits[0]), np.ascontiguousarray(bits[1]))
    return [[None if score == FULL_COLUMN else score for score in row] for row in scores.tolist()]


def test_every_puzzle_is_a_graded_board_with_one_solution_and_a_line_to_the_end():
    boards, keys = benchmark.read(), set()
    for puzzle in PUZZLES:
        position = rules.from_moves(puzzle["moves"])
        assert not rules.is_over(position)
        keys.add(int(board_keys(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))[0]))
        classes = [None if score is None else np.sign(score) for score in puzzle["scores"]]
        assert [score is not None for score in classes] == [rules.is_legal(position, c) for c in range(7)]
        assert classes.count(puzzle["outcome"]) == 1
        assert classes.index(puzzle["outcome"]) == puzzle["solution"] - 1
        assert puzzle["outcome"] == max(score for score in classes if score is not None) >= 0
        assert puzzle["plies"] == len(puzzle["line"])
        assert puzzle["outcome"] == 0 or puzzle["plies"] <= puzzles.LONGEST_WIN
        assert puzzle["line"][0] == str(puzzle["solution"])
        end = rules.from_moves(puzzle["moves"] + puzzle["line"])
        assert rules.is_over(end)
        assert rules.is_won(end) == bool(puzzle["outcome"])
        assert not rules.is_won(end) or len(puzzle["line"]) % 2 == 1
        assert [reply == "-" for reply in puzzle["replies"]] == [
            score is None or column == puzzle["solution"] - 1 for column, score in enumerate(puzzle["scores"])
        ]
    assert keys <= set(board_keys(boards.current, boards.mask).tolist())
    assert len(keys) == len(PUZZLES) > 300
    assert {puzzle["tactic"] for puzzle in PUZZLES} == set(puzzles.TACTICS)
    counts = Counter(puzzle["difficulty"] for puzzle in PUZZLES)
    assert min(counts[difficulty] for difficulty in puzzles.DIFFICULTIES) > 50
    assert (PAGE / "puzzles.json").stat().st_size < 100_000


def test_the_solver_agrees_with_the_puzzles():
    dice = random.Random(3)
    sample = dice.sample(PUZZLES, 120)
    assert [puzzle["scores"] for puzzle in sample] == solved([rules.from_moves(puzzle["moves"]) for puzzle in sample])
    answers = []  # game, next move
    for puzzle in sample[:20]:
        replies = enumerate(puzzle["replies"], 1)
        answers += [(f"{puzzle['moves']}{column}", reply) for column, reply in replies if reply != "-"]
        answers += [(puzzle["moves"] + puzzle["line"][:place], move) for place, move in enumerate(puzzle["line"])]
    for (_, move), scores in zip(answers, solved([rules.from_moves(game) for game, _ in answers]), strict=True):
        assert scores[int(move) - 1] == max(score for score in scores if score is not None)


def entry_of(position: Position, column: int) -> tuple[str, int]:
    """The book's name of a position, and the column in the orientation of that name."""
    name, is_mirrored = openings.key(position)
    turned = 6 - column if is_mirrored else column
    return name, min(turned, 6 - turned) if rules.mirror(position) == position else turned


def test_the_book_counts_what_the_games_played():
    counted: dict[str, Counter] = defaultdict(Counter)
    for shard in sorted(GAMES.glob("shard-*.parquet")):
        rows = pq.read_table(shard, columns=["ply", "current", "mask", "move"]).to_pydict()
        labelled = Counter(row[1:] for row in zip(*rows.values(), strict=True) if row[0] < BOOK["plies"])
        for (current, mask, move), number in labelled.items():
            name, column = entry_of(Position(current, mask), move)
            counted[name][column] += number
    for name, (_, moves) in BOOK["positions"].items():
        assert {column - 1: chosen for column, _, chosen, _, _ in moves if chosen} == dict(counted[name])
        assert sum(played for _, played, *_ in moves) >= BOOK["least"]
        assert all(won + drawn <= played and chosen <= played for _, played, chosen, won, drawn in moves)
    played, won, drawn = (sum(move[place] for move in BOOK["positions"][",,,,,,"][1]) for place in (1, 3, 4))
    assert played == BOOK["games"] == 20_000
    assert (won, drawn) == (9_231, 1_712)  # as on the card of the games
    assert (PAGE / "openings.json").stat().st_size < 150_000


def of_name(name: str) -> Position:
    columns = [text.ljust(6, ".") for text in name.split(",")]
    lines = ["".join(column[height] for column in columns) for height in range(5, -1, -1)]
    return rules.parse_board("\n".join(lines).replace("0", "X").replace("1", "O"))


def test_the_solver_agrees_with_the_book():
    dice = random.Random(7)
    sample = dice.sample(sorted(BOOK["positions"]), 100)
    positions = [of_name(name) for name in sample]
    assert [openings.key(position) for position in positions] == [(name, False) for name in sample]
    assert [BOOK["positions"][name][0] for name in sample] == solved(positions)


def copied(place: Path, **identity: object) -> Path:
    """The manifest and first shard of the shipped games, with changes to the identity."""
    place.mkdir()
    manifest = json.loads((GAMES / "manifest.json").read_text())
    manifest["shards"] = manifest["shards"][:1]
    manifest["identity"] = {**manifest["identity"], **identity}
    manifest["games"], manifest["rows"] = manifest["shards"][0]["games"], manifest["shards"][0]["rows"]
    manifest["identity"] = {name: value for name, value in manifest["identity"].items() if value is not None}
    (place / "manifest.json").write_text(json.dumps(manifest))
    (place / "shard-00000.parquet").write_bytes((GAMES / "shard-00000.parquet").read_bytes())
    return place


@pytest.mark.parametrize(
    ("identity", "flags", "line"),
    [
        ({"seed": 1}, [], "does not start with the opening drawn from its seed"),
        ({"opening_moves": None}, [], "not made by generate"),
        ({}, ["--least", "300"], "try a smaller --least"),
    ],
)
def test_games_that_make_no_book_are_refused(identity, flags, line, tmp_path, capsys):
    data = copied(tmp_path / "games", **identity)
    assert openings.main(["--data", str(data), "--out", str(tmp_path / "book.json"), *flags]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert line in said
    assert not (tmp_path / "book.json").exists()

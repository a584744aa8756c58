"""The page's puzzles and opening book. Properties:

- a puzzle is a graded, unfinished board with one column that keeps the result, and a line of play to the end; there are
  over 300, no two equal or mirrored, with each tactic and difficulty;
- the solver agrees: the scores of 120 puzzles, the reply to each wrong column of 20, each stone of 15 lines;
- `history` finds a move order for boards of random games, and raises if there is none;
- the same boards and players give the same bytes, balanced; `missed` is what the players play;
- the book has the counts of a plain loop over the games; redrawn openings lead to the games' first rows; its scores are
  the solver's;
- games of another kind, changed games and a book without positions are refused in one line.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from distill.datasets import benchmark
from distill.datasets.benchmark import FULL_COLUMN
from distill.datasets.canonical import board_keys
from distill.game import rules
from distill.game.rules import Position
from distill.games import reader
from distill.players.names import make
from distill.players.player import seeds_for
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


def best(scores: list[int | None]) -> int:
    return max(score for score in scores if score is not None)


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
    wrong = [
        (puzzle, column) for puzzle in sample[:20] for column, reply in enumerate(puzzle["replies"]) if reply != "-"
    ]
    after = solved([rules.from_moves(f"{puzzle['moves']}{column + 1}") for puzzle, column in wrong])
    for (puzzle, column), scores in zip(wrong, after, strict=True):
        assert scores[int(puzzle["replies"][column]) - 1] == best(scores) == -puzzle["scores"][column]
    stones = [(puzzle, place) for puzzle in sample[:15] for place in range(len(puzzle["line"]))]
    along = solved([rules.from_moves(puzzle["moves"] + puzzle["line"][:place]) for puzzle, place in stones])
    for (puzzle, place), scores in zip(stones, along, strict=True):
        assert scores[int(puzzle["line"][place]) - 1] == best(scores)


def test_a_board_is_reached_in_some_order_of_its_stones():
    dice = random.Random(4)
    for _ in range(300):
        position, last = rules.EMPTY, rules.EMPTY
        while not rules.is_over(position) and dice.random() > 0.02:
            last, position = position, rules.play(position, dice.choice(rules.legal_columns(position)))
        open_one = last if rules.is_over(position) else position
        assert rules.from_moves(puzzles.history(open_one)) == open_one
    unreachable = rules.parse_board("\n".join(["......."] * 4 + ["X......", "O......"]))
    with pytest.raises(ValueError, match="no game leads to"):
        puzzles.history(unreachable)


def test_the_same_boards_and_players_give_the_same_balanced_bytes():
    boards = benchmark.read(sets=["end-easy", "zugzwang", "win-vertical", "block-vertical"])
    boards = boards[(boards.moves_to_end <= 8) & (boards.ply >= 24)]
    players = [make(word) for word in ("punisher", "random")]
    chosen = puzzles.make_puzzles(boards, players, each=3, seed=5)
    again = puzzles.make_puzzles(boards[np.arange(len(boards))[::-1]], players, each=3, seed=5)
    assert puzzles.as_bytes(["a", "b"], chosen) == puzzles.as_bytes(["a", "b"], again)
    counts = Counter(puzzle.tactic for puzzle in chosen)
    assert max(counts.values()) == 3
    assert {"zugzwang", "block", "only-draw"} <= set(counts)
    zugzwang = [puzzle.difficulty for puzzle in chosen if puzzle.tactic == "zugzwang"]
    assert zugzwang == ["easy", "easy", "hard"]  # the two draw the same column, where there is no threat
    for puzzle in chosen:
        assert puzzle.difficulty == puzzles.DIFFICULTIES[len(puzzle.missed)]  # of two players
    blocks = [puzzle for puzzle in chosen if puzzle.tactic == "block"]
    assert blocks
    assert not any(0 in puzzle.missed for puzzle in blocks), "the punisher misses no block"


def test_a_player_misses_a_puzzle_when_it_plays_another_column():
    assert STORED["players"] == list(puzzles.PLAYERS)
    sample = PUZZLES[::4]
    positions = [rules.from_moves(puzzle["moves"]) for puzzle in sample]
    current, mask = np.array([(position.current, position.mask) for position in positions], np.uint64).T.copy()
    moves = make("expert").play(current, mask, seeds_for(0, np.arange(len(sample)))).moves + 1
    place = puzzles.PLAYERS.index("expert")
    assert [place in puzzle["missed"] for puzzle in sample] == [
        move != puzzle["solution"] for move, puzzle in zip(moves.tolist(), sample, strict=True)
    ]
    assert any(place in puzzle["missed"] for puzzle in sample)


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


def test_games_are_read_from_the_empty_board_and_counted_by_move_and_result():
    run = reader.open_run(GAMES)
    few = reader.Run(folder=run.folder, name=run.name, games=200, rows=run.shards[0].rows, shards=run.shards[:1])
    read = list(openings.read_games(few))
    assert len(read) == 200
    plain: dict[str, Counter] = defaultdict(Counter)
    for game in read:
        end = rules.from_moves(game.moves)
        assert rules.is_over(end)
        assert game.result == (0 if not rules.is_won(end) else 1 if end.ply % 2 else -1)
        counts = {"games": 1, "won": int(game.result == 1), "drawn": int(game.result == 0)}
        for ply, move in enumerate(game.moves[:4]):
            name, column = entry_of(rules.from_moves(game.moves[:ply]), move)
            for what, number in (counts | {"chosen": int(ply >= game.random)}).items():
                plain[name][column, what] += number
    found = {
        name: {(column, what): number for column, move in entry.moves.items() for what, number in vars(move).items()}
        for name, entry in openings.count(read, plies=4).items()
    }
    assert found == plain


def test_a_position_has_one_name_with_its_mirror_and_no_other():
    dice = random.Random(6)
    named: dict[str, Position] = {}
    for _ in range(400):
        moves = [dice.randrange(7) for _ in range(dice.randrange(5))]
        position = rules.from_moves(moves)
        (name, is_mirrored), (other, is_other_mirrored) = openings.key(position), openings.key(rules.mirror(position))
        assert name == other
        assert (is_mirrored != is_other_mirrored) == (rules.mirror(position) != position)
        own = rules.mirror(position) if is_mirrored else position
        assert named.setdefault(name, own) == own
    assert openings.key(rules.from_moves("7744")) == (",,,01,,,01", False)
    assert openings.key(rules.from_moves("1144")) == (",,,01,,,01", True)


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


def test_the_book_is_the_same_when_written_again(tmp_path: Path):
    data, files = copied(tmp_path / "games"), [tmp_path / "one.json", tmp_path / "other.json"]
    for file in files:
        words = ["--data", str(data), "--plies", "2", "--least", "5", "--out", str(file), "--workers", "1"]
        assert openings.main(words) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    stored = json.loads(files[0].read_text())
    assert (stored["games"], stored["plies"], stored["least"]) == (200, 2, 5)
    assert sum(move[1] for move in stored["positions"][",,,,,,"][1]) == 200


@pytest.mark.parametrize(
    ("identity", "flags", "line"),
    [
        ({"seed": 1}, [], "does not start with the opening drawn from its seed"),
        ({"opening_moves": None}, [], "not made by generate"),
        ({}, ["--least", "300"], "try a smaller --least"),
    ],
)
def test_games_that_make_no_book_are_refused(identity, flags, line, tmp_path: Path, capsys):
    data = copied(tmp_path / "games", **identity)
    assert openings.main(["--data", str(data), "--out", str(tmp_path / "book.json"), *flags]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert line in said
    assert not (tmp_path / "book.json").exists()

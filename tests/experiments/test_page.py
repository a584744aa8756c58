"""The page's puzzles, opening book and tour, which the solver and a plain loop over the games' rows confirm, and the
scripted people that play its levels.
"""

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers import bits, change_record

from distill.datasets import benchmark
from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Position, canonical_keys
from distill.games import reader
from distill.players.player import Choices, as_player
from distill.players.solver import score_boards
from distill.web import api
from experiments.page import openings, people, puzzles, tour
from experiments.page.lines import depth, tree

PAGE = api.PAGE
GAMES = Path(__file__).parents[2] / "data" / "reference" / "validation"

STORED = json.loads((PAGE / "puzzles.json").read_text())
PUZZLES = [dict(zip(STORED["fields"], values, strict=True)) for values in STORED["puzzles"]]
BOOK = json.loads((PAGE / "openings.json").read_text())
PLACES = {"played": 1, "won": 3, "drawn": 4}
"""Where an entry of the book has a move's counts."""


def solved(positions: list[Position]) -> list[list[int | None]]:
    scores = score_boards(*bits(*positions))
    return [[None if score == FULL_COLUMN else score for score in row] for row in scores.tolist()]


def sign(score: int) -> int:
    return (score > 0) - (score < 0)


def places(puzzle: dict) -> list[tuple[Position, list, str, list[int]]]:
    """Position, scores, replies and next indices of each node, the positions found by walking from the first."""
    nodes = [(node[0], node[1], node[2] if len(node) > 2 else [0] * 7) for node in puzzle["nodes"]]
    positions = {0: rules.from_moves(puzzle["moves"])}
    for index, (_, replies, following) in enumerate(nodes):
        for column, after in enumerate(following):
            if after:
                position = rules.next_position(rules.next_position(positions[index], column), int(replies[column]) - 1)
                assert positions.setdefault(after, position) == position
                assert after > index
    assert sorted(positions) == list(range(len(nodes))), "every node is reached"
    return [(positions[index], *node) for index, node in enumerate(nodes)]


def test_every_puzzle_is_a_graded_board_with_one_solution():
    boards, keys = benchmark.read(), set()
    for puzzle in PUZZLES:
        position, scores, *_ = places(puzzle)[0]
        assert not rules.is_over(position)
        keys |= {*canonical_keys(*bits(position)).tolist()}
        signs = [sign(score) for score in scores if score is not None]
        assert signs.count(max(signs)) == 1
        assert max(signs) >= 0
        assert len(signs) >= puzzles.FEWEST_COLUMNS
    assert keys <= set(canonical_keys(boards.current, boards.mask).tolist())
    assert len(keys) == len({puzzle["id"] for puzzle in PUZZLES}) == len(PUZZLES) > 300
    assert {puzzle["tactic"] for puzzle in PUZZLES} == set(puzzles.TACTICS)
    counts = Counter(puzzle["difficulty"] for puzzle in PUZZLES)
    assert min(counts[level.name] for level in puzzles.DIFFICULTIES) > 50


def test_a_puzzle_ends_when_the_result_is_safe():
    for puzzle in PUZZLES:
        nodes = places(puzzle)
        assert len(nodes) <= puzzles.MOST_NODES
        for position, scores, replies, following in nodes:
            best = max(score for score in scores if score is not None)
            assert sign(best) == sign(max(score for score in nodes[0][1] if score is not None))
            for column, score in enumerate(scores):
                assert (score is not None) == rules.is_legal(position, column)
                if score != best:
                    assert following[column] == 0
                    if score is None or score > 0:
                        assert replies[column] == "-"
                    else:
                        assert replies[column] != "-" or rules.is_over(rules.next_position(position, column))
                elif not following[column]:
                    assert replies[column] == "-"
                    assert best == 0 or rules.is_won(rules.next_position(position, column))


def test_the_solver_agrees_with_the_puzzles():
    dice = random.Random(3)
    sample = dice.sample([node for puzzle in PUZZLES for node in places(puzzle)], 120)
    assert [scores for _, scores, *_ in sample] == solved([position for position, *_ in sample])
    answered = [
        (rules.next_position(position, column), int(reply) - 1)
        for position, _, replies, _ in sample[:40]
        for column, reply in enumerate(replies)
        if reply != "-"
    ]
    for (_, reply), scores in zip(answered, solved([position for position, _ in answered]), strict=True):
        assert scores[reply] == max(score for score in scores if score is not None)


def test_a_rating_is_fitted_by_elos_formula():
    assert puzzles.fitted_rating([800], [0.5]) == pytest.approx(800, abs=1e-3)
    assert puzzles.fitted_rating([1000], [10 / 11]) == pytest.approx(600, abs=1e-3)
    assert puzzles.fitted_rating([600, 1400], [0.5, 0.5]) == pytest.approx(1000, abs=1e-3)


def test_a_chance_is_the_product_of_its_moves():
    def any_column(boards, seeds):
        policy = (boards[:, 0] == 0) / (boards[:, 0] == 0).sum(1, keepdims=True)
        return Choices(moves=policy.argmax(1), policy=policy)

    nodes = tree(rules.from_moves("4455"), most=10)
    assert nodes is not None
    assert [node.scores for node in nodes] == [
        [-4, -3, 18, 2, 2, 18, -3],  # columns 3 and 6 make an open three, 4 and 5 win later, three columns lose
        [-5, -4, 2, 2, -2, 18, -6],
        [-5, -8, 0, -1, 1, 2, 18],
    ]
    assert depth(nodes) == 2
    assert puzzles._chances(as_player(any_column), [nodes]) == [pytest.approx(2 / 5 * 1 / 5)]


def entry_of(position: Position, column: int) -> tuple[str, int]:
    """The book's name of a position, and the column in the orientation of that name."""
    name, is_mirrored = openings.key(position)
    turned = 6 - column if is_mirrored else column
    return name, min(turned, 6 - turned) if rules.mirror(position) == position else turned


@pytest.fixture(scope="module")
def validation_book(tmp_path_factory) -> dict:
    """The book that the command makes of the validation games."""
    out = tmp_path_factory.mktemp("book") / "openings.json"
    assert openings.main(["--data", str(GAMES), "--least", "10", "--out", str(out), "--workers", "1"]) == 0
    return json.loads(out.read_text())


def plain_counts(games: Path, plies: int) -> dict[str, dict[int, int]]:
    """How often the games' searches chose each column of a position, from the rows as they are stored."""
    counted: dict[str, Counter] = defaultdict(Counter)
    for shard in sorted(games.glob("shard-*.parquet")):
        rows = pq.read_table(shard, columns=["ply", "current", "mask", "move"]).to_pydict()
        labelled = Counter(row[1:] for row in zip(*rows.values(), strict=True) if row[0] < plies)
        for (current, mask, move), number in labelled.items():
            name, column = entry_of(Position(current, mask), move)
            counted[name][column] += number
    return counted


def chosen_in(book: dict) -> dict[str, dict[int, int]]:
    return {name: {move[0] - 1: move[2] for move in entry[2] if move[2]} for name, entry in book["positions"].items()}


def test_the_book_counts_the_moves_of_the_games(validation_book):
    counted = plain_counts(GAMES, validation_book["plies"])
    assert len(validation_book["positions"]) > 90
    assert chosen_in(validation_book) == {name: counted[name] for name in validation_book["positions"]}


def test_each_entry_of_the_book_is_whole():
    for scores, shares, moves in BOOK["positions"].values():
        assert 97 <= sum(shares) <= 103  # each is rounded
        assert all(share == 0 for score, share in zip(scores, shares, strict=True) if score is None)
        assert sum(played for _, played, *_ in moves) >= BOOK["least"]
        assert all(won + drawn <= played and chosen <= played for _, played, chosen, won, drawn in moves)


def test_the_books_results_are_those_of_all_games(validation_book):
    def totals(book: dict) -> list[int]:
        return [sum(move[place] for move in book["positions"][",,,,,,"][2]) for place in PLACES.values()]

    assert totals(BOOK) == [BOOK["games"], 9_231, 1_712]  # as in data/README.md
    assert totals(validation_book) == [1_000, 438, 108]  # as on their card
    assert BOOK["games"] == 20_000


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
    """The shipped validation games, with changes to the identity."""
    place.mkdir()
    for name in ("_run.json", "shard-00000.parquet"):
        (place / name).write_bytes((GAMES / name).read_bytes())
    known = {name: value for name, value in (reader.open_run(place).identity | identity).items() if value is not None}
    change_record(place, lambda record: record.update(identity=known))
    return place


@pytest.mark.parametrize(
    ("identity", "flags", "line"),
    [
        ({"seed": 1}, [], "does not start with the opening drawn from its seed"),
        ({"opening_moves": None}, [], "not made by generate"),
        ({}, ["--least", "1001"], "try a smaller --least"),
    ],
)
def test_games_that_make_no_book_are_refused(identity, flags, line, tmp_path, capsys):
    data = copied(tmp_path / "games", **identity)
    assert openings.main(["--data", str(data), "--out", str(tmp_path / "book.json"), *flags]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert line in said
    assert not (tmp_path / "book.json").exists()


def test_the_positions_of_the_tour_are_candidates_in_the_order_right_wrong_surprising():
    boards = tour.candidates(benchmark.read())
    keys = zip(boards.current.tolist(), boards.mask.tolist(), strict=True)
    scores = dict(zip(keys, boards.scores.tolist(), strict=True))
    shown = json.loads((PAGE / "tour.json").read_text())["positions"]
    assert [position["kind"] for position in shown] == ["right", "wrong", "surprising"]
    for position in shown:
        reached = rules.from_moves(position["moves"])
        stored = scores[reached.current, reached.mask]
        assert position["scores"] == [None if score == FULL_COLUMN else score for score in stored]


@pytest.mark.parametrize(
    ("moves", "columns"),
    [
        ("121212", [{0}, {0}, {0}]),  # a win in one
        ("12121", [{0}, {0}, {0}]),  # a block in one
        ("1223343446", [{0, 1, 2, 3, 4, 5, 6}, {3}, {3}]),  # a diagonal of three, which one of them misses
        ("443", [{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}, {1, 4}]),  # an open two, which only the last one sees
    ],
)
def test_people_play_as_they_are_said_to(moves, columns):
    current, mask = bits(rules.from_moves(moves))
    for person, expected in zip(people.PEOPLE, columns, strict=True):
        policy = person.choose(current, mask, np.zeros(1, np.uint64)).policy
        assert set(np.flatnonzero(policy[0])) <= expected, person.name

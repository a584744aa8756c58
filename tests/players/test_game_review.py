"""A game reviewed. Properties:

- marks of 1,000 moves of shipped games are those of a plain computation from the positions after the moves;
- each mark by its definition, at its borders; an estimate likewise;
- accuracy is 100 if and only if every move with a choice was best; a side without a choice has none;
- perfect play has 100 % on both sides; a planted blunder is found at its ply and is the only error;
- the better column and each move of the line have the best score; the line ends with the game or after 10 plies;
- a search grades where it is named, says that it estimates, and stands in where the solver is missing;
- the command prints text or JSON.

Of boards that the solver needs long for: `pytest -m slow tests/players/test_game_review.py` (two minutes).
"""

import importlib.util
import json

import numpy as np
import pytest
from helpers import game_at_random
from hypothesis import given
from hypothesis import strategies as st
from review_helpers import perfect_game, shipped_moves, with_blunder

from distill import review as command
from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Position
from distill.players import review
from distill.players.solver import Solver, moves_to_end

FULL = FULL_COLUMN


@pytest.fixture(scope="module")
def grader(solver: Solver) -> review.Grader:
    return review.Grader("solver")


def end_of(solver: Solver, position: Position) -> tuple[int, int]:
    """How a position ends for the side to move, 1, 0 or −1, and after how many plies."""
    if rules.is_over(position):
        return (-1 if rules.is_won(position) else 0), 0
    best = max(solver.scores(position))
    return int(np.sign(best)), int(moves_to_end([best], [position.ply])[0])


def plain_mark(solver: Solver, position: Position, column: int) -> str:
    """The definitions in words, from how the positions after each move end, not from the scores of moves."""
    ends = {}
    for other in rules.legal_columns(position):
        result, plies = end_of(solver, rules.play(position, other))
        ends[other] = (-result, plies + 1)
    best_result, best_plies = end_of(solver, position)
    result, plies = ends[column]
    if len(ends) == 1:
        return "forced"
    if result < best_result:
        return "blunder" if best_result - result == 2 else "mistake"
    lost = {1: plies - best_plies, 0: 0, -1: best_plies - plies}[result]
    if lost:
        return "inaccuracy" if lost >= 6 else "good"
    others = [ends[other][0] for other in ends if other != column]
    return "only move" if all(other < best_result for other in others) else "best"


@pytest.mark.parametrize(
    ("count", "plies"),
    [(1000, {}), pytest.param(1000, {"plies": tuple(range(42))}, marks=pytest.mark.slow)],
    ids=["quick boards", "all boards"],
)
def test_marks_of_1000_moves_are_those_of_a_plain_computation(solver, count, plies):
    seen = set()
    for position, column in shipped_moves(count, **plies):
        found = review.mark(solver.scores(position), column)
        assert found == plain_mark(solver, position, column), (position, column)
        seen.add(found)
    assert seen == {*review.POINTS, "forced"}


@pytest.mark.parametrize(
    ("scores", "column", "expected"),
    [
        ([FULL, FULL, 3, FULL, FULL, FULL, FULL], 2, "forced"),
        ([1, 0, -1, -2, 0, -1, -2], 0, "only move"),
        ([1, 2, -1, -2, 0, -1, -2], 1, "best"),
        ([0, FULL, -1, FULL, -3, -1, -2], 0, "only move"),
        ([-1, -4, -4, FULL, -4, -4, -4], 0, "best"),  # the others lose, too
        ([5, 3, 2, -1, 0, 0, 0], 1, "good"),
        ([5, 3, 2, -1, 0, 0, 0], 2, "inaccuracy"),
        ([-2, -4, -5, FULL, -9, -9, -9], 1, "good"),
        ([-2, -4, -5, FULL, -9, -9, -9], 2, "inaccuracy"),
        ([5, 3, 2, -1, 0, 0, 0], 4, "mistake"),
        ([0, 0, 0, -1, 0, 0, 0], 3, "mistake"),
        ([1, 0, -1, -2, 0, -1, -2], 2, "blunder"),
    ],
)
def test_each_mark_by_its_definition(scores, column, expected):
    assert review.mark(scores, column) == expected


@pytest.mark.parametrize(
    ("share", "before", "after", "expected"),
    [
        (0.6, 0.9, -0.9, "best"),
        (0.25, 0.9, -0.9, "good"),
        (0.1, 0.9, 0.61, "good"),
        (0.1, 0.9, 0.5, "inaccuracy"),
        (0.1, 0.5, 0.19, "mistake"),
        (0.1, 0.1, -0.2, "mistake"),
        (0.1, 0.2, -0.2, "blunder"),
        (0.0, -0.3, -1.0, "inaccuracy"),
    ],
)
def test_each_estimate_by_its_definition(share, before, after, expected):
    shares = [share, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert review.estimated_mark(shares, 0, before, after) == expected


@given(st.lists(st.sampled_from([*review.POINTS, "forced"]), max_size=42))
def test_accuracy_is_100_if_and_only_if_every_move_with_a_choice_was_best(marks):
    for side, percent in enumerate(review.accuracy(marks)):
        own = [mark for mark in marks[side::2] if mark != "forced"]
        assert (percent is None) == (not own)
        assert (percent == 100) == (bool(own) and set(own) <= {"best", "only move"})
        assert percent is None or 0 <= percent <= 100


def test_perfect_play_has_100_percent_and_a_planted_blunder_is_found_at_its_ply(solver, grader):
    found = review.review(perfect_game(solver), grader)
    assert found.accuracy == (100, 100)
    assert {move.mark for move in found.moves} <= {"best", "only move", "forced"}
    assert "No mistakes found" in review.text(found)
    game = with_blunder(solver, ply=12)
    found = review.review(game, grader)
    (error,) = [move for move in found.moves if move.mark in review.ERRORS]
    assert (error.number, error.side, error.mark, error.column) == (13, "X", "blunder", int(game[12]) - 1)
    own, other = found.accuracy
    assert own is not None
    assert own < other == 100
    text = review.text(found)
    assert f" {game[12]}?? " in text
    assert f" 13 X plays {game[12]}, blunder: O wins in " in text
    assert f"column {error.better + 1} is better: X wins in " in text


def test_the_better_column_and_its_line_are_best_play(solver, grader):
    ends = set()
    game = game_at_random(10)
    for move in review.review(game, grader).moves:
        position = rules.from_moves(game[: move.number - 1])
        if move.mark not in review.ERRORS:
            assert move.line == ""
            continue
        assert move.line[0] == str(move.better + 1)
        for text in move.line:
            scores = solver.scores(position)
            assert scores[int(text) - 1] == max(scores)
            position = rules.play(position, int(text) - 1)
        assert rules.is_over(position) or len(move.line) == review.LINE
        ends.add(rules.is_over(position))
    assert ends == {True, False}


def test_a_search_says_that_it_estimates_and_sees_a_threat_that_was_not_stopped():
    grader = review.Grader("pillar@puct:50")
    found = review.review("4455", grader)  # X gets an open row of two, and soon of three
    error = found.moves[-1]
    assert error.mark in ("mistake", "blunder")
    assert error.after < -0.9
    assert error.better in (2, 5)
    assert error.line[0] == str(error.better + 1)
    assert not found.is_optimal
    assert "Estimated by pillar@puct:50" in review.text(found)
    assert f"  4 O plays 5, {error.mark}: value -" in review.text(found)
    assert all(-1 <= move.after <= 1 and move.mark != "only move" for move in found.moves)


def test_a_search_stands_in_where_the_solver_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert review.default_grader() == "reference/pillar@puct:400"


def test_the_command_prints_text_or_json(grader, capsys):
    game = "4455" + "1"
    assert command.main([game]) == 0
    assert capsys.readouterr().out == review.text(review.review(game, grader)) + "\n"
    assert command.main([game, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["game"] == game
    assert printed["by"] == "solver"
    assert [move["mark"] for move in printed["moves"][:4]] == ["only move", "best", "blunder", "blunder"]
    assert printed["accuracy"] == list(review.review(game, grader).accuracy)

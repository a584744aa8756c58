"""The solver that grades: its scores are those of a plain search, with known values, and the same from several
processes (of mirrored boards: `test_benchmark`); without the package one line names the command that installs it.
"""

import sys

import numpy as np
import pytest
from helpers import bits, random_positions

from distill.common import UserError, provenance
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import EMPTY, Position, from_moves, is_over, is_won, legal_columns, next_position
from distill.players.solver import score_boards
from experiments.boards.plies import moves_to_end

pytest.importorskip("bitbully", reason="the solver is an optional extra")


def plain_best(position: Position, known: dict[Position, tuple[int, int]]) -> tuple[int, int]:
    """(score, plies to the end) for the side to move, by looking at every continuation."""
    if position not in known:
        results = [plain_move(position, column, known) for column in legal_columns(position)]
        known[position] = max(results, key=lambda result: result[0])
    return known[position]


def plain_move(position: Position, column: int, known: dict[Position, tuple[int, int]]) -> tuple[int, int]:
    """(score, plies to the end) of one move, straight from the definition: 22 less the winner's stones at the end."""
    after = next_position(position, column)
    if is_won(after):
        return 22 - after.opponent.bit_count(), 1
    if is_over(after):
        return 0, 1
    score, plies = plain_best(after, known)
    return -score, plies + 1


def test_scores_equal_those_of_a_plain_search(solver):
    outcomes = set()
    for position in random_positions(60, 29, seed=7):
        known: dict[Position, tuple[int, int]] = {}
        expected = [FULL_COLUMN] * 7
        for column in legal_columns(position):
            expected[column], _ = plain_move(position, column, known)
        assert solver.scores(position) == expected, position
        outcomes |= set(np.sign(expected))
    assert outcomes == {-1, 0, 1}


def test_moves_to_end_counts_the_plies_of_perfect_play(solver):
    for position in random_positions(40, 31, seed=7):
        score, plies = plain_best(position, {})
        assert moves_to_end([score], [position.ply]).tolist() == [plies]
    assert moves_to_end([1, 0], [0, 0]).tolist() == [41, 42]


def test_known_scores(solver):
    assert solver.scores(EMPTY) == [-2, -1, 0, 1, 0, -1, -2], "in the centre the first player wins with its last stone"
    three = solver.scores(from_moves("343536"))
    assert max(three) == three[2] == 22 - 4, "a win at once, with the fourth stone"


def test_processes_give_the_scores_of_one():
    positions = random_positions(130, 24, seed=7)
    current, mask = bits(*positions)
    done: list[int] = []
    scores = score_boards(current, mask, workers=2, advance=done.append)
    assert sum(done) == 130
    assert (scores == score_boards(current, mask)).all()


def test_a_missing_package_is_named_with_the_command_that_installs_it(solver, monkeypatch):
    solver.engine.cache_clear()  # as in a new process
    monkeypatch.setitem(sys.modules, "bitbully", None)
    with pytest.raises(UserError) as caught:
        score_boards(*bits(EMPTY))
    assert provenance.install_line("solver") in str(caught.value)
    assert "\n" not in str(caught.value)

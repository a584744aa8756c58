"""The compiled search against the textbook (`mcts/reference.py`), and the tactics a teacher must not miss.

Properties: playouts and trees equal the textbook's, draw for draw; visits sum to the simulations
executed; full columns get none; lanes and savings change no label; wins are taken, threats blocked,
no win is handed over, two-move traps are seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import bits, random_positions
from puct_helpers import BLOCK, WINNING_COLUMN, WINS

from distill.game import rules
from distill.game.rules import from_moves, parse_board
from distill.mcts import playout_trees, reference, rollout, teacher
from distill.mcts.compiled import SLOTS
from distill.mcts.reference import Board, UctNode
from distill.mcts.teacher import SearchSettings, search


@pytest.mark.parametrize("heuristic", [True, False])
def test_a_playout_ends_as_in_the_textbook(heuristic: bool) -> None:
    positions = random_positions(75) + random_positions(75, 30)
    seeds = [reference.playout_state(12345, i) for i in range(len(positions))]
    lanes = rollout.new_lanes(len(positions))
    current, mask = bits(*positions)
    lanes.own[: len(positions)] = current
    lanes.other[: len(positions)] = current ^ mask
    lanes.random[: len(positions)] = np.array(seeds, np.uint64)
    rollout.playouts(lanes, len(positions), heuristic)
    expected = [
        reference.playout(Board.from_bits(p.current, p.mask), seed, heuristic)
        for p, seed in zip(positions, seeds, strict=True)
    ]
    assert lanes.results[: len(positions)].tolist() == expected
    assert set(expected) == {-1, 0, 1}


def nodes_of(trees: playout_trees.PlayoutTrees, lane: int, row: int, node: UctNode) -> int:
    """Compare one compiled node with the textbook's, then all below; returns the number compared."""
    start = (lane * len(trees.bonus) + row) * playout_trees.WIDTH
    compared = 1
    for column in node.board.legal():
        assert trees.rows[start + column] == node.visits[column]
        assert trees.rows[start + playout_trees.TOTAL + column] == node.total[column]
        child, expected = int(trees.rows[start + playout_trees.CHILD + column]), node.children[column]
        if not node.proven[column]:
            assert (child > 0) == (expected is not None)
        if child > 0:
            assert expected is not None
            compared += nodes_of(trees, lane, child, expected)
    return compared


@pytest.mark.parametrize(
    ("exploration", "rollout", "mcts_solver"),
    [(1.0, "heuristic", False), (0.5, "random", False), (0.0, "heuristic", False), (1.0, "heuristic", True)],
)
def test_the_compiled_tree_is_the_textbooks_node_for_node(exploration: float, rollout: Any, mcts_solver: bool) -> None:
    settings = SearchSettings(
        simulations=120, exploration=exploration, rollout=rollout, mcts_solver=mcts_solver, votes=1
    )
    positions = [*random_positions(5, seed=2), rules.EMPTY]
    trees = playout_trees.new_trees(len(positions), settings.simulations, exploration)
    random = np.random.default_rng(3)
    expected: list[UctNode] = []
    for lane, position in enumerate(positions):
        key, order = int(random.integers(2**63)), [float(rank) for rank in random.permutation(7)]
        weights = random.uniform(0.5, 2.5, 7).astype(np.float32)
        playout_trees.begin_at(trees, lane, np.uint64(position.current), np.uint64(position.mask), np.uint64(key))
        trees.order[lane * SLOTS : lane * SLOTS + 7] = playout_trees.UNVISITED + np.array(order)
        trees.weights[(lane + 1) * SLOTS : (lane + 1) * SLOTS + 7] = weights
        board = Board.from_bits(position.current, position.mask)
        expected.append(reference.uct(board, settings, key, order, weights.tolist()))
    playout_trees.advance(
        trees, np.arange(len(positions)), len(positions), settings.simulations, rollout == "heuristic", mcts_solver
    )
    compared = sum(nodes_of(trees, lane, 0, expected[lane]) for lane in range(len(positions)))
    assert compared > 60


@pytest.mark.parametrize("mcts_solver", [False, True])
def test_the_teacher_labels_as_the_textbook_does(mcts_solver: bool) -> None:
    positions = random_positions(8, seed=4)
    settings = SearchSettings(simulations=60, votes=3, mcts_solver=mcts_solver)
    for game, (position, result) in enumerate(zip(positions, search(positions, settings, seeds=9), strict=True)):
        expected = reference.label(Board.from_bits(position.current, position.mask), settings, seed=9, game=game)
        assert list(result.votes) == expected.votes
        assert result.visits.tolist() == expected.visits
        assert result.label == expected.label
        assert result.value == pytest.approx(expected.value, abs=1e-12)


def test_visits_sum_to_the_simulations_executed_and_full_columns_get_none() -> None:
    positions = random_positions(60, seed=5)
    for savings in ("off", "exact"):
        settings = SearchSettings(simulations=700, votes=3, savings=savings)
        for position, result in zip(positions, search(positions, settings), strict=True):
            legal = rules.legal_columns(position)
            assert result.visits.sum() == result.simulations
            assert all(result.visits[column] == 0 for column in range(7) if column not in legal)
            assert result.label in legal
            assert -1 <= result.value <= 1
            if savings == "off":
                assert result.simulations == 2100


def test_savings_leave_every_label_and_cost_less() -> None:
    positions = random_positions(400, seed=6)
    full = search(positions, SearchSettings(simulations=600))
    saved = search(positions, SearchSettings(simulations=600, savings="exact"))
    assert [result.label for result in saved] == [result.label for result in full]
    assert sum(result.simulations for result in saved) < 0.8 * sum(result.simulations for result in full)
    assert any(-1 in result.votes for result in saved)
    for a, b in zip(full, saved, strict=True):
        assert all(one == other for one, other in zip(a.votes, b.votes, strict=True) if other != -1)


def test_searches_too_large_to_stand_side_by_side_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    side_by_side, trees = [], playout_trees.new_trees
    monkeypatch.setattr(
        playout_trees, "new_trees", lambda lanes, *rest: side_by_side.append(lanes) or trees(lanes, *rest)
    )
    settings = SearchSettings(simulations=40)
    results = []
    for nodes in (teacher.MOST_NODES, 120, 1):
        monkeypatch.setattr(teacher, "MOST_NODES", nodes)
        results.append([result.visits.tolist() for result in teacher.search([rules.EMPTY] * 9, settings, 1)])
    assert side_by_side == [9, 3, 1]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("savings", ["off", "exact"])
def test_lanes_in_flight_change_nothing(savings: str) -> None:
    settings = SearchSettings(simulations=100, savings=savings)
    draws = teacher.draw(3, range(20), 41, settings)
    start = np.zeros(20, np.uint64)
    records = [teacher.play(start, start, draws, settings, lanes) for lanes in (1, 3, 20, 64)]
    for record in records[1:]:
        for one, other in zip(records[0], record, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_vote_does_not_depend_on_how_many_there_are() -> None:
    position = from_moves("4433")
    one = search([position], SearchSettings(simulations=200, votes=1), seeds=5)[0]
    five = search([position], SearchSettings(simulations=200, votes=5), seeds=5)[0]
    assert five.votes[:1] == one.votes


def test_a_game_that_is_over_is_refused() -> None:
    with pytest.raises(ValueError, match="the game is over"):
        search([from_moves("1212121")], SearchSettings(simulations=10))


SETTINGS = SearchSettings(simulations=1000)


def label(drawing: str) -> int:
    return search([parse_board(drawing)], SETTINGS)[0].label


@pytest.mark.parametrize("direction", WINS)
def test_wins_in_one(direction: str) -> None:
    position = parse_board(WINS[direction])
    winning = [c for c in rules.legal_columns(position) if rules.is_won(rules.play(position, c))]
    assert winning == [WINNING_COLUMN[direction]] == [label(WINS[direction])]


THREE_UP = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . X . . .
    . . . X . . .
    . O . X O . .
"""


@pytest.mark.parametrize(("drawing", "column"), [(THREE_UP, 3), (BLOCK, 4)], ids=["vertical", "horizontal"])
def test_blocks_an_immediate_threat(drawing: str, column: int) -> None:
    assert label(drawing) == column


def test_stops_an_open_three_before_it_is_one() -> None:
    # X threatens to make X X X with both ends open; O must answer beside the two.
    assert label("""
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . O . . .
        . . . X X . .""") in {2, 5}


def test_makes_a_two_move_trap() -> None:
    # Either neighbour gives X three in the bottom row with both ends open: two wins at once.
    assert label("""
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . O . . .
        . . . O . . .
        . . . X X . .""") in {2, 5}


def test_does_not_hand_over_a_win() -> None:
    # A stone of O in column 5 would let X complete the second row on top of it.
    drawing = """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . O . . . .
        . O X X X . .
        . X O X O . ."""
    position = parse_board(drawing)
    after = rules.play(position, 5)
    assert rules.is_won(rules.play(after, 5))
    assert label(drawing) != 5


def test_a_proven_win_is_chosen_and_valued_as_one() -> None:
    # X holds three in the bottom row with both ends open: O, to move, is lost.
    drawing = """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . O . O . .
        . . X X X . ."""
    settings = SearchSettings(simulations=2000, mcts_solver=True)
    position = parse_board(drawing)
    lost = search([position], settings)[0]
    assert lost.value < -0.9
    won = search([rules.play(position, 0)], settings)[0]
    assert won.label in {1, 5}
    assert won.value > 0.9


def test_proofs_find_a_forced_win_that_means_hide() -> None:
    # Plain UCT needs many visits to see that all replies lose; the solver option proves it.
    position = from_moves("4455")
    plain = search([position], SearchSettings(simulations=400, votes=1, noise_fraction=0.0))[0]
    proven = search([position], SearchSettings(simulations=400, votes=1, noise_fraction=0.0, mcts_solver=True))[0]
    assert proven.label in {2, 5}
    assert proven.value > plain.value

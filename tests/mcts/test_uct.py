"""UCT (`mcts/uct.py`) against the textbook (`mcts/reference.py`), and the tactics a teacher must not miss.

Properties: rollouts and trees equal the textbook's, draw for draw; so do whole games; visits sum to the simulations;
full columns get none; lanes change nothing; wins are taken, threats blocked, no win is handed over, two-move traps are
seen; noise at the move leaves labels and visits clean.
"""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import bits, low, random_positions
from puct_helpers import BLOCK, WINNING_COLUMN, WINS, assert_the_textbook_plays

from distill.common import UserError, sources
from distill.game import encoding, rules
from distill.game.rules import from_moves, parse_board
from distill.games import playing
from distill.games.settings import RunSettings
from distill.mcts import reference, uct
from distill.mcts import settings as settings_module
from distill.mcts.engine import rollout, tree, uct_simulation
from distill.mcts.reference import UNKNOWN, Node
from distill.mcts.uct import UctSettings, search


@pytest.mark.parametrize("heuristic", [True, False])
def test_a_rollout_ends_as_in_the_textbook(heuristic):
    positions = random_positions(75) + random_positions(75, 30)
    number = len(positions)
    seeds = [reference.rollout_seed(12345, i) for i in range(number)]
    rollouts = rollout.new_rollouts(number)
    current, mask = bits(*positions)
    rollouts.current[:number], rollouts.opponent[:number] = current, current ^ mask
    rollouts.random[:number] = np.array(seeds, np.uint64)
    rollout.roll_out(rollouts, number, heuristic)
    expected = [reference.rollout(position, seed, heuristic) for position, seed in zip(positions, seeds, strict=True)]
    assert rollouts.results_in_order[:number].tolist() == expected
    assert set(expected) == {-1, 0, 1}


def nodes_of(trees: uct_simulation.UctTrees, lane: int, row: int, node: Node) -> int:
    """Compare one compiled node with the textbook's, then all below; returns the number compared."""
    start = (lane * len(trees.bonus) + row) * tree.WIDTH
    compared = 1
    for column in rules.legal_columns(node.position):
        assert trees.rows[start + column] == node.visits[column]
        assert trees.rows[start + tree.TOTAL + column] == node.total[column]
        child, expected = int(trees.rows[start + tree.CHILD + column]), node.children[column]
        if node.proven[column] == UNKNOWN:
            assert (child > 0) == (expected is not None)
        if child > 0:
            assert expected is not None
            compared += nodes_of(trees, lane, child, expected)
    return compared


@pytest.mark.parametrize(
    ("exploration", "rollout", "mcts_solver"),
    [(1.0, "heuristic", False), (0.5, "random", False), (0.0, "heuristic", False), (1.0, "heuristic", True)],
)
def test_the_compiled_tree_is_the_textbooks_node_for_node(exploration, rollout, mcts_solver):
    settings = UctSettings(simulations=120, exploration=exploration, rollout=rollout, mcts_solver=mcts_solver, votes=1)
    positions = [*random_positions(5, seed=2), rules.EMPTY]
    trees = uct_simulation.new_trees(len(positions), settings)
    key, order, gamma, _ = (array[:, 0] for array in uct.draw([(3, game) for game in range(6)], 1, settings))
    uct_simulation.search(trees, *bits(*positions), key[:, 0], order[:, 0], gamma[:, 0])
    compared = 0
    for lane, position in enumerate(positions):
        weights = reference.exploration_weights(position, gamma[lane, 0], settings.noise_fraction)
        root = reference.uct(position, settings, int(key[lane, 0]), order[lane, 0].tolist(), weights)
        compared += nodes_of(trees, lane, 0, root)
    assert compared > 60


@pytest.mark.parametrize("changed", [{}, {"mcts_solver": True}, {"noise_at": "move", "noise_fraction": 0.5}])
def test_the_textbook_plays_the_same_games(changed):
    settings, starts = UctSettings(simulations=30, **changed), random_positions(4, 20, 30, seed=4)
    record = uct.play(*bits(*starts), settings, seeds=9, steps=12)
    draws = uct.draw([(9, game) for game in range(4)], 12, settings)
    assert_the_textbook_plays(starts, record, draws, partial(reference.label, settings=settings))
    assert (record.simulations[:, 0] == 90).all()


def test_the_textbook_labels_games_and_an_edit_of_it_is_another_run(monkeypatch):
    settings = RunSettings(labeller="distill.mcts.textbook:label", opening_moves=(25, 30))
    rows = playing.play_games(settings, 0, 2).to_pylist()
    assert all(sum(row["visits"]) == 300 and len(row["votes"]) == 3 for row in rows)
    for module in (reference, rules, settings_module):
        with monkeypatch.context() as patch:
            patch.setitem(sources._imported, module.__file__, "edited")
            with pytest.raises(UserError, match=r"\.py: changed after this process imported it"):
                RunSettings(labeller="distill.mcts.textbook:label")


def test_visits_sum_to_the_simulations_and_full_columns_get_none():
    positions, settings = random_positions(60, seed=5), UctSettings(simulations=700)
    boards, more_votes = encoding.boards(*bits(*positions)), settings.replace(votes=5)
    results, of_boards, of_more = search(positions, settings), search(boards, settings), search(positions, more_votes)
    votes = [result.votes for result in results]
    assert votes == [result.votes for result in of_boards] == [result.votes[:3] for result in of_more]
    for position, result in zip(positions, results, strict=True):
        legal = rules.legal_columns(position)
        assert result.visits.sum() == result.simulations == 2100
        assert all(result.visits[column] == 0 for column in range(7) if column not in legal)
        assert result.label in legal
        assert -1 <= result.value <= 1


def test_lanes_in_flight_change_nothing(monkeypatch):
    start, records = np.zeros(20, np.uint64), []
    for lanes in (1, 3, 20, 64):
        monkeypatch.setattr(uct, "LANES", lanes)
        records.append(uct.play(start, start, UctSettings(simulations=100), seeds=3))
    for record in records[1:]:
        for one, other in zip(records[0], record, strict=True):
            np.testing.assert_array_equal(one, other)


OPEN_TWO = low("""
    . . . O . . .
    . . . X X . .
""")
BEFORE_A_TRAP = low("""
    . . . O . . .
    . . . O . . .
    . . . X X . .
""")
WIN_ON_TOP = low("""
    . . O . . . .
    . O X X X . .
    . X O X O . .
""")
"""A stone of O in column 5 would let X complete the second row on top of it."""


@pytest.mark.parametrize(
    ("drawing", "columns"),
    [
        *((WINS[direction], {WINNING_COLUMN[direction]}) for direction in WINS),
        (BLOCK, {4}),
        (OPEN_TWO, {2, 5}),  # X would get three with both ends open, two wins at once: O must play there
        (BEFORE_A_TRAP, {2, 5}),  # and so must X
        (WIN_ON_TOP, {0, 1, 2, 3, 4, 6}),
    ],
)
def test_it_wins_blocks_and_sees_an_open_three_before_it_is_one(drawing, columns):
    assert search([parse_board(drawing)], UctSettings(simulations=1000))[0].label in columns


def test_proofs_find_a_forced_win_that_means_hide():
    # Plain UCT needs many visits to see that all replies lose; the solver option proves it.
    settings = UctSettings(simulations=400, votes=1, noise_fraction=0.0)
    plain, proven = (search([from_moves("4455")], settings.replace(mcts_solver=proofs))[0] for proofs in (False, True))
    assert proven.label in {2, 5}
    assert proven.value > max(plain.value, 0.9)
    lost = search([from_moves("44553")], settings.replace(mcts_solver=True))[0]
    assert lost.value < -0.9


def games_with(noise_at: Any, noise_fraction: float = 0.25) -> pa.Table:
    search = UctSettings(simulations=120, noise_at=noise_at, noise_fraction=noise_fraction)
    return playing.play_games(RunSettings(search=search), 0, 12)


def test_noise_at_the_move_leaves_labels_and_visits_clean():
    clean, at_label, at_move = (games_with(*how).to_pandas() for how in (("label", 0.0), ("label",), ("move",)))
    first, *others = (rows.groupby("game_id").first() for rows in (clean, at_label, at_move))
    same = [[list(a) == list(b) for a, b in zip(rows.visits, first.visits, strict=True)] for rows in others]
    assert not any(same[0])
    assert all(same[1])
    assert (clean.move == clean.label).all()
    assert (at_label.move == at_label.label).all()
    assert 0.1 < (at_move.move != at_move.label).mean() < 0.3  # a quarter, less those that noise puts on the label

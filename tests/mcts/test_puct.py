"""PUCT and Gumbel search (`mcts/puct.py`). Properties:

- the compiled search plays the games of the textbook (`mcts/reference_puct.py`), for every rule, root and first-play
  value, with and without noise and proofs: the same visits, labels, moves, values;
- wins, threats and double threats are seen, and nothing decided is evaluated; a full tree has the true value;
- neither lanes, neighbours nor evaluations kept from earlier searches change anything.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers import bits, random_positions
from puct_helpers import BLOCK, LOST, STARTS, WIN, WINS, assert_the_textbook_plays, look, predict, uniform

from distill.game import outputs, rules
from distill.game.rules import CELLS, COLUMNS, Position, from_moves, parse_board
from distill.mcts import puct, reference_puct
from distill.mcts.engine.puct_tree import halving_schedule
from distill.mcts.puct import PuctSettings, draw, new_kept, quiet

TEXTBOOK_STARTS = [from_moves(moves) for moves in ("444444333", "1234567712345", "22334")]

KINDS = {
    "constant": {},
    "first play as 0": {"fpu_reduction": None},
    "growing": {"rule": "growing", "exploration": 2.5},
    "printed": {"rule": "printed", "exploration": 0.5},
    "no proofs": {"mcts_solver": False},
    "quiet": {"noise_fraction": 0.0, "sampling_plies": 0},
    "cool": {"temperature": 0.5, "sampling_plies": 42},
    "discounted": {"discount": 0.95},
    "discounted, no proofs": {"discount": 0.9, "mcts_solver": False},
    "gumbel": {"root": "gumbel"},
    "gumbel, discounted": {"root": "gumbel", "discount": 0.95},
    "gumbel, all moves drawn": {"root": "gumbel", "sampling_plies": 42},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_textbook_plays_the_same_games(kind):
    settings = PuctSettings(simulations=18, **KINDS[kind])
    record = puct.play(*bits(*TEXTBOOK_STARTS), predict, settings, seeds=3, lanes=2)
    draws = draw([(3, game) for game in range(3)], CELLS, settings)

    def evaluate(position: Position) -> tuple[list[float], float]:
        current, mask = bits(position)
        logits, value = outputs.evaluation(predict(current, mask), mask)
        return logits[0].tolist(), float(value[0])

    search = partial(reference_puct.search, settings=settings, evaluate=evaluate)
    assert_the_textbook_plays(TEXTBOOK_STARTS, record, draws, search)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize(("drawing", "column"), [(WIN, 3), (WINS["horizontal"], 1)], ids=["win", "and win by force"])
def test_a_win_in_one_is_proven_and_played(root, drawing, column):
    record = look(PuctSettings(simulations=40, root=root), parse_board(drawing))
    assert record.label[0, 0] == record.move[0, 0] == record.visits[0, 0].argmax() == column
    assert record.value[0, 0] == 1.0


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("solver", [True, False])
def test_a_threat_is_blocked_by_a_search_that_knows_nothing(root, solver):
    settings = PuctSettings(simulations=150, root=root, mcts_solver=solver, noise_fraction=0.0)
    record = look(settings, parse_board(BLOCK))
    assert record.label[0, 0] == 4
    if solver and root == "puct":
        assert record.visits[0, 0].tolist() == [0, 0, 0, 0, 150, 0, 0]


def test_a_double_threat_is_lost_and_nothing_decided_is_evaluated():
    evaluated: list[int] = []

    def counting(current: Any, mask: Any) -> Any:
        evaluated.append(len(current))
        return uniform(current, mask)

    record = look(PuctSettings(simulations=50), parse_board(LOST), parse_board(WIN), network=counting)
    assert record.value[:, 0].tolist() == [-1.0, 1.0]
    assert record.visits[:, 0].sum(1).tolist() == [50, 50]
    assert sum(evaluated) == 2  # the two roots


def test_lanes_and_neighbours_change_nothing():
    settings = PuctSettings(simulations=20)
    told: list[int] = []
    ended = lambda _, games: told.extend(games.tolist())  # noqa: E731
    together = puct.play(*bits(*STARTS), predict, settings, seeds=9, lanes=6, ended=ended)
    assert sorted(told) == list(range(len(STARTS))), "each finished game is reported once"
    few = puct.play(*bits(*STARTS), predict, settings, seeds=9, lanes=2)
    alone = puct.play(*bits(STARTS[3]), predict, settings, seeds=9, games=[3])
    for one, other in zip(together, few, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(together.visits[3], alone.visits[0])
    assert not np.array_equal(together.move, puct.play(*bits(*STARTS), predict, settings, seeds=10).move)
    both = puct.play(*bits(STARTS[1], STARTS[4]), predict, settings, seeds=[7, 8], steps=1)
    assert np.array_equal(both.visits[1], puct.play(*bits(STARTS[4]), predict, settings, seeds=[8], steps=1).visits[0])


def test_evaluations_kept_from_earlier_searches_change_nothing_and_are_not_repeated():
    settings, kept, evaluated = PuctSettings(simulations=20), new_kept(), list[int]()

    def counting(current: Any, mask: Any) -> Any:
        evaluated.append(len(current))
        return predict(current, mask)

    first = puct.play(*bits(*STARTS), counting, settings, seeds=2, kept=kept)
    whole = sum(evaluated)
    second = puct.play(*bits(*STARTS), counting, settings, seeds=2, kept=kept)
    assert all(map(np.array_equal, first, second))
    assert sum(evaluated) < 1.02 * whole, "but for a few that share a place"


def _game_value(position: Position) -> int:
    """1, 0, -1 for the side to move under perfect play, by trying everything."""
    if rules.is_won(position):
        return -1
    columns = rules.legal_columns(position)
    return max((-_game_value(rules.next_position(position, column)) for column in columns), default=0)


def test_late_positions_are_decided_exactly_whatever_the_network_says():
    positions = random_positions(30, 33, 33, seed=2)
    record = look(quiet(PuctSettings(simulations=4000)), *positions, network=predict)
    values = [_game_value(position) for position in positions]
    assert {-1, 1} <= set(values)
    for place, position in enumerate(positions):
        if values[place]:
            assert record.value[place, 0] == values[place], rules.draw(position)
        after = rules.next_position(position, int(record.label[place, 0]))
        assert -_game_value(after) == values[place], rules.draw(position)


def test_halving_takes_the_turns_of_the_textbook():
    for considered in range(1, COLUMNS + 1):
        for simulations in (*range(1, 130), 1000, 4096):
            expected = reference_puct.halving_schedule(simulations, considered)
            assert halving_schedule(simulations, considered).tolist() == expected


def test_a_gumbel_root_of_few_simulations_improves_on_the_policy():
    """The value of a lost reply is seen in one visit a column, and the policy recorded turns away from it."""
    position = parse_board(BLOCK)

    def wants_column_6(current: Any, mask: Any) -> Any:
        logits, value = uniform(current, mask)
        logits[:, 6] = 1.0
        return logits, value

    settings = PuctSettings(simulations=7, root="gumbel", noise_fraction=0.0)
    record = look(settings, position, network=wants_column_6)
    assert record.label[0, 0] == 4
    assert record.visits[0, 0, 4] > 990
    assert record.visits[0, 0].sum() == 1000
    assert abs(record.value[0, 0]) < 0.05  # that of the reply, though six of seven visits saw a loss

"""The noise ceiling: it is what plain Python says, and no search draws as another one or as the run."""

from collections import Counter

import numpy as np
import pytest
from helpers import bits, low, make_games, write_games
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from distill.evaluation.labels import ceiling, fresh_labels, noise_ceiling
from distill.game.rules import COLUMNS_FROM_CENTRE, is_own_mirror, mirror, parse_board
from distill.games import reader
from distill.games.reader import RawRows
from distill.games.settings import RunSettings
from distill.mcts.uct import UctSettings
from distill.players.network import Searched, SearchPlayer
from distill.training.accuracy import fold_columns, fold_shares

SYMMETRIC = low("""
    . . . O . . .
    . . . X . . .
""")
WON_AT_ONCE = low("""
    X . . . . . .
    X O . . . . .
    X O . . O . .
""")
SETTINGS = UctSettings(simulations=30, votes=3)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> RawRows:
    folder = tmp_path_factory.mktemp("games") / "run"
    write_games(folder, make_games(4, seed=1), identity=RunSettings(search=SETTINGS, seed=1).games_identity())
    return reader.raw_rows([folder], None, 0.0)


@given(st.lists(st.integers(0, 6), min_size=9, max_size=9), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_the_ceiling_is_that_of_plain_python(labels, seed, most):
    visits = np.random.default_rng(seed).integers(0, most, (9, 7))
    hits = 0
    for left_out, label in enumerate(labels):
        others = [place for place in range(9) if place != left_out]
        votes, weight = Counter(labels[place] for place in others), visits[others].sum(0)
        hits += label == max(COLUMNS_FROM_CENTRE, key=lambda column: (votes[column], weight[column]))
    array = np.array([labels])
    assert ceiling(array, visits[None])[0] == pytest.approx(hits / 9)


def test_on_a_board_that_is_its_own_mirror_a_column_and_its_mirror_are_one():
    boards = [parse_board(SYMMETRIC), parse_board(WON_AT_ONCE), mirror(parse_board(WON_AT_ONCE))]
    columns, own_mirror = np.array([[0, 6, 2, 4, 3]] * 3), is_own_mirror(*bits(*boards))
    folded = [[0, 0, 2, 2, 3], [0, 6, 2, 4, 3], [0, 6, 2, 4, 3]]
    assert fold_columns(columns, own_mirror).tolist() == folded
    shares = np.tile(np.arange(5, 12), (3, 2, 1))
    assert fold_shares(shares, own_mirror)[:, 1].tolist() == [[16, 16, 16, 8, 0, 0, 0], *shares[1:, 1].tolist()]


def test_a_row_gets_the_same_labels_whatever_else_is_asked(rows, monkeypatch):
    some = rows[np.arange(12)]
    counted: list[int] = []
    labels, visits = fresh_labels(some.current, some.mask, SETTINGS, 3, advance=counted.append)
    assert labels.shape == (12, 9)
    assert (visits.sum(-1) == 3 * 30).all()
    assert sum(counted) == 12 * 9
    monkeypatch.setattr("distill.evaluation.labels.CHUNK", 10)
    fewer, their_visits = fresh_labels(some.current[:5], some.mask[:5], SETTINGS, 3)
    np.testing.assert_array_equal(fewer, labels[:5])
    np.testing.assert_array_equal(their_visits, visits[:5])


def test_no_search_draws_as_another_one_or_as_the_run_did(rows, monkeypatch):
    drawn: list[int] = []

    def search(self: SearchPlayer, current: object, mask: object, seeds: NDArray[np.uint64]) -> Searched:
        drawn.extend(seeds.tolist())
        return whole(self, current, mask, seeds)

    whole = SearchPlayer.search
    monkeypatch.setattr(SearchPlayer, "search", search)
    noise_ceiling(rows, SETTINGS, seed=1)
    assert len(drawn) == len(set(drawn)) == 9 * len(rows)
    assert not set(drawn) & {0, 1}, "a run draws by its own seed"


def test_the_ceiling_is_1_where_a_win_is_on_the_board_and_lower_elsewhere(rows):
    current, mask = bits(parse_board(WON_AT_ONCE))
    labels, _ = fresh_labels(current, mask, UctSettings(simulations=200), 0)
    assert labels.tolist() == [[0] * 9], "the win is seen whatever the noise"
    noisy = noise_ceiling(rows, SETTINGS, seed=0)
    assert 1 / 7 < noisy.low < noisy.mean < noisy.high < 1
    assert noisy.units == len(np.unique(rows.game)) == 4
    assert noisy == noise_ceiling(rows, SETTINGS, seed=0)

"""Matches and the arena command. Properties:

- Openings are distinct up to mirror, leave the game open, and are played from both sides.
- The record has states from the side to move, moves, and results with the documented signs.
- A game depends on its seed and its place alone.
- Elo and intervals are those of the textbooks, and the command owns up to games that are the same.
"""

import re

import numpy as np
import pytest
from helpers import DRAWN

from distill import arena
from distill.game.encoding import bitboards
from distill.game.rules import Bitboards, Position, from_moves, has_four, legal_columns, mirror, next_position
from distill.players.intervals import difference, elo, elo_with_intervals, share
from distill.players.match import Pairing, openings, pair_points, paired, play_games
from distill.players.names import make
from distill.players.player import Choices, Seeds


class Fixed:
    """Plays the columns of a list, by ply; its name is shown in errors."""

    def __init__(self, moves: str) -> None:
        self.name = f"fixed {moves}"
        self.columns = [int(move) - 1 for move in moves]

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        return Choices(moves=np.array([self.columns[ply] for ply in np.bitwise_count(mask)], np.int64))


@pytest.mark.parametrize(("count", "plies"), [(100, 6), (25, 2), (1, 0), (300, 8)])
def test_openings_are_unlike_each_other_and_leave_the_game_open(count, plies):
    found = openings(count, plies, seed=1)
    positions = [from_moves(opening) for opening in found]
    assert len(found) == count
    assert {position.ply for position in positions} == {plies}
    keys = {frozenset({position, mirror(position)}) for position in positions}
    assert len(keys) == count
    for position in positions:
        for side in (position, Position(position.opponent, position.mask)):
            assert not any(has_four(next_position(side, column).opponent) for column in legal_columns(side))
    assert found == openings(count, plies, seed=1) != openings(count, plies, seed=2) or plies == 0


def test_the_record_follows_the_protocol():
    # X stacks column 1 and wins with the fourth stone; O stacks column 2.
    games = play_games([Fixed("1212121")] * 2, [Pairing(first=0, second=1)], seed=0)
    assert games.results.tolist() == [1]
    assert games.lines == ((0, 1, 0, 1, 0, 1, 0),)
    assert games.moves.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert (games.states.shape, games.states.dtype) == ((7, 6, 7), np.int8)
    assert (games.states[0] == 0).all()
    assert games.states[1, 5, 0] == -1, "after each move the board is seen from the other side"
    assert games.states[2, 5, :2].tolist() == [1, -1]
    drawn = play_games([Fixed(DRAWN)] * 2, [Pairing(first=0, second=1)], seed=0)
    assert (len(drawn.moves), drawn.results.tolist()) == (42, [0])


def test_each_opening_is_played_from_both_sides():
    starts = openings(5, 4, seed=0)
    pairings = paired(0, 1, starts)
    games = play_games([make("punisher"), make("random")], pairings, seed=1)
    assert [game[:4] for game in games.lines] == [opening for opening in starts for _ in range(2)]
    assert [(pairing.first, pairing.second) for pairing in pairings] == [(0, 1), (1, 0)] * 5
    for game, line in enumerate(games.lines):
        final = from_moves(line)
        first_won = has_four(final.opponent) * (1 if final.ply % 2 else -1)
        assert games.results[game] == first_won
    current, mask = bitboards(games.states)
    assert (np.bitwise_count(mask) >= 4).all()
    assert (np.bitwise_count(current) == np.bitwise_count(mask) // 2).all()


def test_a_game_does_not_depend_on_those_beside_it():
    starts = openings(6, 4, seed=0)
    players = [make("uct:20"), make("random")]
    together = play_games(players, paired(0, 1, starts), seed=1)
    fewer = play_games(players, paired(0, 1, starts[:2]), seed=1)
    assert together.lines[:4] == fewer.lines
    assert play_games(players, paired(0, 1, starts), seed=2).lines != together.lines


def test_a_player_moves_in_all_games_that_wait_for_it():
    sizes = []

    class Counted(Fixed):
        def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
            sizes.append(len(mask))
            return super().choose(current, mask, seeds)

    play_games([Counted("1212121"), Counted("1212121")], paired(0, 1, [()] * 4), seed=0)
    assert sizes == [4, 8, 8, 8, 8, 8, 8, 4]


def test_points_count_both_games_of_an_opening():
    starts = openings(4, 4, seed=0)
    pairings = paired(0, 1, starts) + paired(0, 2, starts)
    games = play_games([make("punisher"), make("random"), make("random")], pairings, seed=1)
    points = pair_points(games, pairings, 3)
    assert points.shape == (4, 3, 3)
    assert np.isnan(points[:, 1, 2]).all(), "1 and 2 never met"
    assert (points[:, 0, 1] + points[:, 1, 0] == 2).all()
    for opening in range(4):
        first, second = games.results[2 * opening : 2 * opening + 2]
        assert points[opening, 0, 1] == (first + 1) / 2 + (1 - second) / 2


def test_elo_is_what_the_scores_say():
    # 10 / 11 of the points against one opponent are 400 points of difference.
    points, games = np.array([[0.0, 1000.0], [100.0, 0.0]]), np.array([[0.0, 1100.0], [1100.0, 0.0]])
    ratings = elo(points, games)
    assert ratings.sum() == pytest.approx(0)
    assert ratings[0] - ratings[1] == pytest.approx(400, abs=1)  # the prior's half points cost under one
    chain = np.array([[0.0, 75, 0], [25, 0, 75], [0, 25, 0]])  # the first and the last never met
    ratings = elo(chain, chain + chain.T)
    assert ratings[0] - ratings[1] == pytest.approx(ratings[1] - ratings[2], abs=1)
    assert ratings[0] > ratings[1]
    won = np.full((50, 2, 2), np.nan)
    won[:, 0, 1], won[:, 1, 0] = 2, 0
    best, worst = elo_with_intervals(won, seed=0)
    assert best.low < best.mean < best.high < np.inf
    assert best.low > 200 > -200 > worst.high
    # 50 of 50 openings: Jeffreys' interval begins at the 2.5 % point of Beta(50.5, 0.5).
    assert 1 / (1 + 10 ** ((worst.high - best.low) / 400)) == pytest.approx(0.951, abs=0.01)


def test_a_share_has_wilsons_interval():
    # 10 of 20 independent boards: Wilson (1927) gives 0.299 to 0.701.
    estimate = share([1.0] * 10 + [0.0] * 10, trials=1)
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((0.5, 0.299, 0.701), abs=5e-3)
    certain = share(np.ones(50), trials=1)
    assert certain.high == 1 > certain.low > 0.9
    halves = share(np.full(20, 0.5), trials=2)
    assert halves.high - halves.low < estimate.high - estimate.low, "two trials a board know more than one"
    assert np.isnan(share([]).mean)


def test_a_share_covers_the_truth_19_times_in_20():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        skill = rng.random(200) < 0.5  # boards on which both trials succeed with 0.9, or with 0.5
        estimate = share(rng.binomial(2, np.where(skill, 0.9, 0.5)) / 2)
        hits += estimate.low <= 0.7 <= estimate.high
    assert 0.92 < hits / 400 < 0.98  # ± three standard deviations of Binomial(400, 0.95)


def test_rows_of_one_game_count_as_one_unit():
    rng = np.random.default_rng(0)
    games = (rng.random(300) < 0.6).astype(float)
    number, copies = np.repeat(np.arange(300), 8), np.repeat(games, 8)
    alone, rows = share(games, 1), share(copies, 1, number)
    assert (rows.units, rows.low, rows.high) == pytest.approx((300, alone.low, alone.high))
    assert difference(copies, 0 * copies, number).low == pytest.approx(difference(games, 0 * games).low)
    hits = 0
    for _ in range(400):  # games of 1 to 30 rows, some easy, some hard
        number = np.repeat(np.arange(200), rng.integers(1, 31, 200))
        estimate = share(rng.random(len(number)) < np.where(rng.random(200) < 0.5, 0.9, 0.5)[number], 1, number)
        hits += estimate.low <= 0.7 <= estimate.high
    assert 0.92 < hits / 400 < 0.98


def test_a_paired_difference_is_narrower_than_two_shares():
    rng = np.random.default_rng(0)
    ours = (rng.random(500) < 0.7).astype(float)
    theirs = np.where(rng.random(500) < 0.05, 1 - ours, ours)
    gap = difference(ours, theirs)
    assert gap.low < gap.mean < gap.high
    assert gap.high - gap.low < share(ours, trials=1).high - share(ours, trials=1).low
    assert gap.mean == pytest.approx(ours.mean() - theirs.mean())


def test_the_command_prints_the_table(capsys):
    assert arena.main(["random", "punisher", "uct:50", "--games", "20", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()[2:5]]
    assert [row[0] for row in rows] == ["uct:50", "punisher", "random"]
    assert [int(row[1]) for row in rows] == [40] * 3
    assert sum(int(row[2]) - int(row[4]) for row in rows) == 0
    assert 50 < int(re.search(r"60 games, (\d+) of them distinct, from 10 openings", printed)[1]) <= 60
    assert printed.splitlines()[-1].startswith("uct:50 is first with")


def test_repeated_games_are_owned_up_to(monkeypatch, capsys):
    monkeypatch.setattr(arena.names, "make", lambda word, workers: Fixed("1212121"))
    assert arena.main(["random", "punisher", "--games", "4", "--opening-plies", "0"]) == 0
    printed = capsys.readouterr().out
    assert "4 games, 1 of them distinct" in printed
    assert "many games are the same" in printed
    assert "of them distinct, from the empty board" in printed

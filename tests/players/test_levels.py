"""The named levels: every level takes a win in one and blocks threats as often as stated, its probabilities turn with
the board, and a move is drawn from them by its seed.
"""

import importlib.util

import numpy as np
import pytest
from helpers import bits
from numpy.typing import NDArray

from distill.datasets import benchmark
from distill.game import tactics
from distill.game.mixing import splitmix64
from distill.game.rules import from_moves, legal_mask, mirror_bits
from distill.players import levels
from distill.players.levels import LEVELS
from distill.players.names import make
from distill.players.player import seeds_for

BOARDS = benchmark.read()
CURRENT, MASK = BOARDS.current, BOARDS.mask
OWN = tactics.wins(CURRENT, MASK)
THREATS = tactics.wins(CURRENT ^ MASK, MASK)


def policies(count: int, mask: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Any policies at all: even the worst leaves the rule right."""
    shares = np.random.default_rng(count).dirichlet(np.full(7, 0.3), count) * legal_mask(mask)
    return shares / shares.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "straight", "diagonal"),
    [("starter", 0.1, 0), ("beginner", 0.7, 0.4), ("casual", 1, 0.85), ("club", 1, 1), ("expert", 1, 1)],
)
def test_a_threat_is_blocked_as_often_as_stated(name, straight, diagonal):
    opponent = CURRENT ^ MASK
    lines = [tactics.wins_in(opponent, MASK, direction) for direction in ("vertical", "horizontal")]
    is_straight = (lines[0] | lines[1]).any(1)
    with_choice = (legal_mask(MASK) & ~THREATS).any(1)
    asked = THREATS.any(1) & ~OWN.any(1) & with_choice
    for rows, rate in ((asked & is_straight, straight), (asked & ~is_straight, diagonal)):
        assert rows.sum() > 200
        chances = levels.probabilities(levels.named(name), policies(rows.sum(), MASK[rows]), CURRENT[rows], MASK[rows])
        np.testing.assert_allclose((chances * THREATS[rows]).sum(1), rate)


@pytest.mark.parametrize("name", LEVELS)
def test_a_win_in_one_is_never_missed_and_probabilities_are_of_open_columns_and_turn_with_the_board(name):
    threat = bits(from_moves("12121"))  # three stones of the first player in column 1
    blocks = levels.probabilities(levels.named(name), np.eye(7)[[4]], *threat)[0, 0]
    assert blocks == pytest.approx(levels.named(name).block_straight), "although the policy has no share"
    policy = policies(len(MASK), MASK)
    chances = levels.probabilities(levels.named(name), policy, CURRENT, MASK)
    assert chances.dtype == np.float64
    assert (chances >= 0).all()
    assert (chances[~legal_mask(MASK)] == 0).all()
    for direction in tactics.DIRECTIONS:
        winning = tactics.wins_in(CURRENT, MASK, direction).any(1)
        assert winning.sum() > 100
        assert (chances[winning][~OWN[winning]] == 0).all()
    np.testing.assert_allclose(chances.sum(1), 1)
    mirrored = levels.probabilities(levels.named(name), policy[:, ::-1], mirror_bits(CURRENT), mirror_bits(MASK))
    np.testing.assert_allclose(mirrored[:, ::-1], chances, atol=1e-12)


@pytest.mark.parametrize(
    ("moves", "there_is"),
    [
        ("", False),
        ("4", False),
        ("443", True),  # two in a row in the open: a third stone threatens both ends
        ("4412", False),
        ("121213", False),  # a threat is none, for it is seen by itself
        ("13235162", True),  # a stone in column 4 lets the opponent win on top of it
    ],
)
def test_what_a_trap_is(moves, there_is):
    assert levels.has_trap(*bits(from_moves(moves))).tolist() == [there_is]


@pytest.mark.parametrize("name", ["beginner", "casual"])
def test_who_sees_no_trap_does_not_ask_the_network_there(name):
    quiet = ~OWN.any(1) & ~THREATS.any(1)
    trapped = levels.has_trap(CURRENT, MASK)
    for rows, asks in ((quiet & trapped, False), (quiet & ~trapped, True)):
        current, mask = CURRENT[rows], MASK[rows]
        assert len(mask) > 200
        uniform = legal_mask(mask) / legal_mask(mask).sum(1, keepdims=True)
        one, other = (
            levels.probabilities(levels.named(name), policy, current, mask)
            for policy in (policies(len(mask), mask), uniform)
        )
        assert (np.abs(one - other).max(1) > 1e-6).mean() == pytest.approx(float(asks), abs=0.02)


def test_club_is_the_policy_at_a_temperature_and_the_expert_its_best_move():
    rows = ~OWN.any(1) & ~THREATS.any(1)
    policy = policies(rows.sum(), MASK[rows])
    expected = policy ** (1 / levels.named("club").temperature)
    chances = levels.probabilities(levels.named("club"), policy, CURRENT[rows], MASK[rows])
    np.testing.assert_allclose(chances, expected / expected.sum(1, keepdims=True))
    best = levels.probabilities(levels.named("expert"), policy, CURRENT[rows], MASK[rows])
    assert (best.argmax(1) == policy.argmax(1)).all()
    assert (best.max(1) == 1).all()


def test_a_move_is_drawn_by_its_seed_with_these_probabilities():
    club = make("club", fast=True)
    current, mask = bits(from_moves("4453"))
    many = np.repeat(current, 4000), np.repeat(mask, 4000)
    choices = club.choose(*many, seeds_for(3, np.arange(4000)))
    assert choices.policy is not None
    shares = np.bincount(choices.moves, minlength=7) / 4000
    np.testing.assert_allclose(shares, choices.policy[0], atol=0.03)
    alone = [int(club.choose(current, mask, seeds_for(3, np.array([index]))).moves[0]) for index in range(20)]
    assert alone == choices.moves[:20].tolist()


def test_perfect_keeps_the_best_score_and_without_the_solver_is_a_search_by_the_network(monkeypatch):
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    late = np.flatnonzero(BOARDS.ply > 20)[:100]
    chances = make("perfect").choose(CURRENT[late], MASK[late], splitmix64(late.astype(np.uint64))).policy
    assert chances is not None
    scores = BOARDS.scores[late]
    assert (chances[scores < scores.max(1, keepdims=True)] == 0).all()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert levels.named("perfect").player == "reference/pillar@puct:800"

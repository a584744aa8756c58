"""The gate (`players/match.py`): games count once, in windows of whole batches; a window passes as often as its rule
means; draws are half a point; the score is the candidate's.
"""

from typing import Any

import numpy as np
import pytest

from distill.players import match
from distill.players.player import RandomPlayer


def rates(win: float, windows: int = 2000, **settings: Any) -> float:
    """Share of windows of 512 games, in batches of 64, that pass a candidate who wins this share of its games."""
    dice = np.random.default_rng(0)
    window: list[float] = []
    passes = 0
    for _ in range(windows * 8):
        window, passed = match.decide(window, (dice.random(64) < win).astype(float).tolist(), games=512, **settings)
        passes += passed
    assert window == []
    return passes / windows


@pytest.mark.parametrize(
    ("win", "level", "rule", "least", "most"),  # three standard deviations of 2,000 windows about the exact share
    [
        (0.50, 0.50, "lower", 0.013, 0.034),  # 2.3 %: the lower end of a 95 % interval
        (0.52, 0.52, "lower", 0.014, 0.035),  # 2.4 %
        (0.50, 0.52, "lower", 0.0, 0.005),  # 0.2 %, the default
        (0.60, 0.52, "lower", 0.93, 1.0),  # 95.4 %
        (0.50, 0.52, "mean", 0.151, 0.203),  # 17.7 %, the published rule
    ],
)
def test_a_window_passes_as_often_as_its_rule_means(win, level, rule, least, most):
    assert least <= rates(win, gate=level, rule=rule) <= most


def test_a_game_counts_once_in_windows_of_whole_batches():
    settings = {"games": 5, "gate": 0.6, "rule": "mean"}
    window, passed = match.decide([], [1.0, 1.0], **settings)
    assert (window, passed) == ([1.0, 1.0], False)
    window, passed = match.decide(window, [1.0, 0.0], **settings)
    assert (window, passed) == ([1.0, 1.0, 1.0, 0.0], False), "a batch is missing"
    assert match.decide(window, [0.5, 0.0], **settings) == ([], False), "3.5 of 6; the wins do not count again"
    assert match.decide(window, [0.5, 0.5], **settings) == ([], True), "4 of 6 reach 60 %"


def test_draws_are_half_a_point_and_narrow_the_interval():
    settings = {"games": 400, "gate": 0.5, "rule": "lower"}
    assert not match.decide([], [1.0] * 215 + [0.0] * 185, **settings)[1]
    assert match.decide([], [1.0] * 30 + [0.5] * 370, **settings)[1], "as many points and never lost"
    assert not match.decide([], [0.5] * 400, **settings)[1], "level is not above"


def score(candidate: Any, champion: Any) -> float:
    """The candidate's score in an arena of 60 games."""
    outcomes, lines = list[float](), set()
    for first in (0, match.BLOCK):
        results, moves = match.arena_block([candidate, champion], games=60, plies=4, seed=2**63 + 5, first=first)
        outcomes += results
        lines |= {*moves}
    assert len(outcomes) == len(lines) == 60
    return (sum(outcomes) + 60) / 120


def test_the_score_is_the_candidates():
    strong, weak = RandomPlayer(name="punisher", tactical=True), RandomPlayer()
    assert score(strong, weak) > 0.8
    assert score(weak, strong) < 0.2

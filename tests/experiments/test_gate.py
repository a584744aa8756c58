"""The gate of REINFORCE (`experiments/reinforce/games.py`): games count once, in windows of whole batches; a window
passes as often as its rule means; draws are half a point.
"""

import numpy as np
import pytest

from experiments.reinforce.games import decide
from experiments.reinforce.settings import OpponentSettings


def rates(win: float, settings: OpponentSettings, windows: int = 2000) -> float:
    """Share of windows of 512 games, in batches of 64, that pass a candidate who wins this share of its games."""
    dice = np.random.default_rng(0)
    window: list[float] = []
    passes = 0
    for _ in range(windows * 8):
        window, passed = decide(window, (dice.random(64) < win).astype(float).tolist(), settings)
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
    assert least <= rates(win, OpponentSettings(gate_games=512, gate=level, gate_rule=rule)) <= most


def test_a_game_counts_once_in_windows_of_whole_batches():
    settings = OpponentSettings(gate_games=5, gate=0.6, gate_rule="mean")
    window, passed = decide([], [1.0, 1.0], settings)
    assert (window, passed) == ([1.0, 1.0], False)
    window, passed = decide(window, [1.0, 0.0], settings)
    assert (window, passed) == ([1.0, 1.0, 1.0, 0.0], False), "a batch is missing"
    assert decide(window, [0.5, 0.0], settings) == ([], False), "3.5 of 6; the wins do not count again"
    assert decide(window, [0.5, 0.5], settings) == ([], True), "4 of 6 reach 60 %"


def test_draws_are_half_a_point_and_narrow_the_interval():
    settings = OpponentSettings(gate_games=400, gate=0.5, gate_rule="lower")
    assert not decide([], [1.0] * 215 + [0.0] * 185, settings)[1]
    assert decide([], [1.0] * 30 + [0.5] * 370, settings)[1], "as many points and never lost"
    assert not decide([], [0.5] * 400, settings)[1], "level is not above"

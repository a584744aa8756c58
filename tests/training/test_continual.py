"""The network of a loop as it learns (`training/continual.py`) has the same weights resumed or ended by a clock."""

import sys

import numpy as np
import pytest
from network_helpers import same
from selfplay_helpers import tiny

from distill.common.settings import build
from distill.datasets import replay
from distill.training import checkpoint, continual
from distill.training.recipe import Recipe


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd"])
def test_the_learner_learns_and_goes_on_where_it_was(optimizer, three_runs, tmp_path, small_networks):
    examples = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    recipe = build(
        Recipe, {"epochs": 2, "batch_size": 64, "lr": 0.02, "value_target": "outcome", "optimizer": optimizer}
    )
    learner, resumed = (continual.begin(tiny(), recipe) for _ in range(2))
    first = continual.learn(learner, examples, 0.02, seed=1)
    assert first["steps"] == 2 * (len(examples) // 64)
    checkpoint.save(tmp_path, learner, first)
    arrays, state = checkpoint.load(tmp_path)
    assert state == pytest.approx(first)
    checkpoint.restore(resumed, arrays, tmp_path)
    for table in (examples, examples[:40], examples):  # also one smaller than a batch
        second, again = (continual.learn(model, table, 0.01, seed=2) for model in (learner, resumed))
        assert second | {"step_seconds": 0} == pytest.approx(again | {"step_seconds": 0})
        assert len(table) == 40 or second["training_loss"] < first["training_loss"]
    assert same(resumed.core.get_weights(), learner.core.get_weights())


def test_training_that_a_clock_ends_is_training_of_as_many_steps(three_runs, small_networks):
    examples = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    recipe = build(Recipe, {"batch_size": 64, "value_target": "outcome"})
    core = tiny()
    clocked, counted = (continual.begin(core, recipe) for _ in range(2))
    looks = iter([False, False, True])
    by_clock = continual.learn(clocked, examples, 0.02, 1, sys.maxsize, lambda: next(looks))
    by_count = continual.learn(counted, examples, 0.02, 1, 3)
    assert by_clock["steps"] == 3
    assert by_clock | {"step_seconds": 0} == by_count | {"step_seconds": 0}
    assert same(clocked.core.get_weights(), counted.core.get_weights())

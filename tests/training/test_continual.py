"""The network of a loop as it learns (`training/continual.py`). Properties:

- its loss falls, and a resumed one goes on to the same weights, with every optimizer;
- a missing checkpoint is named.
"""

from __future__ import annotations

import numpy as np
import pytest
from selfplay_helpers import tiny

from distill.common import UserError
from distill.datasets import replay
from distill.training import checkpoint, continual
from distill.training.recipe import Recipe


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_the_learner_learns_and_goes_on_where_it_was(optimizer, three_runs, tmp_path, small_networks):
    examples = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    recipe = Recipe(epochs=2, batch_size=64, lr=0.02, value_target="outcome", optimizer=optimizer)
    learner = continual.begin(tiny(), recipe)
    first = continual.learn(learner, examples, lambda _: 0.02, seed=1)
    assert first["steps"] == 2 * (len(examples) // 64)
    checkpoint.save(tmp_path, learner.model, first)
    assert checkpoint.load(tmp_path)[1] == pytest.approx(first)
    second = continual.learn(learner, examples, lambda _: 0.01, seed=2)
    assert second["policy_loss"] < first["policy_loss"]
    resumed = continual.begin(tiny(), recipe)
    continual.resume(resumed, tmp_path)
    assert continual.learn(resumed, examples, lambda _: 0.01, seed=2) == pytest.approx(second)
    for ours, theirs in zip(resumed.core.get_weights(), learner.core.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_tables_smaller_than_a_batch_are_learned_from_alike_after_a_resumption(three_runs, tmp_path, small_networks):
    examples = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    recipe = Recipe(epochs=2, batch_size=64, lr=0.02, value_target="outcome")
    learner = continual.begin(tiny(), recipe)
    continual.learn(learner, examples[:40], lambda _: 0.02, seed=1)
    checkpoint.save(tmp_path, learner.model, {})
    resumed = continual.begin(tiny(), recipe)
    continual.resume(resumed, tmp_path)
    for each in (learner, resumed):
        continual.learn(each, examples[:60], lambda _: 0.02, seed=2)
        continual.learn(each, examples, lambda _: 0.02, seed=3)
    for ours, theirs in zip(resumed.core.get_weights(), learner.core.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_missing_checkpoint_is_named(tmp_path, small_networks):
    with pytest.raises(UserError, match="no checkpoint"):
        continual.resume(continual.begin(tiny(), Recipe(value_target="outcome")), tmp_path)

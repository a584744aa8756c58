"""The policy gradient of REINFORCE. Properties:

- the loss and its gradient are the closed forms of the documented formula, with no baseline, the mean and the value;
- a step makes a move that won likelier and one that lost unlikelier; equal returns with their mean as baseline, and no
  entropy bonus, change nothing; the bonus alone flattens the policy; full columns take no part;
- a step leaves batch norms' statistics and the opponents alone; it is of the policy that draws the moves;
- the average follows the weights, whatever the steps calculate in; opponents are replaced one by one.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from network_helpers import (
    LEFT_COLUMN_FULL,
    WIN_IN_THE_MIDDLE,
    WIN_ON_THE_RIGHT,
    boards_of,
    policy_of,
    same,
    tiny_network,
    with_random_weights,
)

from distill import networks
from distill.common import UserError
from distill.training import policy_gradient, step


@pytest.mark.parametrize("baseline", ["none", "mean", "value"])
def test_loss_and_gradient_are_the_closed_forms_of_the_formula(baseline):
    rng = np.random.default_rng(1)
    number, weight, entropy_weight = 5, 0.7, 0.04
    outputs = rng.normal(size=(number, 8))
    columns, returns = rng.integers(0, 7, number), np.array([1.0, -1, 0, 1, 1])
    target = policy_gradient.targets(columns, returns, baseline, entropy_weight)

    logits, value = outputs[:, :7], outputs[:, 7]
    policy = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    entropy = -(policy * np.log(policy)).sum(1)
    advantage = returns - {"none": 0.0, "mean": 0.4, "value": value}[baseline]
    chosen = np.eye(7)[columns]
    expected = (
        -advantage * np.log((policy * chosen).sum(1)) - entropy_weight * entropy + weight * (value - returns) ** 2
    ).mean()
    by_logits = -advantage[:, None] * (chosen - policy)
    by_logits += entropy_weight * policy * (np.log(policy) + entropy[:, None])
    by_value = 2 * weight * (value - returns)  # nothing flows through the baseline

    given = tf.constant(outputs, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = tf.reduce_mean(policy_gradient.loss_of_moves(tf.constant(target), given, baseline, weight))
    gradient = tape.gradient(loss, given).numpy()
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(gradient[:, :7], by_logits / number, atol=1e-6)
    np.testing.assert_allclose(gradient[:, 7], by_value / number, atol=1e-6)


few_steps = pytest.mark.usefixtures("small_shapes", "eagerly")


@few_steps
def test_a_move_that_won_becomes_likelier_and_equal_returns_with_their_mean_as_baseline_change_nothing():
    keras.utils.set_random_seed(2)
    core, boards = networks.build("mk4"), boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    before, weights = policy_of(core, boards), core.get_weights()
    model = policy_gradient.learner(core, "mean", 0.5)
    for returns in ([1.0, 1.0], [-1.0, -1.0]):
        policy_gradient.step(
            model, boards, policy_gradient.targets(np.array([1, 2]), np.array(returns), "mean", 0.0), 0.1
        )
        assert same(weights, model.core.get_weights())
    model = policy_gradient.learner(core, "none", 0.5)
    target = policy_gradient.targets(np.array([6, 0]), np.array([1.0, -1.0]), "none", 0.0)
    policy_gradient.step(model, boards, target, 1e-4)
    after = policy_of(model.core, boards)
    assert after[0, 6] > before[0, 6]
    assert after[1, 0] < before[1, 0]
    with pytest.raises(UserError, match="value head"):
        policy_gradient.learner(core, "value", 0.5)


def test_the_entropy_bonus_flattens_the_policy_over_open_columns_alone():
    keras.utils.set_random_seed(3)
    core = tiny_network()
    model = policy_gradient.learner(core, "none", 0.5)
    boards = boards_of(LEFT_COLUMN_FULL)
    target = policy_gradient.targets(np.array([3]), np.zeros(1), "none", 1.0)
    entropies = [policy_gradient.step(model, boards, target, 0.01)["entropy"] for _ in range(200)]
    assert entropies[0] < entropies[100] <= np.log(6) + 1e-5
    assert entropies[-1] == pytest.approx(np.log(6), abs=1e-3)
    policy = policy_of(model.core, boards)[0]
    assert policy[0] == 0
    np.testing.assert_allclose(policy[1:], 1 / 6, atol=0.02)


@few_steps
def test_a_step_leaves_the_opponent_and_the_statistics_of_batch_norms_alone():
    core = networks.build("cnn", value_head=True)
    model = policy_gradient.learner(core, "value", 0.5)
    statistics = [w.numpy() for w in model.core.non_trainable_weights]
    opponent = model.opponents[0].get_weights()
    assert same(opponent, core.get_weights())
    boards = boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    target = policy_gradient.targets(np.array([6, 3]), np.array([1.0, -1]), "value", 0.05)
    policy_gradient.step(model, boards, target, 0.01)
    assert len(statistics) == 4, "two for each batch norm"
    assert same(statistics, [w.numpy() for w in model.core.non_trainable_weights])
    assert same(opponent, model.opponents[0].get_weights())
    assert not same(opponent, model.core.get_weights())
    model.replace_opponent(0)
    assert same(model.opponents[0].get_weights(), model.core.get_weights())


@few_steps
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_average_follows_the_weights_and_opponents_are_replaced_one_by_one(precision):
    core = networks.build("mk4", value_head=True)
    began = core.get_weights()
    model = policy_gradient.learner(core, "value", 0.5, opponents=2, precision=precision, ema=0.75)
    boards = boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    target = policy_gradient.targets(np.array([6, 3]), np.array([1.0, -1]), "value", 0.05)
    averaged, expected = networks.build("mk4", value_head=True), []
    for _ in range(3):
        policy_gradient.step(model, boards, target, 0.01)
        learned = model.core.get_weights()
        pairs = zip(expected or learned, learned, strict=True)  # it begins with the weights after the first step
        expected = [0.75 * average + 0.25 * weights for average, weights in pairs]
        step.copy_learned(model, averaged)
        for ours, theirs in zip(averaged.get_weights(), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert {each.compute_dtype for each in model.core.layers[1:-1]} == {precision}
    assert not same(learned, began)
    assert same(core.get_weights(), began)
    model.replace_opponent(1)
    assert same(model.opponents[0].get_weights(), began)
    assert same(model.opponents[1].get_weights(), learned)


@few_steps
def test_the_gradient_is_of_the_policy_that_draws_the_moves():
    """Dropout and batch norms as when playing: the entropy that a step reports is that of the served policy."""
    core = with_random_weights(networks.build("cnn"))
    boards = boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    policy = policy_of(core, boards).astype(np.float64)
    expected = -(policy * np.log(policy)).sum(1).mean()
    target = policy_gradient.targets(np.array([0, 0]), np.zeros(2), "none", 0.0)
    measured = policy_gradient.step(policy_gradient.learner(core, "none", 0.5), boards, target, 1e-3)
    assert measured["entropy"] == pytest.approx(expected, rel=1e-4)

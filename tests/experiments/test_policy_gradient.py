"""The policy gradient of REINFORCE: the closed forms of the documented formula, and what a step does to the policy."""

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
from distill.common.settings import build
from distill.training import step
from experiments.reinforce import run
from experiments.reinforce.settings import ReinforceConfig


def learner(core, baseline, **settings):
    return run.learner(core, build(ReinforceConfig, {"baseline": baseline, **settings}))


def batch_of(boards, moves, returns, entropy_weight=0.0):
    """A batch as `games.GamesStream` makes it, with the mean as the baseline of the targets."""
    returns = np.array(returns, np.float32)
    constants = {"baseline": returns.mean(), "entropy_weight": entropy_weight}
    targets = {"move": np.array(moves, np.int32), "return": returns}
    targets |= {name: np.full(len(moves), value, np.float32) for name, value in constants.items()}
    return boards, targets, np.ones(len(moves), np.float32)


def take_step(model, batch, rate):
    model.optimizer.learning_rate = rate
    return step.train_step(model, batch)


@pytest.mark.parametrize("baseline", ["mean", "value"])
def test_loss_and_gradient_are_the_closed_forms_of_the_formula(baseline):
    rng = np.random.default_rng(1)
    number, weight, entropy_weight = 5, 0.7, 0.04
    logits, value = rng.normal(size=(number, 7)), rng.normal(size=number)
    columns, returns = rng.integers(0, 7, number), np.array([1.0, -1, 0, 1, 1])
    _, targets, _ = batch_of(None, columns, returns, entropy_weight)

    policy = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    entropy = -(policy * np.log(policy)).sum(1)
    advantage = returns - {"mean": 0.4, "value": value}[baseline]
    chosen = np.eye(7)[columns]
    expected = (
        -advantage * np.log((policy * chosen).sum(1)) - entropy_weight * entropy + weight * (value - returns) ** 2
    ).mean()
    by_logits = -advantage[:, None] * (chosen - policy)
    by_logits += entropy_weight * policy * (np.log(policy) + entropy[:, None])
    by_value = 2 * weight * (value - returns)  # nothing flows through the baseline

    outputs = {"logits": tf.constant(logits, tf.float32), "value": tf.constant(value, tf.float32)}
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        loss = tf.reduce_mean(run.policy_gradient_loss(targets, outputs, baseline=baseline, value_weight=weight))
    gradient = tape.gradient(loss, outputs)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(gradient["logits"], by_logits / number, atol=1e-6)
    np.testing.assert_allclose(gradient["value"], by_value / number, atol=1e-6)


few_steps = pytest.mark.usefixtures("small_shapes", "eagerly")


@few_steps
def test_a_move_that_won_becomes_likelier_and_equal_returns_with_their_mean_as_baseline_change_nothing():
    keras.utils.set_random_seed(2)
    core, boards = networks.build("mk4"), boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    before, weights = policy_of(core, boards), core.get_weights()
    model = learner(core, "mean")
    for returns in ([1.0, 1.0], [-1.0, -1.0]):
        take_step(model, batch_of(boards, [1, 2], returns), 0.1)
        assert same(weights, model.core.get_weights())
    take_step(model, batch_of(boards, [6, 0], [1.0, -1.0]), 1e-4)
    after = policy_of(model.core, boards)
    assert after[0, 6] > before[0, 6]
    assert after[1, 0] < before[1, 0]
    with pytest.raises(UserError, match="value head"):
        learner(core, "value")


def test_the_entropy_bonus_flattens_the_policy_over_open_columns_alone():
    keras.utils.set_random_seed(3)
    core = tiny_network()
    model = learner(core, "mean")
    batch = batch_of(boards_of(LEFT_COLUMN_FULL), [3], [0.0], entropy_weight=1.0)
    entropies = [take_step(model, batch, 0.01)["entropy"] for _ in range(200)]
    assert entropies[0] < entropies[100] <= np.log(6) + 1e-5
    assert entropies[-1] == pytest.approx(np.log(6), abs=1e-3)
    policy = policy_of(model.core, batch[0])[0]
    assert policy[0] == 0
    np.testing.assert_allclose(policy[1:], 1 / 6, atol=0.02)


@few_steps
def test_the_gradient_is_of_the_policy_that_draws_the_moves():
    """Dropout and batch norms as when playing: a step reports the served policy's entropy, and keeps statistics."""
    core = with_random_weights(networks.build("cnn"))
    boards = boards_of(WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)
    policy = policy_of(core, boards).astype(np.float64)
    model = learner(core, "mean")
    statistics = [w.numpy() for w in model.core.non_trainable_weights]
    measured = take_step(model, batch_of(boards, [6, 3], [1.0, -1.0]), 1e-3)
    assert measured["entropy"] == pytest.approx(-(policy * np.log(policy)).sum(1).mean(), rel=1e-4)
    assert len(statistics) == 4, "two for each batch norm"
    assert same(statistics, [w.numpy() for w in model.core.non_trainable_weights])
    assert not same(core.get_weights(), model.core.get_weights())

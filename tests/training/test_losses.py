"""Targets (`training/streams.py`) and losses (`training/losses.py`) have the documented formulas.

Any function of targets and outputs can be the loss; one of a wrong shape, or that fails, is one line.
"""

import numpy as np
import pytest
from keras import ops
from training_helpers import random_examples, two_boards

from distill import networks
from distill.common import UserError
from distill.common.settings import build
from distill.networks import heads
from distill.training import losses, step
from distill.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("small_shapes")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"target": "visits"}, [[0, 0, 0.25, 0.75, 0, 0, 0], [0.5, 0, 0, 0, 0, 0, 0.5]]),
        ({"target": "vote"}, [[0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]),
        ({"target": "blend"}, [[0, 0, 0.625, 0.375, 0, 0, 0], [0.25, 0, 0, 0, 0, 0, 0.75]]),
        ({"value_target": "value"}, [0.5, -1]),
        ({"value_target": "outcome"}, [1, 0]),
        ({"value_target": "blend"}, [0.75, -0.5]),
        ({"value_target": "auto"}, [0.75, -0.5]),
        ({"count_weights": "equal"}, [1, 1]),
        ({"count_weights": "root"}, [0.5, 1.5]),
        ({"count_weights": "count"}, [0.2, 1.8]),
    ],
)
def test_targets_and_weights_are_those_of_the_settings(settings, expected):
    """Visit shares, votes and their mean; the root value, the outcome and their mean; a power of the count."""
    (name,) = settings
    _, targets, weights = losses.in_order(two_boards(), build(Recipe, settings), with_value=name == "value_target")
    made = {"target": targets["logits"], "value_target": targets.get("value"), "count_weights": weights}[name]
    np.testing.assert_allclose(made, expected, rtol=1e-6)
    assert set(targets) == ({"logits", "value"} if name == "value_target" else {"logits"})


def test_the_loss_is_cross_entropy_and_squared_error_of_the_value():
    rng = np.random.default_rng(0)
    logits, value = rng.normal(size=(4, 7)).astype("float32"), np.array([0.5, -0.5, 0, 1], "float32")
    target = rng.dirichlet(np.ones(7), 4).astype("float32")
    expected = -(target * (logits - np.log(np.exp(logits).sum(1, keepdims=True)))).sum(1)
    outputs = {"logits": logits, "value": value}
    policy_alone = losses.policy_and_value_loss({"logits": target}, outputs)
    np.testing.assert_allclose(ops.convert_to_numpy(policy_alone), expected, rtol=1e-5)
    both = losses.policy_and_value_loss({"logits": target, "value": np.zeros(4, "float32")}, outputs, 0.7)
    np.testing.assert_allclose(ops.convert_to_numpy(both), expected + 0.7 * np.mean(value**2), rtol=1e-5)


@pytest.mark.parametrize("arch", ["cnn", "resnet"])
def test_evaluation_gives_the_loss_of_a_training_step(arch, eagerly):
    recipe = build(Recipe, {"value_weight": 0.7})
    model = step.compiled(networks.build(arch), recipe)
    few = random_examples(50)
    batch = losses.in_order(few, recipe, arch == "resnet")
    expected = model.test_on_batch(*batch, return_dict=True)
    measured = losses.evaluate(model, few, recipe)
    assert measured["loss"] == pytest.approx(float(expected["loss"]), rel=1e-5)
    assert ("value_error" in measured) == (arch == "resnet")


def test_any_function_of_targets_and_outputs_can_be_the_loss(eagerly):
    def squared(targets, outputs):
        return ops.sum(ops.square(targets["logits"] - ops.softmax(outputs["logits"])), axis=1)

    recipe, few = Recipe(lr=1e-4), random_examples(32)
    model, batch = step.compiled(networks.build("pillar"), recipe, squared), losses.in_order(few, recipe, False)
    policy = np.asarray(ops.softmax(model.predict_on_batch(batch[0])["logits"]))
    expected = np.square(few.visits / few.visits.sum(1, keepdims=True) - policy).sum(1).mean()
    assert losses.evaluate(model, few, recipe, squared)["loss"] == pytest.approx(expected, rel=1e-4)
    assert step.train_step(model, batch)["loss"] == pytest.approx(expected, rel=1e-4)
    assert losses.evaluate(model, few, recipe, squared)["loss"] < expected


def test_a_loss_that_writes_into_its_arrays_changes_no_other_measure(eagerly):
    def writes(targets, outputs):
        loss = losses.policy_and_value_loss(targets, outputs)
        outputs["logits"] = outputs["logits"] * 0
        outputs["value"] = targets["value"]
        return loss

    model, few = heads.played(networks.build("resnet")), random_examples(50)
    assert losses.evaluate(model, few, Recipe(), writes) == losses.evaluate(model, few, Recipe())


@pytest.mark.parametrize(
    ("loss", "line"),
    [
        (lambda targets, _: ops.sum(targets["logits"], axis=1, keepdims=True), r"shape \(8, 1\) for 8 boards"),
        (lambda targets, _: ops.mean(targets["logits"]), r"shape \(\) for 8 boards"),
        (lambda targets, _: targets["logits"], r"shape \(8, 7\) for 8 boards"),
        (lambda targets, _: targets["policy"], r"KeyError: 'policy' \(.*test_losses.py:\d+\)"),
    ],
)
def test_a_loss_that_is_not_one_of_each_board_is_one_line(loss, line, eagerly):
    with pytest.raises(UserError, match=f"^loss .*<lambda>: .*{line}"):
        losses.checked(loss, networks.build("pillar"), random_examples(50), Recipe())


def test_a_weight_that_a_loss_does_not_get_is_refused():
    with pytest.raises(UserError, match="value_weight acts on the default loss alone"):
        losses.checked(losses.policy_and_value_loss, None, None, build(Recipe, {"value_weight": 0.5}))

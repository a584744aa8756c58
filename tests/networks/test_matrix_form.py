"""The networks' matrix forms. Properties:

- with a network's weights they give its answers, and, dropout left out, its gradients, in training as well;
- the moving statistics of batch norm move as the network's do;
- weights come back as they went;
- dropout drops as much as it is asked to;
- a run trains in them and leaves the network itself.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
from network_helpers import arrays, played_boards, same, with_random_weights

from distill import networks
from distill.networks import heads, matrix_form
from distill.training import training
from distill.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("small_shapes")

FORMS = tuple(matrix_form.FORMS)
WHOLE_BOARD = tuple(matrix_form.WHOLE_BOARD)
"""Forms whose sums cost two digits, and which drop nothing."""


def both(arch: str, value_head: bool = True) -> tuple[keras.Model, keras.Model]:
    """A network with random weights, and its matrix form without dropout."""
    keras.utils.set_random_seed(1)
    core = with_random_weights(networks.build(arch, value_head))
    form = matrix_form.build(arch, value_head, dropout=0.0)
    matrix_form.copy_weights(core, form)
    return core, form


def without_dropout(core: keras.Model) -> keras.Model:
    """The same layers with the same weights, but dropout of nothing."""

    def copied(layer: keras.Layer) -> keras.Layer:
        config = layer.get_config() | ({"rate": 0.0} if isinstance(layer, keras.layers.Dropout) else {})
        return layer.__class__.from_config(config)

    copy = keras.models.clone_model(core, clone_function=copied)
    copy.set_weights(core.get_weights())
    return copy


@pytest.mark.parametrize("value_head", [False, True])
@pytest.mark.parametrize("arch", FORMS)
def test_it_gives_the_networks_answers(arch, value_head):
    core, form = both(arch, value_head)
    assert form.count_params() == core.count_params()
    boards = played_boards(50)
    expected, found = arrays(heads.played(core)(boards)), arrays(heads.played(form)(boards))
    assert expected.keys() == found.keys()
    for name, wanted in expected.items():
        # Sums in another order; logits of random weights are of the size of 1.
        np.testing.assert_allclose(found[name], wanted, atol=2e-4 if arch in WHOLE_BOARD else 2e-5)


@pytest.mark.parametrize("arch", FORMS)
def test_a_step_changes_its_weights_as_it_changes_the_networks(arch):
    core, form = both(arch)
    recipe = Recipe(optimizer="sgd", lr=0.1, value_target="outcome")
    boards = played_boards(64)
    policy = np.random.default_rng(0).dirichlet(np.ones(7), 64).astype(np.float32) * (boards[:, 0] == 0)
    wanted = {"logits": policy / policy.sum(axis=1, keepdims=True), "value": np.linspace(-1, 1, 64, dtype=np.float32)}
    before = core.get_weights()
    core = without_dropout(core)
    for each in (core, form):
        model = training.compiled(each, recipe)
        model.run_eagerly = True  # to trace a graph takes longer than one step
        model.train_on_batch(boards, wanted)
    matrix_form.copy_weights(form, (came_back := networks.build(arch, True)))
    for name, old, expected, found in zip(
        [w.path for w in core.weights], before, core.get_weights(), came_back.get_weights(), strict=True
    ):
        moved = np.abs(expected - old).max()
        # Of a key's bias softmax takes no notice, so its gradient is nothing but rounding.
        np.testing.assert_allclose(found, expected, atol=max(1e-3 * moved, 2e-6), err_msg=name)
    assert (
        np.abs(np.concatenate([(a - b).ravel() for a, b in zip(before, core.get_weights(), strict=True)])).max() > 1e-3
    )


@pytest.mark.parametrize("arch", [arch for arch in FORMS if arch not in WHOLE_BOARD])
def test_dropout_is_the_shapes_own_unless_asked_for(arch):
    def rates(form: keras.Model) -> set[float]:
        return {layer.rate for layer in form._flatten_layers() if isinstance(layer, keras.layers.Dropout)}

    own = {layer.rate for layer in networks.build(arch).layers if isinstance(layer, keras.layers.Dropout)}
    assert rates(matrix_form.build(arch)) == own
    assert rates(matrix_form.build(arch, dropout=0.3)) == {0.3}
    assert rates(matrix_form.build(arch, dropout=0.0)) == {0.0}


@pytest.mark.parametrize("arch", FORMS)
def test_runs_train_in_it_with_the_networks_weights(arch):
    core = with_random_weights(networks.build(arch))
    trained = training.trained_form(core, Recipe(precision="float32" if arch in WHOLE_BOARD else "bfloat16"))
    assert {layer.__class__ for layer in trained.layers} != {layer.__class__ for layer in core.layers}
    assert {weight.dtype for weight in trained.weights} == {"float32"}
    matrix_form.copy_weights(trained, (back := networks.build(arch)))
    assert same(core.get_weights(), back.get_weights())


def test_what_costs_digits_is_left_out_in_bfloat16():
    for arch in WHOLE_BOARD:
        trained = training.trained_form(networks.build(arch), Recipe(precision="bfloat16"))
        assert not any(layer.__class__.__module__ == matrix_form.__name__ for layer in trained.layers)


def test_every_arch_has_one_and_another_name_none():
    assert set(FORMS) == set(networks.ARCHS)
    with pytest.raises(ValueError, match="'looped' is none of cnn, transformer, pillar, pillar-lines"):
        matrix_form.build("looped")

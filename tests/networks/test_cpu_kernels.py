"""The fast CPU kernels (`networks/cpu_kernels/`): a fast copy, also of a user's network, has the network's weights and
results and, without dropout, its gradients.
"""

import keras
import numpy as np
import pytest
from keras import layers
from network_helpers import arrays, played_boards, same, with_random_weights

from distill import networks
from distill.common.settings import build
from distill.networks import copies, cpu_kernels, heads
from distill.networks.copies import copy_weights, fast_copy
from distill.networks.cpu_kernels import batch_norm
from distill.training import step
from distill.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("small_shapes")

WHOLE_BOARD = ("pillar-plain", "pillar", "pillar-large", "mk4", "resnet", "custom")
"""Networks whose kernels lose two digits, and which have no dropout."""


def network(arch: str) -> keras.Model:
    """A built-in network with random weights, or a custom one whose branches compute in both orders of the axes."""
    keras.utils.set_random_seed(1)
    if arch != "custom":
        return with_random_weights(networks.build(arch, value_head=True))
    planes = heads.planes_input()
    x = layers.Conv2D(16, 5, padding="same", activation="relu", name="stem")(planes)
    y = layers.Conv2D(16, 3, padding="same", activation="relu", name="conv")(x)
    shared = layers.Conv2D(16, 3, padding="same", use_bias=False, name="shared")
    y = Gate(name="gate")(layers.Add(name="add")([x, shared(shared(y))]), gate=x)
    bias = layers.Reshape((1, 1, 16), name="broadcast")(layers.GlobalAveragePooling2D(name="whole")(y))
    y = Centred(name="centred")(layers.Add(name="biased")([shared(y), bias]))
    features = layers.GlobalAveragePooling2D(name="pool")(layers.ReLU(name="relu")(y))
    logits = layers.Dense(7, name="logits")(layers.Flatten(name="flatten")(y))
    return with_random_weights(heads.network("mine", planes, logits, heads.value_head(features)))


@keras.saving.register_keras_serializable(package="tests")
class Gate(layers.Layer):
    """A user's layer with a tensor given by name."""

    def call(self, x, gate):
        return x * keras.ops.sigmoid(gate)


@keras.saving.register_keras_serializable(package="tests")
class Centred(layers.ReLU):
    """A user's layer on the axes of the board, of a kind that kernels compute in another order of the axes."""

    def call(self, x):
        return super().call(x) - keras.ops.mean(x, axis=(1, 2), keepdims=True)


def kernels_in(core: keras.Model) -> set[str]:
    return {type(layer).__name__ for layer in core.layers if type(layer).__module__.startswith(cpu_kernels.__name__)}


def test_a_layer_that_is_frozen_or_constrained_stays_so():
    planes = heads.planes_input()
    most = keras.constraints.MaxNorm(0.5)
    x = layers.Conv2D(16, 3, padding="same", name="open")(planes)
    for name, options in (("frozen", {"trainable": False}), ("limited", {"kernel_constraint": most}), ("free", {})):
        x = layers.Conv2D(16, 3, padding="same", name=name, **options)(x)
    core = with_random_weights(heads.network("mine", planes, layers.Dense(7, name="logits")(layers.Flatten()(x)), None))
    fast = fast_copy(core)
    kernels = {layer.name for layer in fast.layers if type(layer).__module__.startswith(cpu_kernels.__name__)}
    assert "free" in kernels
    assert not kernels & {"frozen", "limited"}
    assert not fast.get_layer("frozen").trainable
    assert fast.get_layer("limited").kernel.constraint is not None


def without_dropout(core: keras.Model) -> keras.Model:
    def copied(layer: keras.Layer) -> keras.Layer:
        config = layer.get_config() | ({"rate": 0.0} if isinstance(layer, keras.layers.Dropout) else {})
        return layer.__class__.from_config(config)

    copy = keras.models.clone_model(core, clone_function=copied)
    copy.set_weights(core.get_weights())
    return copy


@pytest.mark.parametrize("arch", [*networks.ARCHS, "custom"])
def test_a_fast_copy_gives_the_networks_results(arch):
    core = network(arch)
    fast = fast_copy(core)
    assert kernels_in(fast)
    assert fast.count_params() == core.count_params()
    boards = played_boards(50)
    expected, outputs = arrays(heads.played(core)(boards)), arrays(heads.played(fast)(boards))
    assert expected.keys() == outputs.keys()
    for name, array in expected.items():
        # Sums in another order; logits of random weights are of the size of 1.
        np.testing.assert_allclose(outputs[name], array, atol=2e-4 if arch in WHOLE_BOARD else 2e-5)


@pytest.mark.parametrize("arch", [*networks.ARCHS, "custom"])
def test_a_step_changes_its_weights_as_it_changes_the_networks(arch):
    core = network(arch)
    fast = fast_copy(without_dropout(core))
    recipe = build(Recipe, {"optimizer": "sgd", "lr": 0.1, "value_target": "outcome"})
    boards = played_boards(64)
    policy = np.random.default_rng(0).dirichlet(np.ones(7), 64).astype(np.float32) * (boards[:, 0] == 0)
    targets = {"logits": policy / policy.sum(axis=1, keepdims=True), "value": np.linspace(-1, 1, 64, dtype=np.float32)}
    before, trained, returned = core.get_weights(), without_dropout(core), network(arch)
    for copy in (trained, fast):
        model = step.compiled(copy, recipe)
        model.run_eagerly = True  # tracing a graph takes longer than one step
        model.train_on_batch(boards, targets, np.ones(64, np.float32))
    copy_weights(fast, returned)
    for name, old, expected, array in zip(
        [w.path for w in core.weights], before, trained.get_weights(), returned.get_weights(), strict=True
    ):
        moved = np.abs(expected - old).max()
        # Softmax does not depend on a key's bias, so its gradient is rounding alone.
        np.testing.assert_allclose(array, expected, atol=max(1e-3 * moved, 2e-6), err_msg=name)
    changes = [(a - b).ravel() for a, b in zip(before, trained.get_weights(), strict=True)]
    assert np.abs(np.concatenate(changes)).max() > 1e-3


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("arch", networks.ARCHS)
def test_weights_are_float32_and_return_as_they_were(arch, precision):
    core = network(arch)
    fast = fast_copy(core, precision)
    assert {layer.rate for layer in fast._flatten_layers() if isinstance(layer, layers.Dropout)} <= {0.1}
    assert {weight.dtype for weight in fast.weights} == {"float32"}
    assert bool(kernels_in(fast)) == (precision == "float32" or arch in ("cnn", "transformer"))
    computes = {layer.compute_dtype for layer in fast.layers if layer.weights}
    assert computes == {precision}
    copy_weights(fast, returned := networks.build(arch, True))
    assert same(core.get_weights(), returned.get_weights())


def test_kernels_can_be_left_out(monkeypatch):
    monkeypatch.setattr(copies, "KERNELS", (batch_norm,))
    assert kernels_in(fast_copy(networks.build("cnn"))) == {"FusedBatchNorm"}
    monkeypatch.setattr(copies, "KERNELS", ())
    assert not any(kernels_in(fast_copy(networks.build(arch))) for arch in networks.ARCHS)


def test_a_transformer_with_other_heads_is_not_trained_as_the_published_one():
    core = with_random_weights(networks.build("transformer", attention_heads=2))
    fast = fast_copy(core)
    tokens = np.random.default_rng(0).integers(0, 3, (20, 42))
    np.testing.assert_allclose(fast(tokens)["logits"], core(tokens)["logits"], atol=1e-5)

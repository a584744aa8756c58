"""Copies of a network: in another precision, and weights from one copy to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from distill.networks.precision import Precision, dtype_policy


def copy(core: keras.Model, precision: Precision | Callable[[Any], Precision]) -> keras.Model:
    """The same network with the same weights; its layers compute in this precision, which may be a function of them."""
    precision_of = precision if callable(precision) else lambda _: precision
    twin = keras.models.clone_model(core, clone_function=lambda layer: layer_copy(layer, precision_of(layer)))
    twin.set_weights(core.get_weights())
    return twin


def layer_copy(layer: Any, precision: Precision) -> Any:
    """A layer or operation with the same config, except its precision."""
    config = layer.get_config()
    if isinstance(layer, keras.Layer) and not isinstance(layer, keras.layers.InputLayer):
        config["dtype"] = dtype_policy(precision)  # bare operations compute in the type of their inputs
    return layer.__class__.from_config(config)


def copy_weights(source: keras.Model, target: keras.Model) -> None:
    """Give a network the weights of another copy of it, whose arrays may have another shape of the same size.

    Layers are matched by name; in order, if one kernel replaces several layers.
    """
    layers, others = ({layer.name: layer for layer in model.layers if layer.weights} for model in (source, target))
    pairs = [(layers[name], others[name]) for name in layers] if layers.keys() == others.keys() else [(source, target)]
    for original, changed in pairs:
        weights = zip(original.get_weights(), changed.weights, strict=True)
        changed.set_weights([np.reshape(array, weight.shape) for array, weight in weights])

"""The residual network without batch norm of “Connect4-Zero: Architecture & Design”, 470,216 parameters."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from distill.networks import heads

FILTERS = 64
BLOCKS = 5
HEAD_FILTERS = 32


def build(
    _value_head: bool = True, *, filters: int = FILTERS, blocks: int = BLOCKS, head_filters: int = HEAD_FILTERS
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and value (B,), which this network always has."""

    def conv(name: str) -> layers.Layer:
        return layers.Conv2D(filters, 3, padding="same", name=name)

    def head(x: Any, name: str) -> Any:
        """(B, 42 · head_filters): a 1x1 convolution to fewer planes, flattened."""
        x = layers.Conv2D(head_filters, 1, activation="relu", name=f"{name}_conv")(x)
        return layers.Flatten(name=f"{name}_flatten")(x)

    planes = heads.planes_input()
    x = layers.ReLU(name="stem_relu")(conv("stem")(planes))
    for number in range(1, blocks + 1):
        y = layers.ReLU(name=f"block{number}_relu1")(conv(f"block{number}_conv1")(x))
        y = conv(f"block{number}_conv2")(y)
        x = layers.ReLU(name=f"block{number}_relu2")(layers.Add(name=f"block{number}_add")([x, y]))

    logits = layers.Dense(7, name="logits")(head(x, "policy"))

    value = heads.value_head(head(x, "value"))
    return heads.network("resnet", planes, logits, value)

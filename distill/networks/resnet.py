"""The residual network of “Connect4-Zero: Architecture & Design”, 470,216 parameters, which has no batch norm.

With other arguments it is the network of DeepReinforcementLearning, which “Connect 4 AI” uses, 907,385 parameters:

    --arch resnet --set arch.filters=75 --set arch.kernel=4 --set arch.policy_filters=2 --set arch.value_filters=1
    --set arch.value_hidden=20 --set arch.batch_norm=true
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from distill.networks import heads


def build(
    _value_head: bool = True,
    *,
    filters: int = 64,
    blocks: int = 5,
    kernel: int = 3,
    policy_filters: int = 32,
    value_filters: int = 32,
    value_hidden: int = heads.VALUE_HIDDEN,
    batch_norm: bool = False,
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and value (B,), which this network always has.

    With `batch_norm` each convolution is normalised, no layer has a bias, and ReLU has a slope of 0.3 below 0.
    """
    slope, bias = (0.3, False) if batch_norm else (0.0, True)

    def conv(x: Any, filters: int, kernel: int, name: str) -> Any:
        x = layers.Conv2D(filters, kernel, padding="same", use_bias=bias, name=name)(x)
        return layers.BatchNormalization(momentum=heads.NORM_MOMENTUM, name=f"{name}_norm")(x) if batch_norm else x

    def relu(x: Any, name: str) -> Any:
        return layers.ReLU(negative_slope=slope, name=name)(x)

    def head(x: Any, filters: int, name: str) -> Any:
        """(B, 42 · filters): a 1x1 convolution to fewer planes, flattened."""
        return layers.Flatten(name=f"{name}_flatten")(relu(conv(x, filters, 1, f"{name}_conv"), f"{name}_relu"))

    planes = heads.planes_input()
    x = relu(conv(planes, filters, kernel, "stem"), "stem_relu")
    for number in range(1, blocks + 1):
        y = relu(conv(x, filters, kernel, f"block{number}_conv1"), f"block{number}_relu1")
        y = conv(y, filters, kernel, f"block{number}_conv2")
        x = relu(layers.Add(name=f"block{number}_add")([x, y]), f"block{number}_relu2")

    logits = layers.Dense(7, use_bias=bias, name="logits")(head(x, policy_filters, "policy"))
    value = heads.value_head(head(x, value_filters, "value"), value_hidden, bias=bias, slope=slope)
    return heads.network("resnet", planes, logits, value)

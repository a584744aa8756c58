"""The residual network "Mk4" with group normalization, as printed in the series “Connect-Zero”; 323,527 parameters."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from distill.game.rules import ROWS
from distill.networks import heads

EPSILON = 1e-5


def build(
    value_head: bool = False,
    *,
    filters: int = 64,
    groups: int = 16,
    blocks: int = 3,
    hidden: int = 128,
    initializer: heads.Initializer = "keras",
) -> keras.Model:
    """planes (B, 6, 7, 3) → logits (B, 7) and, where wanted, value (B,). `filters` is a multiple of `groups`."""

    def conv_norm(x: Any, name: str) -> Any:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
        return layers.GroupNormalization(groups, epsilon=EPSILON, name=f"{name}_norm")(x)

    planes = heads.planes_input(3)
    x = layers.ReLU(name="stem_relu")(conv_norm(planes, "stem"))
    for number in range(1, blocks + 1):
        y = layers.ReLU(name=f"block{number}_relu1")(conv_norm(x, f"block{number}_conv1"))
        y = conv_norm(y, f"block{number}_conv2")
        x = layers.ReLU(name=f"block{number}_relu2")(layers.Add(name=f"block{number}_add")([x, y]))
    x = layers.Conv2D(filters, (ROWS, 1), use_bias=False, name="columns")(x)  # (B, 1, 7, filters), no activation

    features = layers.Flatten(name="flatten")(x)
    for number in (1, 2):
        features = layers.Dense(hidden, use_bias=False, name=f"hidden{number}")(features)
        features = layers.LayerNormalization(epsilon=EPSILON, name=f"hidden{number}_norm")(features)
        features = layers.ReLU(name=f"hidden{number}_relu")(features)
    logits = layers.Dense(7, name="logits")(features)

    value = heads.value_head(features) if value_head else None
    return heads.network("mk4", planes, logits, value, initializer)

"""The published CNN: four depthwise-separable stages, global average pooling; 192,505 parameters."""

from __future__ import annotations

import keras
from keras import layers

from distill.networks import heads


def build(
    value_head: bool = False,
    *,
    stages: int = 4,
    filters: int = 192,
    kernel: int = 5,
    hidden: int = 320,
    dropout: float = 0.1,
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where wanted, value (B,)."""
    planes = heads.planes_input()
    x = planes
    for stage in range(1, stages + 1):
        # The batch norm that follows has its own offset, so the convolution needs no bias.
        x = layers.SeparableConv2D(filters, kernel, padding="same", use_bias=False, name=f"conv{stage}")(x)
        x = layers.BatchNormalization(momentum=heads.NORM_MOMENTUM, name=f"norm{stage}")(x)
        x = layers.ReLU(name=f"relu{stage}")(x)
    features = layers.GlobalAveragePooling2D(name="pool")(x)

    x = layers.Dense(hidden, activation="relu", name="hidden")(features)
    x = layers.Dropout(dropout, name="dropout")(x)
    logits = layers.Dense(7, name="logits")(x)

    value = heads.value_head(features) if value_head else None
    return heads.network("cnn", planes, logits, value)

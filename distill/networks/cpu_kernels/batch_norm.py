"""Batch normalization as one operation.

Replaces: `BatchNormalization` over (B, H, W, C) in training steps on TensorFlow, which Keras computes in pieces (mean,
squared difference, six multiplications, casts).
Gains: training steps of the `cnn` 1.1 times as fast in float32, 1.7 times in bfloat16 (`benchmarks/train.py`).
"""

from __future__ import annotations

from typing import Any

from keras import layers, ops

from distill.networks.backend import Precision, dtype_policy


class FusedBatchNorm(layers.BatchNormalization):
    """Keras' layer over (B, H, W, C), whose training steps use one fused operation."""

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        if not training or mask is not None:
            return super().call(x, training=training, mask=mask)
        import tensorflow as tf

        none = tf.zeros([0])  # the operation's own running means, which are not used
        x, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=self.gamma, offset=self.beta, mean=none, variance=none, epsilon=self.epsilon
        )
        rows = ops.cast(ops.size(x) // x.shape[-1], "float32")
        self._update(self.moving_mean, mean)
        self._update(self.moving_variance, variance * (rows - 1) / rows)  # undoes the operation's Bessel correction
        return x

    def _update(self, moving: Any, now: Any) -> None:
        moving.assign(moving * self.momentum + now * (1 - self.momentum))


def replacement(layer: layers.Layer, precision: Precision) -> layers.Layer | None:
    """The kernel that computes a layer; None where there is none."""
    if type(layer) is not layers.BatchNormalization or len(layer.input.shape) != 4 or layer.axis not in (-1, 3):
        return None
    if not (layer.center and layer.scale):
        return None
    return FusedBatchNorm.from_config(layer.get_config() | {"dtype": dtype_policy(precision)})

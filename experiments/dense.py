"""The plain dense network of Connect-Zero's first training runs, for `experiments.reinforce --arch`.

In: planes float32 (B, 6, 7, 2). Out: logits (B, 7) and, where wanted, value (B,). The stones are one input of 42 cells,
+1 own and −1 the opponent's; layers of 128 and 64 with ReLU, and PyTorch's initial weights. Without the value head
14,215 parameters, the `SimpleMLPModel` of https://github.com/c-f-h/connect-zero.
"""

from __future__ import annotations

import keras
from keras import layers

from distill.networks import heads


def build(value_head: bool = False, *, initializer: heads.Initializer = "pytorch") -> keras.Model:
    """The network with new weights."""
    planes = keras.Input((6, 7, 2), name="planes")
    own, other = layers.Flatten(name="own")(planes[..., 0]), layers.Flatten(name="other")(planes[..., 1])
    x = layers.Subtract(name="cells")([own, other])
    for number, width in enumerate((128, 64), 1):
        x = layers.Dense(width, activation="relu", name=f"hidden{number}")(x)
    logits, value = layers.Dense(7, name="logits")(x), None
    if value_head:
        value = layers.Reshape((), name="value")(layers.Dense(1, activation="tanh", name="value_unit")(x))
    return heads.network("dense", planes, logits, value, initializer)

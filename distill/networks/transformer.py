"""The published Transformer: 42 cell tokens and CLS, pre-norm layers; 137,351 parameters.

Dimensions: B batch, T = 42 cells, D = 64 features.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from distill.game.rules import CELLS
from distill.networks import heads

FEATURES = 64
LAYERS = 4
ATTENTION_HEADS = 4
FEED_FORWARD = 128
DROPOUT = 0.1
TOKENS = 3  # empty, own, opponent


@keras.saving.register_keras_serializable(package="distill")
class BoardEmbedding(layers.Layer):
    """tokens int32 (B, T) → float32 (B, 1 + T, D): CLS first, a learned position added to every entry."""

    def __init__(self, features: int, **options: Any) -> None:
        super().__init__(**options)
        self.features = features

    def build(self, _shape: Any) -> None:
        def weight(name: str, *shape: int) -> Any:
            return self.add_weight(name=name, shape=shape, initializer=keras.initializers.RandomNormal(stddev=0.02))

        self.cells = weight("cells", TOKENS, self.features)
        self.cls = weight("cls", self.features)
        self.positions = weight("positions", 1 + CELLS, self.features)

    def call(self, tokens: Any) -> Any:
        # A product with one-hot tokens: on a CPU its gradient is far cheaper than that of a gather from three rows.
        # Compared and not ops.one_hot, because few programs that read ONNX know its operation OneHot.
        one_hot = ops.cast(ops.equal(tokens[..., None], np.arange(TOKENS, dtype="int32")), self.compute_dtype)
        cells = ops.matmul(one_hot, self.cells)
        cls = ops.broadcast_to(self.cls, (ops.shape(tokens)[0], 1, self.features))
        return ops.concatenate([cls, cells], axis=1) + self.positions

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "features": self.features}


def build(
    value_head: bool = False,
    *,
    features: int = FEATURES,
    layers: int = LAYERS,
    attention_heads: int = ATTENTION_HEADS,
    feed_forward: int = FEED_FORWARD,
    dropout: float = DROPOUT,
) -> keras.Model:
    """tokens (B, 42) → logits (B, 7) and, where wanted, value (B,). `features` is a multiple of `attention_heads`."""
    tokens = heads.tokens_input()
    x = BoardEmbedding(features, name="embedding")(tokens)
    for number in range(1, layers + 1):
        x = encoder_layer(x, f"layer{number}", attention_heads, feed_forward, dropout)
    cls = x[:, 0, :]

    logits = keras.layers.Dense(7, name="logits")(cls)

    value = heads.value_head(cls) if value_head else None
    return heads.network("transformer", tokens, logits, value)


def encoder_layer(x: Any, name: str, attention_heads: int, feed_forward: int, dropout: float) -> Any:
    """x + attention(norm(x)), then x + feed-forward(norm(x)); (B, 1 + T, D) in and out."""
    features = x.shape[-1]
    y = layers.LayerNormalization(name=f"{name}_attention_norm")(x)
    y = layers.MultiHeadAttention(attention_heads, features // attention_heads, name=f"{name}_attention")(y, y)
    x = layers.Add(name=f"{name}_attention_add")([x, layers.Dropout(dropout, name=f"{name}_attention_dropout")(y)])
    y = layers.LayerNormalization(name=f"{name}_norm")(x)
    y = layers.Dense(feed_forward, activation="relu", name=f"{name}_expand")(y)
    y = layers.Dense(features, name=f"{name}_contract")(y)
    return layers.Add(name=f"{name}_add")([x, layers.Dropout(dropout, name=f"{name}_dropout")(y)])

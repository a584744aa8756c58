"""The published networks as products of matrices: same weights, same function, faster to train on a CPU.

What is saved and served are the networks of `cnn.py` and `transformer.py`, made of Keras' own layers. A CPU multiplies
large matrices at its peak and does little else well, so the steps of training go to these forms of them:

- `cnn`: a depthwise convolution is C products (B, T) · (T, T), where cells that lie at the same distance share a
  weight, a pointwise one a single product (B·T, C) · (C, F), and the norm over the batch one fused operation;
- `transformer`: attention as plain products, and a last layer that works out CLS alone, the one vector that is read.

Dropout can be changed, or left out, without touching the networks. What both gain: `benchmarks/train.py`.

Dimensions: B batch, C channels in, F channels out, T = 42 cells, S tokens, D features.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill import nets
from distill.game.rules import CELLS, COLUMNS
from distill.nets import cnn, heads, transformer


def build(
    arch: str, value_head: bool = False, precision: nets.Precision = "float32", dropout: float | None = None
) -> keras.Model:
    """`nets.build(arch, value_head, precision)` in matrix form; `dropout` None keeps the shape's own.

    Raises ValueError for an arch that has no such form, see `FORMS`.
    """
    if arch not in FORMS:
        raise ValueError(f"arch {arch!r} is none of {', '.join(FORMS)}")
    with nets.arithmetic(precision):
        return FORMS[arch](value_head, dropout)


def copy_weights(source: keras.Model, target: keras.Model) -> None:
    """Give a network the weights of its other form: the same numbers in the same order, some under another shape."""
    shapes = [weight.shape for weight in target.weights]
    target.set_weights([np.reshape(w, s) for w, s in zip(source.get_weights(), shapes, strict=True)])


# The CNN --------------------------------------------------------------------------------------------------------------


def _cnn(value_head: bool, dropout: float | None) -> keras.Model:
    planes = heads.planes_input()
    x = planes
    for stage in range(1, cnn.STAGES + 1):
        x = SeparableConvolution(cnn.FILTERS, cnn.KERNEL, name=f"conv{stage}")(x)
        x = BatchNorm(momentum=heads.NORM_MOMENTUM, name=f"norm{stage}")(x)
        x = layers.ReLU(name=f"relu{stage}")(x)
    features = layers.GlobalAveragePooling2D(name="pool")(x)

    hidden = layers.Dense(cnn.HIDDEN, activation="relu", name="hidden")(features)
    hidden = layers.Dropout(cnn.DROPOUT if dropout is None else dropout, name="dropout")(hidden)
    logits = layers.Dense(COLUMNS, name="logits")(hidden)
    return heads.network("cnn", planes, logits, heads.value_head(features) if value_head else None)


class SeparableConvolution(layers.Layer):
    """Keras' `SeparableConv2D` with padding "same" and no bias: (B, H, W, C) → (B, H, W, F)."""

    def __init__(self, filters: int, kernel_size: int, **options: Any) -> None:
        super().__init__(**options)
        self.filters, self.kernel_size = filters, kernel_size

    def build(self, shape: Any) -> None:
        kernel = (self.kernel_size, self.kernel_size, shape[-1], 1)
        self.depthwise = self.add_weight(name="depthwise", shape=kernel, initializer="zeros")
        self.pointwise = self.add_weight(name="pointwise", shape=(shape[-1], self.filters), initializer="zeros")

    def call(self, x: Any) -> Any:
        height, width, channels = x.shape[1:]
        kernels = ops.reshape(self.depthwise, (-1, channels))
        placed = ops.matmul(ops.transpose(kernels), ops.cast(_placement(self.kernel_size), x.dtype))
        x = ops.reshape(ops.transpose(ops.reshape(x, (-1, channels))), (channels, -1, CELLS))  # (C, B, T)
        x = ops.matmul(x, ops.reshape(placed, (channels, CELLS, CELLS)))
        x = _transposed_product(ops.reshape(x, (channels, -1)), self.pointwise)
        return ops.reshape(x, (-1, height, width, self.filters))

    def compute_output_shape(self, shape: Any) -> tuple[Any, ...]:
        return (*shape[:-1], self.filters)


class BatchNorm(layers.BatchNormalization):
    """Keras' layer over (B, H, W, C); with TensorFlow its training steps go through one fused operation."""

    def call(self, x: Any, training: bool = False) -> Any:
        if not training or keras.backend.backend() != "tensorflow":
            return super().call(x, training=training)
        import tensorflow as tf

        nothing = tf.zeros([0])  # of running means, which are ours to keep
        x, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=self.gamma, offset=self.beta, mean=nothing, variance=nothing, epsilon=self.epsilon
        )
        rows = ops.cast(ops.size(x) // x.shape[-1], "float32")
        self._keep(self.moving_mean, mean)
        self._keep(self.moving_variance, variance * (rows - 1) / rows)  # the operation's has Bessel's correction
        return x

    def _keep(self, moving: Any, now: Any) -> None:
        moving.assign(moving * self.momentum + now * (1 - self.momentum))


def _transposed_product(x: Any, y: Any) -> Any:
    """(C, N), (C, F) → (N, F). TensorFlow's own flag spares its gradient a transposed copy."""
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(ops.transpose(x), y)
    import tensorflow as tf

    return tf.matmul(x, tf.cast(y, x.dtype), transpose_a=True)


def _placement(size: int) -> NDArray[np.float32]:
    """float32 (size², T²): which weight of a size × size kernel joins which cell to which, 1 where it does."""
    rows, columns = np.divmod(np.arange(CELLS), COLUMNS)
    down = rows[:, None] - rows[None, :] + size // 2  # from the cell that is written to the one that is read
    right = columns[:, None] - columns[None, :] + size // 2
    weight = np.where((down >= 0) & (down < size) & (right >= 0) & (right < size), down * size + right, -1)
    return (weight.reshape(1, -1) == np.arange(size * size)[:, None]).astype(np.float32)


# The Transformer ------------------------------------------------------------------------------------------------------


def _transformer(value_head: bool, dropout: float | None) -> keras.Model:
    rate = transformer.DROPOUT if dropout is None else dropout
    tokens = heads.tokens_input()
    x = transformer.BoardEmbedding(transformer.FEATURES, name="embedding")(tokens)
    for number in range(1, transformer.LAYERS + 1):
        x = _encoder_layer(x, f"layer{number}", rate, only_first=number == transformer.LAYERS)
    features = x[:, 0, :]
    logits = layers.Dense(COLUMNS, name="logits")(features)
    return heads.network("transformer", tokens, logits, heads.value_head(features) if value_head else None)


def _encoder_layer(x: Any, name: str, rate: float, only_first: bool) -> Any:
    """`transformer.encoder_layer`; with `only_first` it gives the first token alone, (B, 1, D)."""
    y = layers.LayerNormalization(name=f"{name}_attention_norm")(x)
    attention = Attention(transformer.ATTENTION_HEADS, name=f"{name}_attention")
    if only_first:
        x, y = x[:, :1, :], attention([y[:, :1, :], y])
    else:
        y = attention([y, y])
    x = layers.Add(name=f"{name}_attention_add")([x, layers.Dropout(rate, name=f"{name}_attention_dropout")(y)])
    y = layers.LayerNormalization(name=f"{name}_norm")(x)
    y = layers.Dense(transformer.FEED_FORWARD, activation="relu", name=f"{name}_expand")(y)
    y = layers.Dense(transformer.FEATURES, name=f"{name}_contract")(y)
    return layers.Add(name=f"{name}_add")([x, layers.Dropout(rate, name=f"{name}_dropout")(y)])


class Attention(layers.Layer):
    """Keras' `MultiHeadAttention` without its dropout: asking (B, S', D) and asked (B, S, D) → (B, S', D)."""

    def __init__(self, attention_heads: int, **options: Any) -> None:
        super().__init__(**options)
        self.attention_heads = attention_heads

    def build(self, shapes: Any) -> None:
        features = shapes[0][-1]
        self.kernels, self.biases = [], []
        for name in ("query", "key", "value", "output"):
            self.kernels.append(self.add_weight(name=f"{name}_kernel", shape=(features, features), initializer="zeros"))
            self.biases.append(self.add_weight(name=f"{name}_bias", shape=(features,), initializer="zeros"))

    def call(self, inputs: Any) -> Any:
        asking, asked = inputs
        features = asking.shape[-1]
        query, key, value = (
            self._by_head(ops.matmul(x, kernel) + bias)
            for x, kernel, bias in zip((asking, asked, asked), self.kernels[:3], self.biases[:3], strict=True)
        )
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) * (features // self.attention_heads) ** -0.5
        seen = ops.transpose(ops.matmul(ops.softmax(scores), value), (0, 2, 1, 3))
        return ops.matmul(ops.reshape(seen, (-1, asking.shape[1], features)), self.kernels[3]) + self.biases[3]

    def _by_head(self, x: Any) -> Any:
        """(B, S, D) → (B, heads, S, D / heads)."""
        split = ops.reshape(x, (-1, x.shape[1], self.attention_heads, x.shape[-1] // self.attention_heads))
        return ops.transpose(split, (0, 2, 1, 3))

    def compute_output_shape(self, shapes: Any) -> Any:
        return shapes[0]


FORMS = {"cnn": _cnn, "transformer": _transformer}
"""By arch; the others' own layers are as fast as a CPU makes them."""

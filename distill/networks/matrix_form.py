"""Networks as products of matrices: same weights, same function, faster to train and to ask on a CPU.

What is saved and served are the networks of the shapes' own files, made of Keras' own layers. A CPU multiplies large
matrices at its peak and does little else well, so the steps of training, and a search's questions in float32, go to
these forms of them:

- `cnn`: a depthwise convolution is C products (B, T) · (T, T), where cells that lie at the same distance share a
  weight, a pointwise one a single product (B·T, C) · (C, F), and the norm over the batch one fused operation;
- `transformer`: attention as plain products, and a last layer that works out CLS alone, the one vector that is read;
- `pillar`, `pillar-lines`, `mk4`, `resnet`: the convolutions of a whole board by the method of Toom and Cook, as
  Winograd uses it: 72 products of matrices in place of 378. Features lie cells first, (T, B, C). In float32 alone,
  since its sums cost two of the digits of every number, and on a CPU alone, since an accelerator rounds their factors.
  To be asked, kernels are prepared once (`to_be_asked`).

Dropout can be changed, or left out, without touching the networks. What they gain: `benchmarks/train.py`.

Dimensions: B batch, C channels in, F channels out, T = 42 cells, S tokens, D features.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill import networks
from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import cnn, heads, mk4, pillar, resnet, transformer


def build(
    arch: str, value_head: bool = False, precision: networks.Precision = "float32", dropout: float | None = None
) -> keras.Model:
    """`networks.build(arch, value_head, precision)` in matrix form; `dropout` None keeps the shape's own.

    Raises ValueError for an arch that has no such form, see `FORMS`.
    """
    if arch not in FORMS:
        raise ValueError(f"arch {arch!r} is none of {', '.join(FORMS)}")
    with networks.arithmetic(precision):
        return FORMS[arch](value_head, dropout)


def pays(arch: str, precision: networks.Precision) -> bool:
    """Whether an arch has such a form, and one that is as good as its layers in this precision, here."""
    return arch in FORMS and (arch not in WHOLE_BOARD or (precision == "float32" and networks.on_cpu()))


def copy_weights(source: keras.Model, target: keras.Model) -> None:
    """Give a network the weights of its other form: the same numbers in the same order, some under another shape."""
    give(target, source.get_weights())


def give(target: keras.Model, weights: list[NDArray[Any]]) -> None:
    """Set a network to the weights of its other form, or of its own."""
    target.set_weights([np.reshape(given, own.shape) for given, own in zip(weights, target.weights, strict=True)])


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

HEADS = transformer.ATTENTION_HEADS
NORM_EPSILON = 1e-3
"""Of Keras' `LayerNormalization`."""


def _transformer(value_head: bool, dropout: float | None) -> keras.Model:
    rate = transformer.DROPOUT if dropout is None else dropout
    tokens = heads.tokens_input()
    x = transformer.BoardEmbedding(transformer.FEATURES, name="embedding")(tokens)
    x = ops.transpose(x, (2, 0, 1))
    for number in range(1, transformer.LAYERS + 1):
        x = EncoderLayer(rate, only_first=number == transformer.LAYERS, name=f"layer{number}")(x)
    features = ops.transpose(x[:, :, 0])
    logits = layers.Dense(COLUMNS, name="logits")(features)
    return heads.network("transformer", tokens, logits, heads.value_head(features) if value_head else None)


class EncoderLayer(layers.Layer):
    """`transformer.encoder_layer` on features that come first: (D, B, S) → (D, B, S).

    In that order a norm over the features is the fused norm of B·S channels, and a bias is added to a whole row. The
    norms' own weights and the scale of attention are multiplied into the small kernels that follow, not into the
    features.

    Args:
      dropout: rate.
      only_first: give the first token alone, (D, B, 1).
    """

    def __init__(self, dropout: float, only_first: bool, **options: Any) -> None:
        super().__init__(**options)
        self.only_first = only_first
        self.dropouts = [layers.Dropout(dropout, name=f"dropout{number}") for number in (1, 2)]

    def build(self, shape: Any) -> None:
        width, wide = shape[0], transformer.FEED_FORWARD

        def norm(name: str) -> tuple[Any, Any]:
            gamma = self.add_weight(name=f"{name}_gamma", shape=(width,), initializer="ones")
            return gamma, self.add_weight(name=f"{name}_beta", shape=(width,), initializer="zeros")

        def dense(name: str, *size: int) -> tuple[Any, Any]:
            kernel = self.add_weight(name=f"{name}_kernel", shape=size, initializer="zeros")
            return kernel, self.add_weight(name=f"{name}_bias", shape=size[1:], initializer="zeros")

        self.attention_norm = norm("attention_norm")  # in the order of the layers that they belong to there
        self.query, self.key, self.value = (dense(name, width, width) for name in ("query", "key", "value"))
        self.output_dense = dense("output", width, width)
        self.norm = norm("norm")
        self.expand, self.contract = dense("expand", width, wide), dense("contract", wide, width)

    def call(self, x: Any) -> Any:
        y = _normalised(x)
        x = x[:, :, :1] if self.only_first else x
        x = x + self.dropouts[0](self._attention(y))
        y = ops.relu(_dense(_normalised(x), *_after(self.norm, *self.expand)))
        return x + self.dropouts[1](_dense(y, *self.contract))

    def _attention(self, y: Any) -> Any:
        """Of all tokens, or of the first alone, to all: (D, B, S) → (D, B, S')."""
        asking, width = y[:, :, :1] if self.only_first else y, y.shape[0]
        query, key, value = (
            ops.reshape(_dense(x, *_after(self.attention_norm, *dense)), (HEADS, width // HEADS, -1, x.shape[-1]))
            for x, dense in ((asking, self.query), (y, self.key), (y, self.value))
        )
        query = ops.transpose(query, (0, 2, 3, 1)) * (width // HEADS) ** -0.5
        weights = ops.softmax(ops.matmul(query, ops.transpose(key, (0, 2, 1, 3))))  # (heads, B, S', S)
        seen = ops.matmul(ops.transpose(value, (0, 2, 1, 3)), ops.transpose(weights, (0, 1, 3, 2)))
        seen = ops.reshape(ops.transpose(seen, (0, 2, 1, 3)), (width, -1, asking.shape[-1]))
        return _dense(seen, *self.output_dense)

    def compute_output_shape(self, shape: Any) -> tuple[Any, ...]:
        return (*shape[:-1], 1) if self.only_first else tuple(shape)


def _normalised(x: Any) -> Any:
    """`LayerNormalization` over the first axis of (D, B, S), without its own weights."""
    if keras.backend.backend() != "tensorflow":
        wide = ops.cast(x, "float32")
        mean, variance = ops.moments(wide, axes=0, keepdims=True)
        return ops.cast((wide - mean) * ops.rsqrt(variance + NORM_EPSILON), x.dtype)
    import tensorflow as tf

    flat, nothing = ops.reshape(x, (x.shape[0], 1, 1, -1)), tf.zeros([0])
    ones = tf.ones([ops.shape(flat)[-1]])
    flat, *_ = tf.raw_ops.FusedBatchNormV3(
        x=flat, scale=ones, offset=ones * 0, mean=nothing, variance=nothing, epsilon=NORM_EPSILON
    )
    return ops.reshape(flat, (x.shape[0], -1, x.shape[-1]))


def _after(norm: tuple[Any, Any], kernel: Any, bias: Any) -> tuple[Any, Any]:
    """Kernel and bias that, of features without the norm's weights, make what these make of features with them."""
    gamma, beta = norm
    return kernel * gamma[:, None], ops.matmul(beta[None, :], kernel)[0] + bias


def _dense(x: Any, kernel: Any, bias: Any) -> Any:
    """(D, B, S) → (F, B, S) by kernel (D, F) and bias (F,)."""
    product = _transposed_product(kernel, ops.reshape(x, (x.shape[0], -1)))
    return ops.reshape(product + bias[:, None], (kernel.shape[-1], -1, x.shape[-1]))


# Convolutions of a whole board ----------------------------------------------------------------------------------------


POINTS = (0.0, 1.0, -1.0, 1.5, -1.5, 0.5, -0.5, 4.0)
"""Where polynomials are evaluated, beside infinity: of those tried the ones with the smallest error, 8e-6 of a result's
size."""

POINTS_OF_BOARD = (ROWS + 2) * (COLUMNS + 2)


class WholeBoardConv(layers.Layer):
    """Keras' `Conv2D` with 3 × 3 kernels and padding "same": (T, B, C) → (T, B, F)."""

    def __init__(self, filters: int, use_bias: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.filters, self.use_bias = filters, use_bias

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(3, 3, shape[-1], self.filters))
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.filters,), initializer="zeros")

    def call(self, x: Any) -> Any:
        kernels, biases = self.prepared(x.shape[-1])
        return whole_board(x, kernels) + biases

    def prepared(self, channels: int) -> tuple[Any, Any]:
        """Kernels at the points, (72, C, F), and biases, (F,)."""
        return _at_points(self.kernel), self.bias if self.use_bias else ops.zeros(self.filters)

    def compute_output_shape(self, shape: Any) -> tuple[Any, ...]:
        return (*shape[:-1], self.filters)


class WholeBoardMirrorConv(pillar.MirrorConv):
    """`MirrorConv` with 3 × 3 kernels and padding "same": (T, B, C) → (T, B, 2F)."""

    def call(self, x: Any) -> Any:
        kernels, biases = self.prepared(x.shape[-1])
        return whole_board(x, kernels) + biases

    def prepared(self, channels: int) -> tuple[Any, Any]:
        """Kernels at the points, (72, C, 2F), and biases, (2F,)."""
        return _at_points(self.kernels(channels)), self.biases()

    def compute_output_shape(self, shape: Any) -> tuple[Any, ...]:
        return (*shape[:-1], 2 * self.features)


class GroupNorm(layers.GroupNormalization):
    """Keras' layer, of (T, B, C)."""

    def call(self, x: Any) -> Any:
        channels = x.shape[-1]
        grouped = (CELLS, -1, self.groups, channels // self.groups)
        mean = ops.mean(ops.reshape(ops.mean(x, axis=0), grouped[1:]), axis=-1, keepdims=True)
        x = ops.reshape(x, grouped) - mean
        variance = ops.mean(ops.reshape(ops.mean(ops.square(x), axis=0), grouped[1:]), axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + self.epsilon) * ops.reshape(self.gamma, (self.groups, -1))
        return ops.reshape(x * scale, (CELLS, -1, channels)) + self.beta


class WholeBoardLines(pillar.Lines):
    """`Lines` by one product of matrices."""

    def stones_on_lines(self, planes: Any) -> Any:
        found = ops.matmul(ops.reshape(planes, (-1, 2 * CELLS)), ops.cast(_line_matrix(), planes.dtype))
        return ops.reshape(found, (-1, ROWS, COLUMNS, 2 * pillar.LINES))


@functools.cache
def _line_matrix() -> NDArray[np.float32]:
    """float32 (H · W · 2, H · W · 2 · LINES): `pillar.line_kernels` as one matrix, from the planes of all cells."""
    around = np.pad(pillar.line_kernels(), [(3, 3), (3, 3), (0, 0), (0, 0)])
    seen = [around[6 - row :][:ROWS, 6 - column :][:, :COLUMNS] for row, column in np.ndindex(ROWS, COLUMNS)]
    return np.stack(seen, axis=3).reshape(2 * CELLS, -1)


def _cells_first(x: Any) -> Any:
    """(B, H, W, C) → (T, B, C)."""
    return ops.transpose(ops.reshape(x, (-1, CELLS, x.shape[-1])), (1, 0, 2))


def _boards(x: Any) -> Any:
    """(T, B, C) → (B, H, W, C)."""
    return ops.reshape(ops.transpose(x, (1, 0, 2)), (-1, ROWS, COLUMNS, x.shape[-1]))


FORM = heads.Form(WholeBoardConv, GroupNorm, WholeBoardLines, _cells_first, _boards)
MIRROR_FORM = FORM._replace(convolution=WholeBoardMirrorConv)


class PreparedConv(layers.Layer):
    """Either of them with kernels that stand at the points already: to be asked, not to be trained."""

    def __init__(self, width: int, **options: Any) -> None:
        super().__init__(**options)
        self.width = width

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(POINTS_OF_BOARD, shape[-1], self.width))
        self.bias = self.add_weight(name="bias", shape=(self.width,))

    def call(self, x: Any) -> Any:
        return whole_board(x, self.kernel) + self.bias

    def compute_output_shape(self, shape: Any) -> tuple[Any, ...]:
        return (*shape[:-1], self.width)


def to_be_asked(form: keras.Model) -> keras.Model:
    """The same network with `PreparedConv`, whose weights `prepare` sets."""

    def copied(layer: Any) -> Any:
        if isinstance(layer, WholeBoardConv | WholeBoardMirrorConv):
            return PreparedConv(layer.output.shape[-1], name=layer.name)
        return layer.__class__.from_config(layer.get_config() | {"name": layer.name})

    return keras.models.clone_model(form, clone_function=copied)


def prepare(form: keras.Model, asked: keras.Model) -> None:
    """Set what `to_be_asked` made of a network to its weights."""
    for layer in form.layers:
        to = asked.get_layer(layer.name)
        if isinstance(to, PreparedConv):
            to.set_weights([ops.convert_to_numpy(each) for each in layer.prepared(layer.input.shape[-1])])
        else:
            to.set_weights(layer.get_weights())


def whole_board(x: Any, kernels: Any) -> Any:
    """(T, B, C) and kernels at the points, (72, C, F), → (T, B, F).

    A row of n cells and a kernel's three weights are polynomials. Their product has n + 2 coefficients, of which the
    inner n are the convolution, so it follows from its values at n + 2 points, where the values of the two are
    multiplied. Over the board, rows and then columns, that is (6 + 2) · (7 + 2) = 72 products for the 42 cells' 9
    weights each.
    """
    rows, columns = _line(ROWS), _line(COLUMNS)
    values = _along(rows.values, columns.values, x)
    products = ops.matmul(ops.reshape(values, (POINTS_OF_BOARD, -1, x.shape[-1])), kernels)
    return ops.reshape(_along(rows.cells, columns.cells, products), (CELLS, -1, kernels.shape[-1]))


def _at_points(kernels: Any) -> Any:
    """(3, 3, C, F) → (72, C, F)."""
    found = _along(_line(ROWS).kernel, _line(COLUMNS).kernel, kernels)
    return ops.reshape(found, (POINTS_OF_BOARD, *kernels.shape[2:]))


def _along(rows: NDArray[np.float32], columns: NDArray[np.float32], x: Any) -> Any:
    """Maps of rows, (H', H), and of columns, (W', W), of numbers (H, W, N), of any shape: (H' · W', N)."""
    x = ops.reshape(ops.matmul(rows, ops.reshape(x, (rows.shape[1], -1))), (len(rows), columns.shape[1], -1))
    x = ops.matmul(np.broadcast_to(columns, (len(rows), *columns.shape)), x)
    return ops.reshape(x, (len(rows) * len(columns), -1))


class _Line(NamedTuple):
    """A line of n cells and its n + 2 points: values there of the line's polynomial, (n + 2, n), and of a kernel's,
    (n + 2, 3), and the inner coefficients of a product from its values, (n, n + 2)."""

    values: NDArray[np.float32]
    kernel: NDArray[np.float32]
    cells: NDArray[np.float32]


@functools.cache
def _line(size: int) -> _Line:
    """Of a line of so many cells."""

    def values(coefficients: int) -> NDArray[np.float64]:
        at_infinity = np.eye(coefficients)[-1:]  # the value there is the last coefficient
        return np.concatenate([np.vander(POINTS[: size + 1], coefficients, increasing=True), at_infinity])

    # A network's convolution does not turn its kernel round, a product of polynomials does.
    maps = values(size), values(3)[:, ::-1], np.linalg.inv(values(size + 2))[1:-1]
    return _Line(*(each.astype(np.float32) for each in maps))


Builder: TypeAlias = Callable[[bool, float | None], keras.Model]

WHOLE_BOARD: dict[str, Builder] = {
    "pillar": lambda value_head, _dropout: pillar.build(value_head, "", MIRROR_FORM),
    "pillar-lines": lambda value_head, _dropout: pillar.build(value_head, "lines", MIRROR_FORM),
    "mk4": lambda value_head, _dropout: mk4.build(value_head, FORM),
    "resnet": lambda value_head, _dropout: resnet.build(value_head, FORM),
}
"""Forms that cost two digits."""

FORMS: dict[str, Builder] = {"cnn": _cnn, "transformer": _transformer} | WHOLE_BOARD
"""By arch."""

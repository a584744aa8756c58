"""Convolutions of a whole board as products of matrices, by the method of Toom and Cook, as Winograd uses it.

72 products in place of 378. Features lie cells first, (T, B, C). In float32 alone, since the sums cost two of the
digits of every number, and on a CPU alone, since an accelerator rounds their factors. To be asked, kernels are prepared
once (`to_be_asked`). Which networks have these layers, `matrix_form.py` says.

Dimensions: B batch, H = 6, W = 7, T = 42 cells, C channels in, F channels out.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.nets import heads, pillar

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

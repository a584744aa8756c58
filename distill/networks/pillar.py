"""Our own shape: columns stay apart until the read-out, and a mirrored board gives mirrored logits; 182,087 parameters.

Features come in pairs, a detector and its mirror image, so the last axis holds 2·F channels: F detectors,
then the same F looking the other way. Three rules keep the symmetry for any weights, up to the rounding of sums:

- a convolution stores the kernels of its first F outputs; the other F are those kernels flipped left to
  right, with the halves of their inputs swapped (a group convolution over the reflection);
- a bias is shared by a detector and its mirror image;
- the read-out sees the board and its mirror image (a flip of columns and a swap of halves, no second pass through the
  trunk) with the same weights, and the two answers are added, the second one flipped back.

So half the weights do the work of a plain network as wide, nothing is left to learn about the mirror,
and left and right are told apart inside, which kernels forced to be symmetric could not.

There is no normalisation: a residual block begins as the identity (its second kernel is zero), which trains as well
for three blocks and, on a CPU, in two thirds of the time.

`pillar-lines` is the same trunk, told what follows from the rules and takes a small network long to learn (`Lines`).

Dimensions: B batch, H = 6, W = 7, F features of one orientation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill import networks
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads

FEATURES = 32
BLOCKS = 3
HIDDEN = 128


@keras.saving.register_keras_serializable(package="distill")
class MirrorConv(layers.Layer):
    """Convolution (B, H, W, C) → (B, H', W, 2F), with bias, that commutes with the mirror.

    The kernel is kept as a matrix (height · width · C, F), the form in which the optimizer Muon takes weights.

    Args:
      features: F.
      kernel_size: height and width.
      padding: "same" or "valid".
      paired: whether the input has two halves that swap when the board is mirrored; planes have none.
      initializer: of the kernel.
    """

    def __init__(
        self,
        features: int,
        kernel_size: tuple[int, int],
        padding: str = "same",
        paired: bool = True,
        initializer: str = "he_normal",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.features, self.kernel_size = features, tuple(kernel_size)
        self.padding, self.paired, self.initializer = padding, paired, initializer

    def build(self, shape: Any) -> None:
        height, width = self.kernel_size
        self.kernel = self.add_weight(
            name="kernel", shape=(height * width * shape[-1], self.features), initializer=self.initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.features,), initializer="zeros")

    def call(self, x: Any) -> Any:
        return ops.conv(x, self.kernels(x.shape[-1]), padding=self.padding) + self.biases()

    def kernels(self, channels: int) -> Any:
        """All of them, (height, width, C, 2F)."""
        own = ops.reshape(self.kernel, (*self.kernel_size, channels, self.features))
        mirrored = ops.flip(own, axis=1)
        if self.paired:
            mirrored = swap_halves(mirrored, axis=2)
        return ops.concatenate([own, mirrored], axis=-1)

    def biases(self) -> Any:
        """All of them, (2F,)."""
        return ops.concatenate([self.bias, self.bias], axis=-1)

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("features", "kernel_size", "padding", "paired", "initializer")}
        return {**super().get_config(), **own}


def swap_halves(x: Any, axis: int = -1) -> Any:
    """The two halves of an axis in the other order."""
    first, second = ops.split(x, 2, axis=axis)
    return ops.concatenate([second, first], axis=axis)


@keras.saving.register_keras_serializable(package="distill")
class Lines(layers.Layer):
    """planes (B, H, W, 2) → (B, H, W, 9): the planes, and what the rules say of every cell; no weights.

    - the cell that the next stone of its column falls on;
    - the rows that the side to move fills where both follow each other up, and whether that side moves second: the
      parity of the stones, which decides endgames and which sums of neighbours do not see;
    - for each side, empty cells where its stone would complete four;
    - for each side, on empty cells, a quarter of the lines of four that hold two or three of its stones and no other.

    Small whole numbers and quarters, so every precision gives the same planes.
    """

    def call(self, planes: Any) -> Any:
        stones = ops.sum(planes, axis=-1, keepdims=True)
        empty = 1 - stones
        playable = empty * ops.concatenate([stones[:, 1:], ops.ones_like(stones[:, :1])], axis=1)
        count = ops.sum(stones, axis=(1, 2), keepdims=True)
        second = count - 2 * ops.floor(count / 2)
        odd = ops.cast(np.arange(ROWS, 0, -1)[:, None, None] % 2, planes.dtype)  # the lowest row is the first
        followed = odd + second - 2 * odd * second
        own = self.stones_on_lines(planes)
        own = ops.reshape(own + ops.cast(_off_board(), planes.dtype), (-1, ROWS, COLUMNS, 2, LINES))
        three = ops.max(ops.relu(own - 2), axis=-1) * empty
        two = ops.sum(ops.clip(own - 1, 0, 1), axis=-1) * empty / 4
        on_all = ops.ones_like(stones)
        return ops.concatenate([planes, playable, followed * on_all, second * on_all, three, two], axis=-1)

    def stones_on_lines(self, planes: Any) -> Any:
        """What `line_kernels` gives, (B, H, W, 2 · LINES)."""
        return ops.conv(planes, ops.cast(line_kernels(), planes.dtype), padding="same")


LINES = 13
"""Lines of four through a cell; of the vertical ones only that which ends there, for no stone lies above an empty
cell."""


def line_kernels() -> NDArray[np.float32]:
    """float32 (7, 7, 2, 2 · LINES): for each side and line, 1 on its stones in the other three cells, else −3."""
    lines = [[(down, 0) for down in (1, 2, 3)]]
    for down, right in ((0, 1), (1, 1), (-1, 1)):
        for start in range(-3, 1):
            lines.append([(down * step, right * step) for step in range(start, start + 4) if step])
    kernels = np.zeros((7, 7, 2, 2, LINES), np.float32)
    for number, line in enumerate(lines):
        for down, right in line:
            kernels[3 + down, 3 + right, :, :, number] = [[1, -3], [-3, 1]]
    return kernels.reshape(7, 7, 2, -1)


def _off_board() -> NDArray[np.float32]:
    """float32 (H, W, 2 · LINES): −3 for each cell of a line that is not on the board, else 0."""
    inside = np.pad(np.ones((ROWS, COLUMNS), np.float32), 3)
    windows = np.lib.stride_tricks.sliding_window_view(inside, (7, 7))
    return -3 * np.tensordot(1 - windows, (line_kernels() != 0)[:, :, 0].astype(np.float32), axes=2)


PLAIN = heads.Form(MirrorConv, lines=Lines)
"""Keras' own convolutions of boards as they are."""


def build(value_head: bool = False, variant: str = "", form: heads.Form = PLAIN) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where asked for, value (B,); variant "lines": `pillar-lines`."""
    planes = heads.planes_input()
    x = trunk(form.lines(name="lines")(planes) if variant == "lines" else planes, form=form)
    flatten = layers.Flatten(name="flatten")
    hidden = layers.Dense(HIDDEN, activation="relu", name="hidden")
    logits, seen = read_out(hidden, flatten(x), flatten(mirrored(x)))
    name = "pillar-lines" if variant == "lines" else networks.in_identity("pillar")
    return heads.network(name, planes, logits, heads.value_head(seen) if value_head else None)


def trunk(
    planes: Any, features: int = FEATURES, blocks: int = BLOCKS, passes: int = 1, form: heads.Form = PLAIN
) -> Any:
    """planes (B, H, W, C) → one vector a column (B, 1, W, 2F); the blocks are gone through, in turn, so many times."""
    x = layers.ReLU(name="stem_relu")(MirrorConv(features, (3, 3), paired=False, name="stem")(planes))
    x = form.enter(x)
    for block in [_block(features, f"block{number}", form) for number in range(1, blocks + 1)] * passes:
        x = block(x)
    x = form.leave(x)
    x = MirrorConv(features, (ROWS, 1), padding="valid", name="columns")(x)
    return layers.ReLU(name="columns_relu")(x)


def _block(features: int, name: str, form: heads.Form) -> Callable[[Any], Any]:
    first = form.convolution(features, (3, 3), name=f"{name}_conv1")
    second = form.convolution(features, (3, 3), initializer="zeros", name=f"{name}_conv2")
    relu1, relu2 = (layers.ReLU(name=f"{name}_relu{number}") for number in (1, 2))
    add = layers.Add(name=f"{name}_add")
    return lambda x: relu2(add([x, second(relu1(first(x)))]))


def mirrored(x: Any) -> Any:
    """The features (B, H', W, 2F) of the mirrored board."""
    return swap_halves(ops.flip(x, axis=2))


def read_out(hidden: Any, features: Any, mirrored: Any) -> tuple[Any, Any]:
    """Logits (B, W) and what a value head reads, from the features of a board and of its mirror image.

    What is read is a sum, the same for a board and its mirror image, as its value must be.
    """
    last = layers.Dense(COLUMNS, name="read_out")
    seen, seen_mirrored = hidden(features), hidden(mirrored)
    logits = layers.Add(name="logits")([last(seen), ops.flip(last(seen_mirrored), axis=1)])
    return logits, layers.Add(name="value_seen")([seen, seen_mirrored])

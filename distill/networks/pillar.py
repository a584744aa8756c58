"""Our own network: columns stay apart until the read-out, a mirrored board gives mirrored logits.

It reads seven planes that follow from the rules (`Lines`), which a small network takes long to learn. 184,103
parameters, 192,424 with a value head. `pillar-plain` does without these planes: 182,087 and 190,408. `pillar-large`,
the strongest network without search, has twice as many features and blocks, 1,171,399 parameters, and takes about six
times as long; `experiments/large` says how one was trained.

Features come in pairs, a detector and its mirror image, so the last axis holds 2·F channels: F detectors,
then the same F looking the other way. Three rules keep the symmetry for any weights, up to the rounding of sums:

- a convolution stores the kernels of its first F outputs; the other F are those kernels flipped left to
  right, with the halves of their inputs swapped (a group convolution over the reflection);
- a bias is shared by a detector and its mirror image;
- the read-out sees the board and its mirror image (columns flipped, halves swapped; the trunk runs once) with the same
  weights, and the two results are added, the second one flipped back.

So half the weights do the work of a plain network of this width, nothing is left to learn about the mirror, and
features still distinguish left from right, which symmetric kernels could not.

There is no normalization: a residual block starts as the identity (its second kernel is zero), which trains as well
for three blocks and, on a CPU, in two thirds of the time.

Dimensions: B batch, H = 6, W = 7, F features of one orientation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads

FEATURES = 32
BLOCKS = 3
HIDDEN = 128


@keras.saving.register_keras_serializable(package="distill")
class MirrorConv(layers.Layer):
    """Convolution (B, H, W, C) → (B, H', W, 2F), with bias, that commutes with the mirror.

    The kernel is stored as a matrix (height · width · C, F), because the optimizer Muon updates matrices.

    Args:
      features: F.
      kernel_size: height and width.
      padding: "same" or "valid".
      paired: whether the input has two halves that swap when the board is mirrored; planes do not.
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
        """The kernels of both orientations, (height, width, C, 2F)."""
        kernels = ops.reshape(self.kernel, (*self.kernel_size, channels, self.features))
        # The second half of the outputs: the same kernels, looking the other way.
        mirrored = ops.flip(kernels, axis=1)
        if self.paired:
            mirrored = swap_halves(mirrored, axis=2)
        return ops.concatenate([kernels, mirrored], axis=-1)

    def biases(self) -> Any:
        """The biases of both orientations, (2F,)."""
        return ops.concatenate([self.bias, self.bias], axis=-1)

    def get_config(self) -> dict[str, Any]:
        config = {name: getattr(self, name) for name in ("features", "kernel_size", "padding", "paired", "initializer")}
        return {**super().get_config(), **config}


def swap_halves(x: Any, axis: int = -1) -> Any:
    """The two halves of an axis in the other order."""
    first, second = ops.split(x, 2, axis=axis)
    return ops.concatenate([second, first], axis=axis)


def network(
    name: str, value_head: bool = False, *, features: int = FEATURES, blocks: int = BLOCKS, hidden: int = HIDDEN
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where wanted, value (B,); `pillar-plain` is the one without `Lines`."""
    planes = heads.planes_input()
    x = trunk(planes if name == "pillar-plain" else Lines(name="lines")(planes), features, blocks)
    flatten = layers.Flatten(name="flatten")
    dense = layers.Dense(hidden, activation="relu", name="hidden")
    logits, summed = read_out(dense, flatten(x), flatten(mirrored(x)))
    return heads.network(name, planes, logits, heads.value_head(summed) if value_head else None)


build = partial(network, "pillar")
build_plain = partial(network, "pillar-plain")
build_large = partial(network, "pillar-large", features=2 * FEATURES, blocks=2 * BLOCKS, hidden=2 * HIDDEN)


def trunk(planes: Any, features: int = FEATURES, blocks: int = BLOCKS, repeats: int = 1) -> Any:
    """planes (B, H, W, C) → one vector per column (B, 1, W, 2F); `repeats` applies all blocks so many times in turn."""
    x = layers.ReLU(name="stem_relu")(MirrorConv(features, (3, 3), paired=False, name="stem")(planes))
    # Each block is built once, also if it is applied several times.
    for block in [_block(features, f"block{number}") for number in range(1, blocks + 1)] * repeats:
        x = block(x)
    x = MirrorConv(features, (ROWS, 1), padding="valid", name="columns")(x)
    return layers.ReLU(name="columns_relu")(x)


def _block(features: int, name: str) -> Callable[[Any], Any]:
    """x → relu(x + conv2(relu(conv1(x))))."""
    first = MirrorConv(features, (3, 3), name=f"{name}_conv1")
    second = MirrorConv(features, (3, 3), initializer="zeros", name=f"{name}_conv2")
    relu1, relu2 = (layers.ReLU(name=f"{name}_relu{number}") for number in (1, 2))
    add = layers.Add(name=f"{name}_add")
    return lambda x: relu2(add([x, second(relu1(first(x)))]))


def mirrored(x: Any) -> Any:
    """The features (B, H', W, 2F) of the mirrored board."""
    return swap_halves(ops.flip(x, axis=2))


def read_out(hidden: Any, features: Any, mirrored: Any) -> tuple[Any, Any]:
    """Logits (B, W) and the features for a value head, from the features of a board and of its mirror image.

    The features are a sum, equal for a board and its mirror image, as the value must be.
    """
    last = layers.Dense(COLUMNS, name="read_out")
    # Both orientations go through the same layers.
    straight, turned = hidden(features), hidden(mirrored)
    logits = layers.Add(name="logits")([last(straight), ops.flip(last(turned), axis=1)])
    return logits, layers.Add(name="value_seen")([straight, turned])


@keras.saving.register_keras_serializable(package="distill")
class Lines(layers.Layer):
    """planes (B, H, W, 2) → (B, H, W, 9): the planes, and facts about each cell; no weights. In this order:

    - 1 plane: the cells on which the next stone of a column falls;
    - 1 plane: the rows that the side to move fills if both sides keep playing on top of each other;
    - 1 plane: 1 everywhere if the side to move moves second (the parity of stones decides endgames);
    - 2 planes: for each side, the empty cells where its stone completes four;
    - 2 planes: for each side, on empty cells, a quarter of the number of lines of four that hold two or three of its
      stones and no stone of the other.

    The values are small integers and quarters, so every precision gives the same planes.
    """

    def call(self, planes: Any) -> Any:
        stones = ops.sum(planes, axis=-1, keepdims=True)
        empty = 1 - stones
        playable = empty * ops.concatenate([stones[:, 1:], ops.ones_like(stones[:, :1])], axis=1)
        count = ops.sum(stones, axis=(1, 2), keepdims=True)
        # 1 if the side to move moves second: an odd number of stones.
        second = count - 2 * ops.floor(count / 2)
        odd = ops.cast(np.arange(ROWS, 0, -1)[:, None, None] % 2, planes.dtype)  # the lowest row is the first
        followed = odd + second - 2 * odd * second
        sums = ops.reshape(
            self.stones_on_lines(planes) + ops.cast(off_board(), planes.dtype), (-1, ROWS, COLUMNS, 2, LINES)
        )
        # A sum of 3 means three own stones and no other; one stone of the other side makes it negative.
        three = ops.max(ops.relu(sums - 2), axis=-1) * empty
        two = ops.sum(ops.clip(sums - 1, 0, 1), axis=-1) * empty / 4
        on_all = ops.ones_like(stones)
        return ops.concatenate([planes, playable, followed * on_all, second * on_all, three, two], axis=-1)

    def stones_on_lines(self, planes: Any) -> Any:
        """The lines' sums around each cell as if the board had no edge: (B, H, W, 2 · LINES)."""
        return ops.conv(planes, ops.cast(line_kernels(), planes.dtype), padding="same")


LINES = 13
"""Lines of four through a cell. Only one is vertical, the one below it: no stone lies above an empty cell."""


def line_kernels() -> NDArray[np.float32]:
    """float32 (7, 7, 2, 2 · LINES): by side and line, 1 for its stones in the other three cells, else −3."""
    lines = [[(down, 0) for down in (1, 2, 3)]]
    for down, right in ((0, 1), (1, 1), (-1, 1)):
        for start in range(-3, 1):
            lines.append([(down * step, right * step) for step in range(start, start + 4) if step])
    kernels = np.zeros((7, 7, 2, 2, LINES), np.float32)
    for number, line in enumerate(lines):
        for down, right in line:
            kernels[3 + down, 3 + right, :, :, number] = [[1, -3], [-3, 1]]
    return kernels.reshape(7, 7, 2, -1)


def off_board() -> NDArray[np.float32]:
    """float32 (H, W, 2 · LINES): −3 for each cell of a line that is not on the board, else 0."""
    inside = np.pad(np.ones((ROWS, COLUMNS), np.float32), 3)
    windows = np.lib.stride_tricks.sliding_window_view(inside, (7, 7))
    return -3 * np.tensordot(1 - windows, (line_kernels() != 0)[:, :, 0].astype(np.float32), axes=2)

"""A network as a search evaluates it: positions in, logits and values out, as fast as this machine computes them.

`NetworkEvaluator(core)` is a `BitboardEvaluator` (`mcts/evaluator.py`). It calls graphs of a few fixed batch
sizes, so nothing is traced twice, and a position's result does not depend on the others in its batch. The logits are
raw: the search masks full columns itself.

In float32 there is one batch size, because a matrix product adds a row's numbers in an order that may depend on it. A
copy of the network with fast CPU kernels is compiled by XLA; on Windows nothing is. On an accelerator, and with JAX,
batches are as large as those of the search, padded to a power of two, and the last digits may depend on the batch.

With precision bfloat16 the trunk computes in it; weights and read-out stay float32. On a processor that multiplies
bfloat16 this halves the time. With `pillar`, logits then differ by up to 0.04 and values by up to 0.015.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.game.encoding import boards
from distill.game.rules import COLUMNS, ROWS, Bitboards
from distill.networks import heads
from distill.networks.copies import copy, copy_weights, fast_copy

BATCH = 512
"""Largest number of boards per call in bfloat16: larger batches are not faster from 256 on."""

STEP = 64
"""In bfloat16, batches are padded to 8, 16, 32 boards or a multiple of this; a graph is traced once for each size."""

LARGE = 1 << 14
"""Largest number of boards per call on an accelerator, and with JAX; the setting `lanes` decides how many there are."""

STEADY = 16
"""Boards evaluated at once in float32, fewer in runs of fewer games: four fifths as fast as 64, and a third of the time
where few are evaluated."""


class NetworkEvaluator:
    """A network's copy that a search evaluates.

    Args:
      core: the network, with a value head; its weights are copied. Raises UserError for one without.
      precision: of the trunk's arithmetic.
    """

    def __init__(self, core: keras.Model, precision: networks.Precision = "float32") -> None:
        heads.require_value(core, networks.arch_of(core))
        is_fast = precision == "float32"
        self.network = fast_copy(core, inference=True) if is_fast else copy(core, _trunk_in_bfloat16)
        self._size = STEADY if is_fast and networks.on_cpu() else None
        self._batch = self._size or (BATCH if networks.on_cpu() else LARGE)
        self._graphs: dict[int, Callable[[Any], Any]] = {}

    def take_weights(self, core: keras.Model) -> None:
        """Evaluate like this network, of the same shape, from now on."""
        copy_weights(core, self.network)

    def __call__(self, current: Bitboards, mask: Bitboards) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits float32 (B, 7) and values float32 (B,) in [−1, 1] of positions, uint64 (B,) each; any B."""
        inputs = boards(current, mask)
        logits, value = np.empty((len(inputs), COLUMNS), np.float32), np.empty(len(inputs), np.float32)
        for start in range(0, len(inputs), self._batch):
            piece = inputs[start : start + self._batch]
            size = self._size or padded_size(len(piece))
            if size not in self._graphs:
                # On Windows, XLA has refused convolutions (TensorFlow's issue 47184).
                compiled = self._size is not None and sys.platform != "win32"
                self._graphs[size] = _graph(self.network, size, compiled)
            # Empty boards fill the batch; their results are dropped.
            padded = np.zeros((size, ROWS, COLUMNS), np.int8)
            padded[: len(piece)] = piece
            outputs = self._graphs[size](padded)
            logits[start : start + self._batch] = keras.ops.convert_to_numpy(outputs["logits"])[: len(piece)]
            value[start : start + self._batch] = keras.ops.convert_to_numpy(outputs["value"])[: len(piece)]
        return logits, value


def padded_size(number: int) -> int:
    """Batch size of the graph that evaluates this number of boards: few sizes where a new one is compiled for long."""
    if not networks.on_cpu():
        return max(STEP, 1 << (number - 1).bit_length())
    if number > STEP // 2:
        return -(-number // STEP) * STEP
    return max(8, 1 << (number - 1).bit_length())


def _trunk_in_bfloat16(layer: Any) -> networks.Precision:
    """Layers on images and sequences (outputs of rank 3 and more) belong to the trunk."""
    return "bfloat16" if isinstance(layer, keras.Layer) and len(layer.output.shape) > 2 else "float32"


def _graph(network: keras.Model, size: int, compiled: bool) -> Callable[[Any], Any]:
    """The network on boards int8 (size, 6, 7), if `compiled` by XLA.

    On a GPU this needs tools that TensorFlow does not bring along.
    """
    if keras.backend.backend() != "tensorflow":
        board = keras.Input((ROWS, COLUMNS), dtype="int8")
        return keras.Model(board, network(heads.encode(network, board))).predict_on_batch
    import tensorflow as tf

    def outputs(board: Any) -> Any:
        return network(heads.encode(network, board), training=False)

    traced: Callable[[Any], Any] = tf.function(
        outputs, input_signature=[tf.TensorSpec((size, ROWS, COLUMNS), tf.int8)], jit_compile=compiled
    ).get_concrete_function()
    return lambda board: traced(tf.constant(board))


def weights_hash(core: keras.Model) -> str:
    """BLAKE2b-128 over a network's weights, in hex: one name for equal networks."""
    digest = hashlib.blake2b(core.name.encode(), digest_size=16)
    for weight in core.get_weights():
        digest.update(f"{weight.shape}{weight.dtype}".encode())
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()

"""A network as a search asks it: positions in, logits and values out, as fast as this machine does it.

`Evaluator(core)` is the `predict(current, mask) → (logits, value)` of `mcts/puct.py`. It calls graphs of a few fixed
batch sizes, so nothing is traced twice, and a position's answer does not depend on which others were asked with it. The
logits are raw: the search masks full columns itself.

In float32 there is one size: products of matrices add a row's numbers in an order that, on processors without AVX-512,
depends on the size of the batch. There the network is asked in its matrix form, where it has one, compiled by XLA. On
an accelerator, on Windows and with another backend than TensorFlow nothing is compiled, and the last digits may depend
on the batch.

With precision bfloat16 the trunk computes in it; weights and read-out stay float32. That takes half the time on a
processor that has it. On `pillar` logits then differ by up to 0.04 and values by up to 0.015.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError
from distill.game.encoding import boards
from distill.game.mixing import mix
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads, matrix_form

BATCH = 512
"""Boards a call at most: speed is flat from 256 on."""

STEP = 64
"""Batches are padded to 8, 16, 32 boards or to a multiple of this, for which a graph is traced once each."""

STEADY = 16
"""Boards of the only size in float32: four fifths as fast as 64, and a third of the time where few are asked."""

KEPT_BITS = 19
KEPT = 1 << KEPT_BITS
"""Answers kept for positions met again, as in the searches of a game's next moves: 25 MB."""

NOBODYS = np.uint64(2**64 - 1)
"""Stands for the position of a slot that holds no answer."""

Bitboards = NDArray[np.uint64]
Answers = tuple[NDArray[np.float32], NDArray[np.float32]]


class Evaluator:
    """A network's copy to be asked by a search.

    Args:
      core: the network, with a value head; its weights are copied. Raises UserError for one without.
      batch: boards a call at most, in bfloat16.
      precision: of the trunk's arithmetic.
    """

    def __init__(self, core: keras.Model, batch: int = BATCH, precision: networks.Precision = "float32") -> None:
        if not heads.has_value(core):
            raise UserError(f"{networks.arch_of(core)}: this network has no value head, which a search needs")
        self._form = _quick_form(core) if precision == "float32" else None
        self.network = matrix_form.to_be_asked(self._form) if self._form else _coarse_copy(core)
        self.batch = (STEADY if _compiles() else STEP) if self._form else batch
        self._graphs: dict[int, Callable[[Any], Any]] = {}
        self._lock = threading.Lock()
        self._asked = np.zeros((2, KEPT), np.uint64)  # by slot: current and mask of the position answered last
        self._logits, self._value = np.zeros((KEPT, COLUMNS), np.float32), np.zeros(KEPT, np.float32)
        self.take_weights(core)

    def take_weights(self, core: keras.Model) -> None:
        """Answer like this network, of the same shape, from now on."""
        if self._form:
            matrix_form.copy_weights(core, self._form)
            matrix_form.prepare(self._form, self.network)
        else:
            self.network.set_weights(core.get_weights())
        with self._lock:
            self._asked[:] = NOBODYS

    def __call__(self, current: Bitboards, mask: Bitboards) -> Answers:
        """Logits float32 (B, 7) and values float32 (B,) in [−1, 1] of positions, uint64 (B,) each; any B."""
        asked = np.array([current, mask])
        slots = (mix(current + mask) >> np.uint64(64 - KEPT_BITS)).astype(np.int64)
        with self._lock:
            new = (self._asked[:, slots] != asked).any(axis=0)
            logits, value = self._logits[slots], self._value[slots]
        if new.any():
            logits[new], value[new] = self.answers(current[new], mask[new])
            with self._lock:
                self._asked[:, slots[new]] = asked[:, new]
                self._logits[slots[new]], self._value[slots[new]] = logits[new], value[new]
        return logits, value

    def answers(self, current: Bitboards, mask: Bitboards) -> Answers:
        """The same, calculated anew."""
        asked = boards(current, mask)
        logits, value = np.empty((len(asked), COLUMNS), np.float32), np.empty(len(asked), np.float32)
        for start in range(0, len(asked), self.batch):
            piece = asked[start : start + self.batch]
            size = self.batch if self._form else padded_size(len(piece))
            if size not in self._graphs:
                self._graphs[size] = _graph(self.network, size, compiled=self._form is not None and _compiles())
            padded = np.zeros((size, ROWS, COLUMNS), np.int8)
            padded[: len(piece)] = piece
            answer = self._graphs[size](padded)
            logits[start : start + self.batch] = keras.ops.convert_to_numpy(answer["logits"])[: len(piece)]
            value[start : start + self.batch] = keras.ops.convert_to_numpy(answer["value"])[: len(piece)]
        return logits, value


def padded_size(number: int) -> int:
    """Boards of the graph that answers so many."""
    if number > STEP // 2:
        return -(-number // STEP) * STEP
    return max(8, 1 << (number - 1).bit_length())


def _quick_form(core: keras.Model) -> keras.Model:
    """A network of the same shape in its matrix form, or in its own layers where it has none."""
    if matrix_form.pays(arch := networks.arch_of(core), "float32"):
        with contextlib.suppress(ValueError):  # of an older shape
            form = matrix_form.build(arch, True)
            matrix_form.copy_weights(core, form)
            return form
    return keras.models.clone_model(core)


def _coarse_copy(core: keras.Model) -> keras.Model:
    """A copy, of which layers on images and sequences (outputs of rank 3 and more) compute in bfloat16."""

    def copied(layer: Any) -> Any:
        config = layer.get_config()
        if isinstance(layer, keras.Layer) and not isinstance(layer, keras.layers.InputLayer):
            # bare operations take the type they are given
            config["dtype"] = "mixed_bfloat16" if len(layer.output.shape) > 2 else "float32"
        return layer.__class__.from_config(config)

    return keras.models.clone_model(core, clone_function=copied)


def _compiles() -> bool:
    """Whether XLA compiles what a search asks in float32.

    On a GPU that needs tools which TensorFlow does not bring along, and on Windows it has refused convolutions
    (TensorFlow's issue 47184).
    """
    return keras.backend.backend() == "tensorflow" and sys.platform != "win32" and networks.on_cpu()


def _graph(network: keras.Model, size: int, compiled: bool) -> Callable[[Any], Any]:
    """The network on boards int8 (size, 6, 7)."""

    def outputs(board: Any) -> Any:
        return network(heads.encode(network, board), training=False)

    if keras.backend.backend() != "tensorflow":
        return outputs
    import tensorflow as tf

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

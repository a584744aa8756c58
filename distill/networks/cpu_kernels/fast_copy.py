"""A network's copy with fast kernels in place of its layers, wherever they fit; works for a user's networks too."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, tree

from distill.networks.copies import copy_weights, layer_copy
from distill.networks.cpu_kernels import batch_norm, enabled, encoder, separable, whole_board
from distill.networks.precision import Precision, default_precision, on_cpu

ELEMENTWISE = (layers.ReLU, layers.Add)
"""Layers that compute the same in any order of the axes."""


def fast_copy(core: keras.Model, precision: Precision = "float32") -> keras.Model:
    """A network with the same weights that trains faster on this machine.

    Args:
      core: any network; it is left as it is.
      precision: arithmetic of the layers; weights are float32.
    """
    fast = None
    if on_cpu() and enabled("encoder"):
        with default_precision(precision):
            fast = encoder.fast_transformer(core)
    fast = fast or _layer_by_layer(core, precision)
    copy_weights(core, fast)
    return fast


def _layer_by_layer(core: keras.Model, precision: Precision) -> keras.Model:
    # The layers behind the logits first, as networks create them: dropouts draw their seeds in this order.
    ordered = [*keras.Model(core.inputs, core.output["logits"]).layers, *core.layers]
    copies: dict[str, Any] = {}
    for layer in dict.fromkeys(ordered):
        kernel = _kernel(layer, precision) if on_cpu() else None
        copies[layer.name] = kernel or layer_copy(layer, precision)

    def copied(operation: Any) -> Any:
        return copies.get(operation.name) or layer_copy(operation, precision)

    return keras.models.clone_model(core, clone_function=copied, call_function=_Wiring())


def _kernel(layer: layers.Layer, precision: Precision) -> layers.Layer | None:
    """The first kernel that can compute a layer and is enabled."""
    for module in (whole_board, separable, batch_norm):
        if enabled(module.__name__.rpartition(".")[2]) and (kernel := module.replacement(layer, precision)):
            return kernel
    return None


class _Wiring:
    """Calls the copied layers. Features stay cells first from one whole-board kernel to the next."""

    def __init__(self) -> None:
        # By id; the tensors are kept, so that no other gets the id of one.
        self._cells_first: dict[int, Any] = {}
        self._converted: dict[int, Any] = {}

    def __call__(self, layer: Any, *arguments: Any, **more: Any) -> Any:
        cells = any(id(x) in self._cells_first for x in tree.flatten((arguments, more)))
        cells = isinstance(layer, whole_board.CONVOLUTIONS) or (cells and isinstance(layer, ELEMENTWISE))
        arguments, more = tree.map_structure(lambda x: self._ordered(x, cells), (arguments, more))
        result = layer(*arguments, **more)
        if cells:
            self._cells_first[id(result)] = result
        return result

    def _ordered(self, x: Any, cells: bool) -> Any:
        """The features cells first, or boards first; each is converted once."""
        if (id(x) in self._cells_first) == cells or not isinstance(x, keras.KerasTensor):
            return x
        if id(x) not in self._converted:
            self._converted[id(x)] = (whole_board.CellsFirst() if cells else whole_board.BoardsFirst())(x)
        return self._converted[id(x)]

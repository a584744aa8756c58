"""Copies of a network: in another precision, with fast kernels, and weights from one copy to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers, tree

from distill.game.rules import COLUMNS, ROWS
from distill.networks.backend import Precision, dtype_policy, on_cpu
from distill.networks.cpu_kernels import batch_norm, encoder, separable, whole_board
from distill.networks.cpu_kernels.whole_board import PreparedConv

KERNELS = (encoder, whole_board, separable, batch_norm)
"""The kernels in use; tests and benchmarks compute without some."""

ELEMENTWISE = (layers.ReLU, layers.Add)
"""Layers that compute the same in any order of the axes."""


def copy(core: keras.Model, precision: Precision | Callable[[Any], Precision]) -> keras.Model:
    """The same network with the same weights; its layers compute in this precision, which may be a function of them."""
    precision_of = precision if callable(precision) else lambda _: precision
    twin = keras.models.clone_model(core, clone_function=lambda layer: layer_copy(layer, precision_of(layer)))
    twin.set_weights(core.get_weights())
    return twin


def layer_copy(layer: Any, precision: Precision) -> Any:
    """A layer or operation with the same config, except its precision."""
    config = layer.get_config()
    if isinstance(layer, keras.Layer) and not isinstance(layer, keras.layers.InputLayer):
        config["dtype"] = dtype_policy(precision)  # bare operations compute in the type of their inputs
    return layer.__class__.from_config(config)


def copy_weights(source: keras.Model, target: keras.Model) -> None:
    """Give a network the weights of another copy of it, whose arrays may have another shape of the same size.

    Layers are matched by name; in order, if one kernel replaces several layers.
    """
    layers, others = ({layer.name: layer for layer in model.layers if layer.weights} for model in (source, target))
    pairs = [(layers[name], others[name]) for name in layers] if layers.keys() == others.keys() else [(source, target)]
    for original, changed in pairs:
        arrays = original.get_weights()
        if isinstance(changed, PreparedConv):
            arrays = [*map(keras.ops.convert_to_numpy, whole_board.at_points(original, changed.kernel.shape[1]))]
        weights = zip(arrays, changed.weights, strict=True)
        changed.set_weights([np.reshape(array, weight.shape) for array, weight in weights])


# Fast kernels ---------------------------------------------------------------------------------------------------------


def fast_copy(core: keras.Model, precision: Precision = "float32", *, inference: bool = False) -> keras.Model:
    """A network with the same weights that trains faster here: kernels replace its layers wherever they fit.

    Args:
      core: any network; it is left as it is.
      precision: arithmetic of the layers; weights are float32.
      inference: never train it: kernels are transformed once, when it gets its weights.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy(precision))
    try:
        fast = encoder.fast_transformer(core) if on_cpu() and encoder in KERNELS else None
    finally:
        keras.config.set_dtype_policy(before)
    fast = fast or _layer_by_layer(core, precision, inference)
    copy_weights(core, fast)
    return fast


def _layer_by_layer(core: keras.Model, precision: Precision, inference: bool) -> keras.Model:
    # The layers behind the logits first, as networks create them: dropouts draw their seeds in this order.
    ordered = [*keras.Model(core.inputs, core.output["logits"]).layers, *core.layers]
    copies: dict[str, Any] = {}
    for layer in dict.fromkeys(ordered):
        kernel = _kernel(layer, precision) if on_cpu() else None
        if inference and isinstance(kernel, whole_board.CONVOLUTIONS):
            kernel = PreparedConv(layer.output.shape[-1], getattr(layer, "activation", None), name=layer.name)
        copies[layer.name] = kernel or layer_copy(layer, precision)

    def copied(operation: Any) -> Any:
        return copies.get(operation.name) or layer_copy(operation, precision)

    return keras.models.clone_model(core, clone_function=copied, call_function=_Wiring())


def _kernel(layer: layers.Layer, precision: Precision) -> layers.Layer | None:
    """The first kernel that can compute a layer; none for one that is frozen or constrained, as a kernel never is."""
    if not layer.trainable or any(weight.constraint for weight in layer.trainable_weights):
        return None
    for module in (whole_board, separable, batch_norm):
        if module in KERNELS and (kernel := module.replacement(layer, precision)):
            return kernel
    return None


class _Wiring:
    """Calls the copied layers. Features stay cells first from one whole-board kernel to the next."""

    def __init__(self) -> None:
        # By id; the tensors are kept, so that no other gets the id of one.
        self._cells_first: dict[int, Any] = {}
        self._converted: dict[int, Any] = {}

    def __call__(self, layer: Any, *arguments: Any, **more: Any) -> Any:
        tensors = [x for x in tree.flatten((arguments, more)) if isinstance(x, keras.KerasTensor)]
        others = [x.shape[1:3] for x in tensors if id(x) not in self._cells_first]
        cells = len(others) < len(tensors) and type(layer) in ELEMENTWISE and {*others} <= {(ROWS, COLUMNS)}
        cells = cells or isinstance(layer, whole_board.CONVOLUTIONS)
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

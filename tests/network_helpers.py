"""Networks and boards for the tests of networks."""

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from helpers import low

from distill import networks
from distill.exporters import conversion
from distill.game import encoding, rules
from distill.networks import heads, pillar, predict, registry, saved

WIN_ON_THE_RIGHT = low("""
    . . . . . . X
    . . . . . . X
    O O O . . . X
""")
WIN_IN_THE_MIDDLE = low("""
    O . . . . . O
    X X X . . . O
""")
LEFT_COLUMN_FULL = """
    O . . . . . .
    X . . . . . .
    O . . . . . .
    X . . . . . .
    O . . . . . .
    X . . . . . .
"""


SMALL = {
    "BLOCKS": 1,
    "FEATURES": 8,
    "FEED_FORWARD": 16,
    "FILTERS": 16,
    "GROUPS": 4,
    "HIDDEN": 16,
    "KERNEL": 3,
    "LAYERS": 2,  # the last one has its own fast kernels
    "POLICY_FILTERS": 4,
    "STAGES": 2,
    "VALUE_FILTERS": 4,
}


def shrink(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Make each architecture of `networks.build` small: large graphs take long to trace."""
    for build in map(registry.builder, networks.ARCHS):
        build = build.func if isinstance(build, partial) else build
        module = sys.modules[build.__module__]
        for name in SMALL.keys() & vars(module).keys():
            change(module, name, SMALL[name])
        small = {name: SMALL.get(name.upper(), value) for name, value in build.__kwdefaults__.items()}
        change(build, "__kwdefaults__", small)
    change(pillar, "build_large", partial(pillar.network, "pillar-large"))


def check_here(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Check SavedModels in this process instead of a clean one, which needs seconds to start."""
    alone = conversion.run_alone

    def outputs(format: Any, path: Path, boards: Any) -> Any:
        return predict.load(path, fast=False)(boards) if path.is_dir() else alone(format, path, boards)

    change(conversion, "run_alone", outputs)


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_at(module: Any, name: str, on_call: int) -> Iterator[None]:
    """Raises Killed at the call number `on_call` of a module's function."""
    original, calls = getattr(module, name), itertools.count(1)

    def called(*arguments: Any, **more: Any) -> Any:
        if next(calls) == on_call:
            raise Killed
        return original(*arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, called)
        with pytest.raises(Killed):
            yield


def boards_of(*drawings: str) -> np.ndarray:
    positions = [rules.parse_board(drawing) for drawing in drawings]
    return encoding.boards([p.current for p in positions], [p.mask for p in positions])


def played_boards(number: int) -> np.ndarray:
    """int8 (number, 6, 7) from random play."""
    rng = np.random.default_rng(5)
    positions, position = [], rules.EMPTY
    while len(positions) < number:
        positions.append(position)
        position = rules.next_position(position, int(rng.choice(rules.legal_columns(position))))
        position = rules.EMPTY if rules.is_over(position) else position
    return encoding.boards([p.current for p in positions], [p.mask for p in positions])


def with_random_weights(core: keras.Model, seed: int = 3) -> keras.Model:
    """Change biases, scales and statistics from their initial zeros and ones, as training does."""
    rng = np.random.default_rng(seed)
    shifts = [np.abs(rng.normal(0, 0.1, w.shape)) if w.ndim == 1 else np.zeros(w.shape) for w in core.get_weights()]
    core.set_weights([w + shift.astype("float32") for w, shift in zip(core.get_weights(), shifts, strict=True)])
    return core


def arrays(outputs: dict) -> dict[str, np.ndarray]:
    return {name: keras.ops.convert_to_numpy(tensor) for name, tensor in outputs.items()}


def tiny_network(value_head: bool = False, hidden: int = 32) -> keras.Model:
    """One hidden layer on the planes: runs in a millisecond."""
    planes = heads.planes_input()
    features = keras.layers.Flatten()(planes)
    features = keras.layers.Dense(hidden, activation="tanh")(features)
    value = heads.value_head(features) if value_head else None
    return heads.network("tiny", planes, keras.layers.Dense(7, name="logits")(features), value)


def policy_of(core: keras.Model, boards: np.ndarray) -> np.ndarray:
    return saved.predict_with(core)(boards)["policy"]


def same(first, second) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


class Fixed(keras.layers.Layer):
    """The same logits for every board."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = logits

    def call(self, planes):
        return keras.ops.zeros((keras.ops.shape(planes)[0], 1)) + keras.ops.convert_to_tensor(self.logits, "float32")


def answering(logits: list[float], value: float | None = None) -> keras.Model:
    """A served network with these raw logits, and optionally this value, on every board."""
    planes = heads.planes_input()
    output = None if value is None else keras.layers.Reshape(())(Fixed([value])(planes))
    return heads.served(heads.network("fixed", planes, Fixed(logits)(planes), output))


def write_onnx(file: Path, argument: str = "board", **changed: np.ndarray | None) -> None:
    """Write an ONNX file with constant outputs: valid ones except for `changed`; None leaves one out."""
    from onnx import TensorProto, helper, numpy_helper, save

    one = {
        "logits": np.zeros((1, 7), np.float32),
        "policy": np.full((1, 7), 1 / 7, np.float32),
        "move": np.full(1, 3, np.int32),
        "value": np.zeros(1, np.float32),
    } | changed
    constants = {"start": np.zeros(1, np.int64), "end": np.ones(1, np.int64)}
    nodes = [helper.make_node("Shape", [argument], ["shape"])]
    nodes.append(helper.make_node("Slice", ["shape", "start", "end"], ["batch"]))
    outputs = []
    for name, array in one.items():
        if array is not None:
            constants |= {f"{name} one": array, f"{name} width": np.array(array.shape[1:], np.int64)}
            nodes.append(helper.make_node("Concat", ["batch", f"{name} width"], [f"{name} shape"], axis=0))
            nodes.append(helper.make_node("Expand", [f"{name} one", f"{name} shape"], [name]))
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            outputs.append(helper.make_tensor_value_info(name, kind, ["batch", *array.shape[1:]]))
    board = helper.make_tensor_value_info(argument, TensorProto.INT8, ["batch", 6, 7])
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "constant", [board], outputs, stored)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)

"""Networks in 8 bits: how the files are made, and what their moves lose against the network's own.

ONNX: weights have 8 bits and one scale per output channel. ONNX Runtime multiplies the two once, when it loads the
file, and computes in float32. A matrix whose weights are 16-bit floats stays in these, a small one in float32. A
network whose weights were rounded in this way before loses nothing.

LiteRT: int8 weights; activations are rounded to int8 at run time with a scale per board (dynamic-range quantization).

Only grades show what is lost: a file is accepted if it loses less than MOST_LOST on each of `graded_boards`' sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distill.common import UserError
from distill.datasets import benchmark
from distill.datasets.benchmark import HEADLINES, GradedBoards
from distill.datasets.grades import grade_moves
from distill.game import encoding
from distill.game.rules import COLUMNS
from distill.networks import finding

SMALL = 4096
"""Matrices with fewer numbers stay in float32."""
MOST_LOST = 0.01
"""Refuse a file whose optimal-move rate is lower by this much (one point) on any set."""

Loss: TypeAlias = Mapping[str, float]
"""What a file's moves lose on one set, against the network's on the same boards, as stored and mirrored.

`boards` is their number, `same` the share of equal moves. `optimal` and `outcome` are the decreases of the optimal-move
rate and of the outcome accuracy, `optimal_margin` and `outcome_margin` half the widths of their 95 % intervals, with
the board as the unit.
"""


def graded_boards() -> GradedBoards:
    """The boards on which files are graded: the dev half of HEADLINES."""
    return benchmark.read(half="dev", sets=HEADLINES)


def with_mirrors(boards: GradedBoards) -> NDArray[np.int8]:
    """int8 (2B, 6, 7): the boards as stored, then their mirror images."""
    stored = encoding.boards(boards.current, boards.mask)
    return np.concatenate([stored, stored[:, :, ::-1]])


def losses(boards: GradedBoards, expected: NDArray[Any], moves: NDArray[Any]) -> dict[str, Loss]:
    """The loss by set; `expected` and `moves`, int (2B,), are the network's and the file's, on `with_mirrors`."""
    # (2, 2, B): the network's and the file's moves, mirrored back to columns of the stored board.
    columns = np.stack([expected, moves]).reshape(2, 2, -1)
    columns[:, 1] = COLUMNS - 1 - columns[:, 1]
    optimal, outcome = (grades.mean(1) for grades in grade_moves(boards.scores, columns))
    same = (columns[0] == columns[1]).mean(0)
    table = pd.DataFrame({"same": same, "optimal": optimal[0] - optimal[1], "outcome": outcome[0] - outcome[1]})
    by_set = table.groupby(boards.set)
    margins = (1.96 * by_set[["optimal", "outcome"]].sem()).add_suffix("_margin")
    rows: Any = by_set.mean().join(margins).assign(boards=by_set.size()).to_dict("index")
    return {name: rows[name] for name in boards.sets}


def check(title: str, losses: Mapping[str, Loss]) -> None:
    """Raise UserError for a file that loses MOST_LOST or more on a set."""
    if max(loss["optimal"] for loss in losses.values()) >= MOST_LOST:
        limit = f"less than {100 * MOST_LOST:g} on each set"
        raise UserError(f"{title}: the written file loses {in_words(losses)}; allowed: {limit}")


def in_words(losses: Mapping[str, Loss]) -> str:
    """The loss of the optimal-move rate with its interval, set by set, in points."""
    return ", ".join(f"{points(loss, 'optimal')} on {name}" for name, loss in losses.items()) + ", in points of optimal"


def points(loss: Loss, metric: str) -> str:
    """A loss and half the width of its interval, in points."""
    return f"{round(100 * loss[metric], 1) + 0.0:.1f} ±{100 * loss[f'{metric}_margin']:.1f}"  # + 0.0: no -0.0


def rounded(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Weights (…, C) as 8-bit numbers and scales (C,), one per output channel; their product is nearest the weights."""
    scales = np.abs(weights).max(tuple(range(weights.ndim - 1))) / np.float32(127)
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales


def to_int8(model: Any) -> None:
    """Store the weights of convolutions and matrix products in an ONNX model in 8 bits."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    used = [node for node in graph.node if node.op_type in {"Conv", "Gemm", "MatMul"} and node.input[1] in stored]
    for name, node in {node.input[1]: node for node in used}.items():
        weights = numpy_helper.to_array(stored[name])
        if weights.size < SMALL:
            continue
        half = weights.astype(np.float16)
        if np.array_equal(half, weights):
            parts: dict[str, NDArray[Any]] = {"_float16": half}
            nodes = [helper.make_node("Cast", [f"{name}_float16"], [name], to=TensorProto.FLOAT)]
        else:
            rows_first = node.op_type == "Conv" or any(word.name == "transB" and word.i for word in node.attribute)
            channels = 0 if rows_first else weights.ndim - 1
            numbers, scales = rounded(np.moveaxis(weights, channels, -1))
            shape = [-1 if axis == channels else 1 for axis in range(weights.ndim)]
            parts = {finding.INT8_TENSOR: np.moveaxis(numbers, -1, channels).copy(), "_scale": scales.reshape(shape)}
            nodes = [
                helper.make_node("Cast", [name + finding.INT8_TENSOR], [f"{name}_whole"], to=TensorProto.FLOAT),
                helper.make_node("Mul", [f"{name}_whole", f"{name}_scale"], [name]),
            ]
        graph.initializer.remove(stored[name])
        graph.initializer.extend(numpy_helper.from_array(part, name + ending) for ending, part in parts.items())
        for new in reversed(nodes):
            graph.node.insert(0, new)

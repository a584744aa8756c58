"""Networks in 8 bits: how the files are made, and what their moves lose against the network's own.

ONNX: int8 weights of convolutions and matrix products with one scale per channel, uint8 activations with ranges found
on boards of the benchmark's dev half (static quantization in QDQ format). The weights use seven of the eight bits:
with all of them, processors without VNNI overflow 16 bits and give other results than newer ones.

LiteRT: int8 weights; activations are rounded to int8 at run time with a scale per board (dynamic-range quantization).
A static range would have to contain the -1e9 of a full column's logit, and would leave one value for all others.

In both, encoding, softmax, legal mask and the choice of the move stay in float, so the contract is that of the float
files. Only grades show what is lost: a file is accepted if it loses less than MOST_LOST on boards that were not used
to find ranges.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
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

CALIBRATION = 512
"""Number of boards, of both sets together, that ranges are found on."""
MOST_LOST = 0.01
"""Refuse a file whose optimal-move rate is lower by this much (one point) on any set."""


Loss: TypeAlias = Mapping[str, float]
"""What a file's moves lose on one set, against the network's on the same boards, as stored and mirrored.

`boards` is their number, `same` the share of equal moves. `optimal` and `outcome` are the decreases of the optimal-move
rate and of the outcome accuracy, `optimal_margin` and `outcome_margin` half the widths of their 95 % intervals, with
the board as the unit.
"""


def graded_boards() -> tuple[GradedBoards, GradedBoards]:
    """The dev half of HEADLINES in two parts: CALIBRATION boards to find ranges on, all others to grade."""
    boards = benchmark.read(half="dev", sets=HEADLINES)
    # Always the same boards, so a file can be made again.
    drawn = np.random.default_rng(0).permutation(len(boards))
    return boards[np.sort(drawn[:CALIBRATION])], boards[np.sort(drawn[CALIBRATION:])]


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
    sets = (f"{points(loss, 'optimal')} on {name}" for name, loss in losses.items())
    return f"{', '.join(sets)}, in points of optimal"


def points(loss: Loss, metric: str) -> str:
    """A loss and half the width of its interval, in points."""
    return f"{round(100 * loss[metric], 1) + 0.0:.1f} ±{100 * loss[f'{metric}_margin']:.1f}"  # + 0.0: no -0.0


def to_onnx(floating: Path, file: Path, operations: Sequence[str] = ("Conv", "MatMul", "Gemm")) -> None:
    """Write the int8 file of a float ONNX file, and an intermediate one beside the latter; others stay in float."""
    from onnxruntime import quantization

    boards, _ = graded_boards()
    parts = iter(np.array_split(encoding.boards(boards.current, boards.mask), 8))

    class Reader(quantization.CalibrationDataReader):
        def get_next(self) -> dict[str, Any] | None:
            return next(({"board": part} for part in parts), None)

    prepared = floating.with_suffix(".prepared")
    logging.disable(logging.WARNING)  # it recommends the pre-processing that the next line does
    quantization.quant_pre_process(floating, prepared, skip_symbolic_shape=True)
    logging.disable(logging.NOTSET)
    quantization.quantize_static(
        prepared,
        file,
        Reader(),
        quant_format=quantization.QuantFormat.QDQ,
        op_types_to_quantize=[*operations],
        per_channel=True,
        reduce_range=True,  # seven bits, see above
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )

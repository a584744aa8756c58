"""Networks in 8 bits: how the files are made, and what their moves lose against the network's own.

ONNX: weights of convolutions and matrix products int8, one scale a channel, and what flows into them uint8, its range
found on boards of the benchmark's dev half (static quantisation, in the form QDQ). The weights use seven of the eight
bits: with all of them, processors without VNNI overflow sixteen bits and answer otherwise than newer ones.

LiteRT: weights int8; what flows into them is rounded to int8 while it runs, with a scale of its own for each board
(dynamic-range quantisation). Static ranges would have to hold the -1e9 that stands in place of a full column's logit,
and leave the other logits one value.

In both, encoding, softmax, legal mask and the choice of the move stay as they are, so the contract is that of the
float files. Only grades tell what is lost: a file is accepted that loses less than MOST_LOST on boards on which no
range was found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import UserError
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.game import encoding
from distill.game.rules import COLUMNS

SETS = ("midgame", "heldout")
CALIBRATION = 512
"""Boards of both sets together on which ranges are found."""
MOST_LOST = 0.01
"""Share of moves, exact ones, that no set may lose: one point."""
Z = 1.96
"""For intervals of 95 %."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a file's moves lose on one set, against the network's on the same boards, as stored and mirrored.

    Attributes:
      boards: how many.
      same: share of moves that are the network's.
      optimal, right_class: share of moves lost that are best, and that keep the win, draw or loss; below 0: gained.
      exact_margin, class_margin: half the widths of their 95 % intervals; the board is the unit.
    """

    boards: int
    same: float
    optimal: float
    optimal_margin: float
    right_class: float
    class_margin: float


def graded_boards() -> tuple[GradedBoards, GradedBoards]:
    """The dev half of SETS in two parts: CALIBRATION boards for ranges, and all others for grades."""
    boards = benchmark.read(half="dev", sets=SETS)
    drawn = np.zeros(len(boards), np.bool_)
    drawn[np.random.default_rng(0).permutation(len(boards))[:CALIBRATION]] = True
    return boards[drawn], boards[~drawn]


def questions(boards: GradedBoards) -> NDArray[np.int8]:
    """int8 (2B, 6, 7): the boards as stored, then all of them mirrored."""
    stored = encoding.boards(boards.current, boards.mask)
    return np.concatenate([stored, stored[:, :, ::-1]])


def losses(boards: GradedBoards, expected: NDArray[Any], found: NDArray[Any]) -> dict[str, Loss]:
    """By set, what is lost; `expected` and `found` are int (2B,), the moves that answer `questions(boards)`."""
    grades = [_grades(boards, moves) for moves in (expected, found)]
    optimal, right_class = (one - other for one, other in zip(*grades, strict=True))
    same = (expected == found).reshape(2, -1).mean(0)

    def loss(there: NDArray[np.bool_]) -> Loss:
        margins = [Z * lost[there].std(ddof=1) / np.sqrt(there.sum()) for lost in (optimal, right_class)]
        return Loss(
            boards=int(there.sum()),
            same=float(same[there].mean()),
            optimal=float(optimal[there].mean()),
            optimal_margin=float(margins[0]),
            right_class=float(right_class[there].mean()),
            class_margin=float(margins[1]),
        )

    return {name: loss(boards.set == name) for name in boards.sets}


def _grades(boards: GradedBoards, moves: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64 (B,) each: the share of a board's two moves that have the best score, and its sign."""
    turned = np.stack([moves[: len(boards)], COLUMNS - 1 - moves[len(boards) :]])
    played, best = boards.scores[np.arange(len(boards)), turned], boards.scores.max(1)
    return (played == best).mean(0), (np.sign(played) == np.sign(best)).mean(0)


def check(title: str, found: Mapping[str, Loss]) -> None:
    """Raise UserError where a file loses too much to be worth its size."""
    if max(loss.optimal for loss in found.values()) >= MOST_LOST:
        limit = f"less than {100 * MOST_LOST:g} on each set"
        raise UserError(f"{title}: the written file loses {in_words(found)}; allowed: {limit}")


def in_words(found: Mapping[str, Loss]) -> str:
    """Points of exact with their intervals, set by set."""
    sets = (f"{points(loss.optimal, loss.optimal_margin)} on {name}" for name, loss in found.items())
    return f"{', '.join(sets)}, in points of optimal"


def points(lost: float, margin: float) -> str:
    """A share that is lost, and half the width of its interval, in points."""
    return f"{round(100 * lost, 1) + 0.0:.1f} ±{100 * margin:.1f}"  # + 0.0: no -0.0


def to_onnx(floating: Path, file: Path) -> None:
    """Write the int8 file of a float one, both ONNX."""
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            boards, _ = graded_boards()
            self.parts: Iterator[Any] = iter(np.array_split(encoding.boards(boards.current, boards.mask), 8))

        def get_next(self) -> dict[str, Any] | None:
            part = next(self.parts, None)
            return None if part is None else {"board": part}

    prepared = file.with_suffix(".prepared")
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it warns of what is done here: the first step below is its advice
    try:
        quantization.quant_pre_process(floating, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(
            prepared,
            file,
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "MatMul", "Gemm"],
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        root.setLevel(level)
        prepared.unlink(missing_ok=True)

"""`predict(boards)`: what a network is to everybody who asks it, whichever runtime computes it.

It maps int8 boards (B, 6, 7), or one (6, 7), to NumPy arrays by name, as the README of an exported model lists them:
logits (B, 7) with -1e9 on full columns, policy (B, 7), move int32 (B,), and value (B,) where there is that head.

`load(folder)` asks the ONNX file of an exported network where ONNX Runtime is installed, which is ready in a tenth of a
second; TensorFlow takes several to start. The two differ by rounding alone (`ship/comparison.py` has checked it), but a
tie may fall otherwise, so figures are taken with TensorFlow (`saved.load`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.base import UserError, first_line
from distill.game.rules import COLUMNS, ROWS
from distill.nets import finding

Outputs: TypeAlias = dict[str, NDArray[Any]]
Predict: TypeAlias = Callable[[ArrayLike], Outputs]

CHUNK = 4096
"""Boards handed to the graph at once: bounds the memory of attention, and is past the size where more is faster."""
ONNX = f"{finding.PUBLISHED}/{finding.FILES['onnx'].name}"
"""The ONNX file in the folder of an exported network."""
THREADS = 1
"""For a network this small a second one costs more than it brings, and the machine has other work."""


def load(folder: Path) -> Predict:
    """The network at a path: its ONNX file where there is one and it can be run, else what TensorFlow reads there.

    Raises UserError for a folder without a model, and for a file that cannot be read.
    """
    if is_quick(folder) and (file := onnx_in(folder)):
        return _load_onnx(file)
    from distill import nets

    nets.start_backend()
    from distill.nets import saved

    return saved.load(folder)


def is_quick(folder: Path) -> bool:
    """Whether `load` of this folder does without TensorFlow."""
    return bool(onnx_in(folder) and importlib.util.find_spec("onnxruntime") and finding.is_current(folder))


def onnx_in(path: Path) -> Path | None:
    """The ONNX file at a path: itself, that of a run's folder, or that of a folder of exported files, as on a hub."""
    files = (path, path / ONNX, path / finding.FILES["onnx"].name)
    return next((file for file in files if file.suffix == ".onnx" and file.is_file()), None)


def _load_onnx(file: Path) -> Predict:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4  # what is wrong comes as an exception
    try:
        session = onnxruntime.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
    except Exception as error:  # ONNX Runtime has a type for each kind of damage
        raise UserError(f"{file}: not a readable ONNX model ({first_line(error)})") from None
    if not {"logits", "policy", "move"} <= set(names):
        raise UserError(f"{file}: not a model of distill (outputs {sorted(names)})")
    return on_arrays(lambda boards: dict(zip(names, session.run(names, {"board": boards}), strict=True)))


def on_arrays(outputs: Callable[[Any], Mapping[str, Any]]) -> Predict:
    """Around a graph: checks shapes, lets through a single board, cuts many into pieces."""

    def predict(boards: ArrayLike) -> Outputs:
        given = np.asarray(boards, np.int8)
        if given.ndim not in (2, 3) or given.shape[-2:] != (ROWS, COLUMNS):
            raise ValueError(f"boards have shape {given.shape}, expected (B, {ROWS}, {COLUMNS}) or ({ROWS}, {COLUMNS})")
        batch = given.reshape(-1, ROWS, COLUMNS)
        if not len(batch):  # TensorFlow's convolutions refuse an empty batch
            return {name: array[:0] for name, array in predict(np.zeros((1, ROWS, COLUMNS), np.int8)).items()}
        pieces = [outputs(batch[start : start + CHUNK]) for start in range(0, len(batch), CHUNK)]
        joined = {name: np.concatenate([np.asarray(piece[name]) for piece in pieces]) for name in pieces[0]}
        return joined if given.ndim == 3 else {name: array[0] for name, array in joined.items()}

    return predict

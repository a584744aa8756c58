"""`predict(boards)`: what a network is to everybody who asks it, whichever runtime computes it.

It maps int8 boards (B, 6, 7), or one (6, 7), to NumPy arrays by name, as the README of an exported model lists them:
logits (B, 7) with -1e9 on full columns, policy (B, 7), move int32 (B,), and value (B,) where there is that head.

`load(folder)` asks the ONNX file of an exported network where ONNX Runtime is installed, which is ready in a tenth of a
second; TensorFlow takes several to start. The two differ by rounding alone (`exporters/comparison.py` has checked it),
but a tie may fall otherwise, so figures are taken with TensorFlow (`saved.load`).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, UserError, first_line
from distill.game import inputs, outputs
from distill.game.rules import COLUMNS, ROWS
from distill.networks import finding

Outputs: TypeAlias = dict[str, NDArray[Any]]
Predict: TypeAlias = Callable[[ArrayLike], Outputs]

CHUNK = 4096
"""Boards handed to the graph at once: bounds the memory of attention, and is past the size where more is faster."""
ONNX = f"{finding.PUBLISHED}/{finding.ONNX}"
"""The ONNX file in the folder of an exported network."""
THREADS = 1
"""For a network this small a second one costs more than it brings, and the machine has other work."""


class Pretrained:
    """The network in a folder as `predict(boards)` for code outside this package: it checks the boards.

    A pickled one holds the folder alone and loads the network where it is unpickled. So does the first call after a
    fork, since a runtime's threads stay in the parent; TensorFlow cannot start there, which is a UserError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._load()

    def _load(self) -> None:
        self._predict, self._process = load(self._folder), os.getpid()

    def __call__(self, boards: ArrayLike) -> Outputs:
        """The network's outputs by name. Raises ValueError for boards that `game.inputs` refuses."""
        given = inputs.boards(boards)
        if os.getpid() != self._process:
            self._load()
        return self._predict(given)

    def __reduce__(self) -> tuple[type[Pretrained], tuple[Path]]:
        return Pretrained, (self._folder,)


def load_pretrained(name: str | Path = "pillar") -> Pretrained:
    """A network as `predict(boards)`: one in `models/`, one that ships, or the folder or file of one.

        predict = distill.load_pretrained("pillar")
        answer = predict(board)  # int8 (6, 7), or (B, 6, 7): row 0 on top, +1 the side to move, -1 the other, 0 empty
        answer["move"]           # the column; also "policy", "logits" and, where there is that head, "value"

    `predict` raises ValueError, with how to convert it, for what is no board. It cannot tell whose turn it is where
    both sides have equally many stones. From Kaggle's observation, from columns 1-7, and from row 0 at the bottom:

        marks = np.array(observation.board).reshape(6, 7)
        board = np.where(marks == 0, 0, np.where(marks == observation.mark, 1, -1))
        board = distill.board(distill.from_moves("4453"))
        board = upside_down[::-1]

    A text without a slash means the network of that name first, which `python -m distill.models` lists, and a path only
    where there is none. A text with a slash, such as "./pillar", means a path first, and a `Path` means nothing else.
    `predict` can be pickled. Where ONNX Runtime is installed nothing else is loaded. Raises `distill.common.UserError`
    where there is neither such a network nor such a path.
    """
    return Pretrained(finding.required(name))


def load(folder: Path, for_search: bool = False) -> Predict:
    """The network at a path: its ONNX file where there is one and it can be run, else what TensorFlow reads there.

    `for_search` leaves its outputs to be checked by the search, which evaluates one board after another.

    Raises UserError for a folder without a model, and for a file that cannot be read.
    """
    if file := onnx_to_run(folder):
        return _load_onnx(file, checks=not for_search)
    from distill import networks

    networks.start_backend()
    from distill.networks import saved

    return saved.load(folder)


def onnx_to_run(path: Path) -> Path | None:
    """The ONNX file that `load` runs for the network at a path; None where it takes TensorFlow."""
    file = onnx_in(path)
    return file if file and importlib.util.find_spec("onnxruntime") and finding.is_current(path) else None


def onnx_in(path: Path) -> Path | None:
    """The ONNX file at a path: itself, that of a run's folder, or that of a folder of exported files, as on a hub."""
    files = (path, path / ONNX, path / finding.ONNX)
    return next((file for file in files if file.suffix == ".onnx" and file.is_file()), None)


def _load_onnx(file: Path, checks: bool) -> Predict:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4  # what is wrong comes as an exception
    try:
        session = onnxruntime.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
        arguments = [argument.name for argument in session.get_inputs()]
        found = [output.name for output in session.get_outputs()]
    except Exception as error:  # ONNX Runtime has a type for each kind of damage
        raise UserError(f"{file}: not a readable ONNX model ({first_line(error)})") from None
    check_names(file, arguments, found)
    names = [name for name in outputs.NETWORK if name in found]

    def graph(boards: NDArray[np.int8]) -> Outputs:
        return dict(zip(names, session.run(names, {"board": boards}), strict=True))

    return on_arrays(graph, str(file), checks)


def check_names(path: Path, arguments: Collection[str], found: Collection[str]) -> None:
    """Raise UserError unless a file's arguments and outputs have the names that `export` gives them."""
    if set(arguments) != {"board"} or not {"logits", "policy", "move"} <= set(found):
        raise UserError(f"{path}: not a model of distill (arguments {sorted(arguments)}, outputs {sorted(found)})")


def on_arrays(graph: Callable[[Any], Mapping[str, Any]], file: str = "", checks: bool = True) -> Predict:
    """Around a graph: lets through a single board, cuts many into pieces, `checks` what the graph returns.

    With `file`, whose graph may be anybody's, an error inside the graph is an OutputError that names it.
    """

    def evaluate(boards: NDArray[np.int8]) -> Outputs:
        with outputs.named(file):
            try:
                found = graph(boards)
            except Exception as error:  # the runtimes have many types
                if not file:
                    raise
                raise OutputError(f"cannot be evaluated ({first_line(error)})") from None
            return outputs.network(found, boards) if checks else dict(found)

    def predict(boards: ArrayLike) -> Outputs:
        given = np.asarray(boards, np.int8)
        if given.ndim not in (2, 3) or given.shape[-2:] != (ROWS, COLUMNS):
            raise ValueError(f"boards have shape {given.shape}, expected (B, {ROWS}, {COLUMNS}) or ({ROWS}, {COLUMNS})")
        batch = given.reshape(-1, ROWS, COLUMNS)
        if not len(batch):  # TensorFlow's convolutions refuse an empty batch
            return {name: array[:0] for name, array in predict(np.zeros((1, ROWS, COLUMNS), np.int8)).items()}
        pieces = [evaluate(batch[start : start + CHUNK]) for start in range(0, len(batch), CHUNK)]
        joined = pieces[0]
        if len(pieces) > 1:
            joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in joined}
        return joined if given.ndim == 3 else {name: array[0] for name, array in joined.items()}

    return predict

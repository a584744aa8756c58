"""Load a network as `predict(boards)` by the fastest runtime that is installed (`load_pretrained`).

The ONNX file of an exported network is ready in a tenth of a second; TensorFlow takes several to start. The two differ
by rounding alone (`exporters/comparison.py` has checked it), but ties may be broken differently, so published figures
are measured with TensorFlow (`saved.load`).
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import UserError, first_line, provenance
from distill.game import inputs, outputs
from distill.networks import finding, start_backend
from distill.networks.predict import Outputs, Predict, check_names, on_arrays

if TYPE_CHECKING:
    import keras

ONNX = f"{finding.PUBLISHED}/{finding.ONNX}"
"""The ONNX file in the folder of an exported network."""
THREADS = 1
"""Threads of ONNX Runtime: for networks this small a second one gains nothing."""


class Pretrained:
    """The network in a folder as `predict(boards)` for code outside this package: it checks the boards.

    It is pickled as the folder alone; the network is loaded again where it is unpickled. The first call after a fork
    loads it again too, because a runtime's threads stay in the parent; TensorFlow cannot start there: UserError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._load()

    def _load(self) -> None:
        self._predict, self._process = load(self._folder), os.getpid()

    def __call__(self, boards: ArrayLike) -> Outputs:
        """The network's outputs by name. Raises ValueError for boards that `game.inputs` refuses."""
        checked = inputs.boards(boards)
        # After a fork the threads of the runtime are missing here.
        if os.getpid() != self._process:
            self._load()
        return self._predict(checked)

    def __reduce__(self) -> tuple[type[Pretrained], tuple[Path]]:
        return Pretrained, (self._folder,)


def load_pretrained(name: str | Path = "pillar") -> Pretrained:
    """A network as `predict(boards)`: one in `models/`, one that ships, or the folder or file of one.

        predict = distill.load_pretrained("pillar")
        outputs = predict(board)  # int8 (6, 7), or (B, 6, 7): row 0 on top, +1 the side to move, -1 the other, 0 empty
        outputs["move"]           # the column, an int for one board; also "policy", "logits" and perhaps "value"

    `predict` raises ValueError for what is no board, and says how to convert it. With equally many stones of both sides
    it cannot tell whose turn it is. From Kaggle's observation, from columns 1-7, and from row 0 at the bottom:

        marks = np.array(observation.board).reshape(6, 7)
        board = np.where(marks == 0, 0, np.where(marks == observation.mark, 1, -1))
        board = distill.board(distill.from_moves("4453"))
        board = upside_down[::-1]

    A text without a slash is first looked up as a network's name (the line on an unknown one lists them), then as a
    path; a text with a slash, such as "./pillar", first as a path. A `Path` is always a path. `predict` can be pickled.
    With ONNX Runtime installed, neither TensorFlow nor Keras is loaded. Raises `distill.UserError` if there is neither
    such a network nor such a path.
    """
    return Pretrained(finding.required(name))


def load_keras(name: str | Path = "pillar") -> keras.Model:
    """A network as a Keras model, to train or to take apart: planes or tokens → {"logits": (B, 7)[, "value": (B,)]}.

    `name` means what it means to `load_pretrained`. The backend is the one that KERAS_BACKEND names, or TensorFlow. On
    PyTorch the model is a `torch.nn.Module`. Plain Keras reads the same file after `import distill`:

        import distill, keras
        core = keras.models.load_model("models/reference/pillar/best.keras")

    Raises `distill.UserError` as `load_pretrained` does.
    """
    file = finding.network_file(name)
    start_backend()
    from distill.networks import saved

    return saved.load_core(file)


def load(folder: Path, for_search: bool = False, int8: bool = False) -> Predict:
    """The network at a path: its ONNX file if there is one and ONNX Runtime is installed, else with TensorFlow.

    With `for_search` the outputs are not checked here, because the search checks them. With `int8`, and where
    TensorFlow is not installed, the ONNX file in 8 bits will do.

    Raises UserError for a folder without a model, and for a file that cannot be read.
    """
    if file := onnx_to_run(folder, int8):
        return _load_onnx(file, checks=not for_search)
    if folder.is_file() and folder.suffix not in (".keras", ".onnx"):
        raise UserError(f"{folder}: not a .keras or .onnx file; name one, or the folder of an export or a run")
    if folder.suffix == ".onnx":
        raise UserError(f"{folder}: needs ONNX Runtime; to install it: {provenance.install_line('onnx')}")
    start_backend()
    from distill.networks import saved

    return saved.load(folder)


def onnx_to_run(path: Path, int8: bool = False) -> Path | None:
    """The ONNX file that `load` runs for the network at a path; None if it uses TensorFlow."""
    file = onnx_in(path, int8 or not importlib.util.find_spec("tensorflow"))
    return file if file and importlib.util.find_spec("onnxruntime") and finding.is_current(path) else None


def onnx_in(path: Path, int8: bool = False) -> Path | None:
    """The ONNX file at a path: itself, that of a run's folder, or that of a folder of exported files, as on a hub.

    With `int8` the file in 8 bits, where there is no other.
    """
    names = (finding.ONNX, finding.ONNX_INT8) if int8 else (finding.ONNX,)
    files = (path, *(folder / name for name in names for folder in (path / finding.PUBLISHED, path)))
    return next((file for file in files if file.suffix == ".onnx" and file.is_file()), None)


def _load_onnx(file: Path, checks: bool) -> Predict:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4  # errors arrive as exceptions
    try:
        session = onnxruntime.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
        arguments = [argument.name for argument in session.get_inputs()]
        returned = [output.name for output in session.get_outputs()]
    except Exception as error:  # ONNX Runtime has a type for each kind of damage
        raise UserError(f"{file}: not a readable ONNX model ({first_line(error)})") from error
    check_names(file, arguments, returned)
    names = [name for name in outputs.NETWORK if name in returned]

    def graph(boards: NDArray[np.int8]) -> Outputs:
        return dict(zip(names, session.run(names, {"board": boards}), strict=True))

    return on_arrays(graph, str(file), checks)

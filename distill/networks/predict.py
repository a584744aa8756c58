"""`predict(boards)`: what a network is to its callers, whichever runtime computes it (`load`, `load_pretrained`).

It maps int8 boards (B, 6, 7) to NumPy arrays by name, as the README of an exported model lists them: logits (B, 7) with
-1e9 on full columns, policy (B, 7), move int32 (B,), and value (B,) where there is that head. Searches and
matches check them, and `load_pretrained` also checks boards, for code outside this package.

The ONNX file of an exported network is ready in a tenth of a second; TensorFlow takes several to start. The two differ
by rounding alone (`exporters/conversion.py` has checked it), but ties may be broken differently, so published figures
are measured with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import UserError, first_line
from distill.game import inputs, outputs
from distill.game.rules import COLUMNS, ROWS
from distill.networks import backend, finding, start_backend

if TYPE_CHECKING:
    import keras

Outputs: TypeAlias = dict[str, Any]
Predict: TypeAlias = Callable[[NDArray[np.int8]], Outputs]

CHUNK = 4096
"""Most boards per call of the graph. Bounds the memory of attention; larger batches are not faster."""


def on_arrays(graph: Callable[[Any], Mapping[str, Any]]) -> Predict:
    """`predict` from a graph, boards int8 (B, 6, 7) → outputs by name: splits large batches, and gives NumPy arrays."""

    def predict(boards: NDArray[np.int8]) -> Outputs:
        if not len(boards):  # TensorFlow's convolutions refuse an empty batch
            return {name: array[:0] for name, array in predict(np.zeros((1, ROWS, COLUMNS), np.int8)).items()}
        pieces = [graph(boards[start : start + CHUNK]) for start in range(0, len(boards), CHUNK)]
        return {name: np.concatenate([np.asarray(piece[name]) for piece in pieces]) for name in pieces[0]}

    return predict


def load_pretrained(name: str | Path = "pillar") -> Callable[[ArrayLike], Outputs]:
    """A network as `predict(boards)`: one in `models/`, one that ships, or the folder or file of one.

        predict = distill.load_pretrained("pillar")
        outputs = predict(board)  # int8 (6, 7), or (B, 6, 7): row 0 on top, +1 the side to move, -1 the other, 0 empty
        outputs["move"]           # the column, an int for one board; also "policy", "logits" and perhaps "value"

    `predict` raises OutputError for outputs that cannot be used, and ValueError for what is no board, and says how to
    convert it. With equally many stones of both sides it cannot tell whose turn it is. From Kaggle's observation, from
    columns 1-7, and from row 0 at the bottom:

        marks = np.array(observation.board).reshape(6, 7)
        board = np.where(marks == 0, 0, np.where(marks == observation.mark, 1, -1))
        board = distill.board(distill.from_moves("4453"))
        board = upside_down[::-1]

    A text without a slash is first looked up as a network's name (the line on an unknown one lists them), then as a
    path; a text with a slash, such as "./pillar", first as a path. A `Path` is always a path. With ONNX Runtime
    installed, neither TensorFlow nor Keras is loaded. Raises `distill.UserError` if there is neither such a network nor
    such a path; `predict` raises it in a process that was forked after Keras had started. It cannot be pickled: a
    process, as of joblib or `multiprocessing`, loads its own.
    """
    path = finding.required(name)
    evaluate = load(path)

    def predict(boards: ArrayLike) -> Outputs:
        backend.refuse_fork()
        checked = inputs.boards(boards)
        batch = checked.reshape(-1, ROWS, COLUMNS)
        with outputs.named(str(path)):
            answer = outputs.network(evaluate(batch), batch)
        if checked.ndim == 3:
            return answer
        return {name: array[0] for name, array in answer.items()} | {"move": int(answer["move"][0])}

    return predict


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


def load(path: Path, *, fast: bool = True) -> Predict:
    """The network at a path; `finding.evaluated_in` says which file is evaluated, by `fast`.

    Raises UserError for a path without a model, for a file that cannot be read, and for another program's model.
    """
    file = finding.evaluated_in(path, fast=fast)
    if file.suffix != ".onnx":
        start_backend()
    if file.suffix == ".keras":
        from distill.networks import saved

        return saved.predict_with(saved.load_core(file))
    kind, run = ("SavedModel", run_saved_model) if file.is_dir() else ("ONNX model", run_onnx)
    try:
        graph = run(str(file))
        names = {*graph(np.zeros((1, ROWS, COLUMNS), np.int8))}
    except ImportError as error:
        raise UserError(f"{file}: needs ONNX Runtime; python -m pip install onnxruntime") from error
    except Exception as error:  # a runtime has a type for each kind of damage
        raise UserError(f"{file}: not a readable {kind} ({first_line(error)})") from error
    if not {"logits", "policy", "move"} <= names:
        raise UserError(f"{file}: not a model of distill (outputs {sorted(names)})")
    return on_arrays(graph)


# A file's path → its graph. An export runs the source of these functions in a process without this package.


def run_onnx(path: str) -> Callable[[Any], Mapping[str, Any]]:
    """An ONNX file through ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # for networks this small a second thread gains nothing
    options.log_severity_level = 4  # errors arrive as exceptions
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda boards: dict(zip(names, session.run(names, {"board": boards}), strict=True))


def run_saved_model(path: str) -> Callable[[Any], Mapping[str, Any]]:
    """A SavedModel through TensorFlow."""
    import tensorflow as tf

    model = tf.saved_model.load(path)
    return lambda boards: model.signatures["serving_default"](board=tf.constant(boards))

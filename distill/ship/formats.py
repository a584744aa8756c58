"""The network for other runtimes: ONNX (also for browsers) and LiteRT (phones and small computers).

In: a network with its raw logits. Out: one file that takes int8 boards (B, 6, 7), any B, and gives the outputs of
the SavedModel by the same names. A file is put in place only after a process without TensorFlow, Keras
and this project has loaded it and given the network's outputs on 256 boards (`comparison.py`): a converter may well
report success and leave a file that nobody can load.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import keras

from distill.base import provenance
from distill.base.errors import UserError, first_line
from distill.nets import heads, saved
from distill.ship import comparison

ONNX_OPSET = 17
"""Of the default ONNX domain: read by ONNX Runtime since 1.12 (2022), in browsers too."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One kind of file.

    Attributes:
      file: its name beside the SavedModel.
      title: what people call it.
      modules: what writing and checking it imports; `extra` of pyproject.toml brings them.
      convert: writes the file, unchecked.
      client: Python lines that define `answer(boards) → outputs by name` for the path `model`.
      lines: Python that loads it and asks for a move, for the card.
    """

    file: str
    title: str
    extra: str
    modules: tuple[str, ...]
    convert: Callable[[keras.Model, Path], None]
    client: str
    lines: str


def write(name: str, core: keras.Model, file: Path, expected: comparison.Outputs | None = None) -> float:
    """Write a network in a format and return its largest difference from the network (`comparison.largest_difference`).

    Args:
      name: of FORMATS.
      core: the network with its raw logits.
      file: where to; an older file stays until the new one has passed.
      expected: the network's outputs on the checked boards, if at hand.

    Raises UserError where the extra is not installed or the file does not give the network's outputs.
    """
    check_installed(name)
    wanted = FORMATS[name]
    if expected is None:
        expected = saved.predict_with(core)(comparison.check_boards())
    file.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.parent))
    try:
        new = workplace / wanted.file
        wanted.convert(core, new)
        difference = comparison.compare(new, wanted.title, wanted.client, ("tensorflow", "keras"), expected, workplace)
        os.replace(new, file)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return difference


def check_installed(name: str) -> None:
    """Raise UserError with the line that installs it where a format's extra is missing."""
    wanted = FORMATS[name]
    if missing := [module for module in wanted.modules if importlib.util.find_spec(module) is None]:
        raise UserError(
            f"the format {name} needs {', '.join(missing)}; to install it: {provenance.install_line(wanted.extra)}"
        )


def _convert_to_onnx(core: keras.Model, file: Path) -> None:
    import onnx

    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # what it complains of, the checks below tell in one line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras asks NumPy for names that are gone, in order to mend tf2onnx
        heads.served(core).export(
            file, format="onnx", opset_version=ONNX_OPSET, input_signature=[saved.board_signature()], verbose=False
        )
    try:
        model = onnx.load(file)
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the checker has many types
        raise UserError(f"ONNX: the file is not valid ({first_line(error)})") from None
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"  # instead of a number that means nothing
    onnx.save(model, file)


def _convert_to_litert(core: keras.Model, file: Path) -> None:
    heads.served(core).export(file, format="litert", input_signature=[saved.board_signature()], verbose=False)


_ONNX_CLIENT = """
import onnxruntime
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
def answer(boards):
    return dict(zip(names, session.run(names, {"board": boards})))
"""

_LITERT_CLIENT = """
from ai_edge_litert.interpreter import Interpreter
runner = Interpreter(model_path=model).get_signature_runner("serving_default")
def answer(boards):
    return {name: array.copy() for name, array in runner(board=boards).items()}
"""

_ONNX_LINES = """
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession("model.onnx")
board = np.zeros((1, 6, 7), np.int8)
(move,) = session.run(["move"], {"board": board})
print(int(move[0]))
"""

_LITERT_LINES = """
import numpy as np
from ai_edge_litert.interpreter import Interpreter
runner = Interpreter("model.tflite").get_signature_runner("serving_default")
answer = runner(board=np.zeros((1, 6, 7), np.int8))
print(int(answer["move"][0]))
"""

FORMATS: Mapping[str, Format] = {
    "onnx": Format(
        file="model.onnx",
        title="ONNX",
        extra="onnx",
        modules=("tf2onnx", "onnx", "onnxruntime"),
        convert=_convert_to_onnx,
        client=_ONNX_CLIENT,
        lines=_ONNX_LINES,
    ),
    "litert": Format(
        file="model.tflite",
        title="LiteRT",
        extra="litert",
        modules=("ai_edge_litert",),
        convert=_convert_to_litert,
        client=_LITERT_CLIENT,
        lines=_LITERT_LINES,
    ),
}
"""What there is beside the SavedModel, by the word that `export --formats` takes."""

"""The network for other runtimes: ONNX (also for browsers) and LiteRT (phones and small computers).

In: a network with its raw logits. Out: one file that takes int8 boards (B, 6, 7), any B, and gives the outputs of
the SavedModel by the same names. A file is put in place only after a process without TensorFlow, Keras
and this project has loaded it and given the network's outputs on 256 boards (`comparison.py`): a converter may well
report success and leave a file that nobody can load. A file in 8 bits has outputs of its own, which must fit each
other, and its moves must be about as good as the network's (`quantized.py`).
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from distill.common import UserError, first_line, provenance
from distill.exporters import comparison, origin, quantized
from distill.networks import finding, heads, saved

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
      sign: puts into it where it comes from.
      client: Python lines that define `answer(boards) → outputs by name` for the path `model`.
      lines: Python that loads it and asks for a move, for the card.
      int8: whether it is one in 8 bits.
    """

    file: str
    title: str
    extra: str
    modules: tuple[str, ...]
    convert: Callable[[keras.Model, Path], None]
    sign: Callable[[Path, Mapping[str, str]], None]
    client: str
    lines: str
    int8: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """How far a written file is from the network.

    Attributes:
      difference: the largest of its outputs (`comparison.largest_difference`).
      losses: in grades, by set, of a file in 8 bits.
    """

    difference: float
    losses: Mapping[str, quantized.Loss] = field(default_factory=dict)


def write(
    name: str,
    core: keras.Model,
    file: Path,
    expected: comparison.Outputs | None = None,
    about: Mapping[str, str] | None = None,
) -> Found:
    """Write a network in a format and return how far the file is from the network.

    Args:
      name: of FORMATS.
      core: the network with its raw logits.
      file: where to; an older file stays until the new one has passed.
      expected: the network's outputs on the checked boards, if at hand.
      about: where it comes from, as `origin.of` says; None: without the network's file and run.

    Raises UserError where the extra is not installed or the file does not give the network's outputs, or, in 8 bits,
    loses too much.
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
        try:
            wanted.sign(new, about or origin.of(core))
        except Exception as error:  # a spoiled file: ONNX has many types for it
            message = f"the written file does not work without the project ({first_line(error)})"
            raise UserError(f"{wanted.title}: {message}") from None
        if wanted.int8:
            found = _measure(wanted, core, new, expected, workplace)
        else:
            difference = comparison.compare(new, wanted.title, wanted.client, _UNWANTED, expected, workplace)
            found = Found(difference=difference)
        os.replace(new, file)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return found


_UNWANTED = ("tensorflow", "keras")
"""What an app must not need."""


def _measure(wanted: Format, core: keras.Model, new: Path, expected: comparison.Outputs, workplace: Path) -> Found:
    """How far a new file in 8 bits is from the network. Raises UserError where it is too far."""
    checked, (_, graded) = comparison.check_boards(), quantized.graded_boards()
    questions = quantized.questions(graded)
    try:
        found = comparison.outputs_in_clean_process(
            new, wanted.client, _UNWANTED, workplace, np.concatenate([checked, questions])
        )
    except RuntimeError as error:
        raise UserError(f"{wanted.title}: the written file does not work without the project ({error})") from None
    if set(found) != set(expected) or (wrong := comparison.contradictions(found)):
        listed = ", ".join(wrong if set(found) == set(expected) else sorted(set(found) ^ set(expected)))
        raise UserError(f"{wanted.title}: the outputs of the written file do not fit each other ({listed})")
    losses = quantized.losses(graded, saved.predict_with(core)(questions)["move"], found["move"][len(checked) :])
    quantized.check(wanted.title, losses)
    among_checked = {name: array[: len(checked)] for name, array in found.items()}
    return Found(difference=comparison.largest_difference(expected, among_checked), losses=losses)


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


def _convert_to_litert(core: keras.Model, file: Path, **options: Any) -> None:
    heads.served(core).export(
        file, format="litert", input_signature=[saved.board_signature()], verbose=False, **options
    )


def _convert_to_onnx_int8(core: keras.Model, file: Path) -> None:
    floating = file.with_name("float.onnx")
    _convert_to_onnx(core, floating)
    quantized.to_onnx(floating, file)
    floating.unlink()


def _convert_to_litert_int8(core: keras.Model, file: Path) -> None:
    import tensorflow as tf

    _convert_to_litert(core, file, optimizations=[tf.lite.Optimize.DEFAULT])


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

_ONNX = Format(
    file=finding.FILES["onnx"].name,
    title=finding.FILES["onnx"].title,
    extra="onnx",
    modules=("tf2onnx", "onnx", "onnxruntime"),
    convert=_convert_to_onnx,
    sign=origin.into_onnx,
    client=_ONNX_CLIENT,
    lines=_ONNX_LINES,
)
_LITERT = Format(
    file=finding.FILES["litert"].name,
    title=finding.FILES["litert"].title,
    extra="litert",
    modules=("ai_edge_litert",),
    convert=_convert_to_litert,
    sign=origin.into_litert,
    client=_LITERT_CLIENT,
    lines=_LITERT_LINES,
)


def _in_8_bits(name: str, floating: Format, convert: Callable[[keras.Model, Path], None]) -> Format:
    return replace(floating, file=finding.FILES[name].name, title=finding.FILES[name].title, convert=convert, int8=True)


FORMATS: Mapping[str, Format] = {
    "onnx": _ONNX,
    "litert": _LITERT,
    "onnx-int8": _in_8_bits("onnx-int8", _ONNX, _convert_to_onnx_int8),
    "litert-int8": _in_8_bits("litert-int8", _LITERT, _convert_to_litert_int8),
}
"""What there is beside the SavedModel, by the word that `export --formats` takes."""

"""The export formats: how each file is written, and how a program without this package runs it.

`export --formats` takes the names of FORMATS. A new format is a write function, a load function and one entry; code
outside this package adds it with `register`. Every file takes int8 boards (B, 6, 7), any B, and gives the outputs of
the SavedModel by the same names; `conversion.py` compares them with the network's before a file is put in place.
"""

from __future__ import annotations

import base64
import importlib.util
import logging
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill import networks
from distill.common import UserError, provenance
from distill.exporters import submission
from distill.networks import finding, predict

if TYPE_CHECKING:
    import keras

ONNX_OPSET = 17
"""Version of the default ONNX domain; ONNX Runtime reads it since 1.12 (2022), in browsers too."""

CONTRACT = 1
"""Version of the inputs and outputs: the name of the SavedModel's folder."""
LARGEST_SUBMISSION = 1_000_000
"""Most bytes of a Kaggle submission."""

Answer = Callable[[Any], Mapping[str, Any]]
"""Maps boards int8 (B, 6, 7) to the outputs by name."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One kind of exported file.

    Attributes:
      file: its name in `saved_model/`.
      title: the name of the format in messages and on the card.
      write: writes a network (raw logits) to a path; the file is checked afterwards.
      load: maps the path of a file to an `Answer`. Its source runs in a process that has none of this package and of
        the user's module, so the function must import what it uses.
      needs: modules that `write` and `load` import. Unless TensorFlow or Keras is named, `load` must work without it.
      extra: the extra of this package that installs them.
      int8: the weights have 8 bits, so the outputs differ and the moves are graded instead (`quantized.py`).
    """

    file: str
    title: str
    write: Callable[[keras.Model, Path], None]
    load: Callable[[str], Answer]
    needs: tuple[str, ...] = ()
    extra: str = ""
    int8: bool = False


def check_installed(name: str) -> None:
    """Raise UserError with the command that installs what a format needs, where it is missing."""
    format = FORMATS[name]
    if missing := [module for module in format.needs if importlib.util.find_spec(module) is None]:
        advice = f"; to install it: {provenance.install_line(format.extra)}" if format.extra else ""
        raise UserError(f"the format {name} needs {', '.join(missing)}{advice}")


def register(name: str, format: Format) -> None:
    """Add a format under the name that `export --formats` takes. Raises ValueError for a name that is taken."""
    if name in FORMATS or "," in name:
        raise ValueError(f"format {name!r}: must be a new name without a comma")
    FORMATS[name] = format


# Writing --------------------------------------------------------------------------------------------------------------


def write_saved_model(core: keras.Model, path: Path) -> None:
    """Write a TensorFlow SavedModel, into a folder that does not exist yet."""
    import keras

    from distill.networks import heads, saved

    model = heads.served(core)
    archive = keras.export.ExportArchive()  # it tracks no model: a tracked one's weights would be written twice
    signature = [saved.board_signature()]
    archive.add_endpoint("serve", lambda board: model(board, training=False), input_signature=signature)
    archive.write_out(str(path), verbose=False)


def _export(core: keras.Model, path: Path, **options: Any) -> None:
    from distill.networks import heads, saved

    heads.served(core).export(path, input_signature=[saved.board_signature()], verbose=False, **options)


def write_onnx(core: keras.Model, path: Path) -> None:
    """Write an ONNX file. Raises where the converter leaves an invalid one."""
    import onnx
    from tf2onnx.handler import tf_op

    tf_op.register_handler(_slice_backwards, ONNX_OPSET, ["ReverseV2"], "", {})
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # an operation that it does not know fails the check below
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras patches names of NumPy 1 for tf2onnx
        _export(core, path, format="onnx", opset_version=ONNX_OPSET)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"  # tf2onnx leaves a generated name
    # Converters list sets of operations that the file does not use, and that some programs lack.
    used = {node.domain for node in model.graph.node}
    for unused in [opset for opset in model.opset_import if opset.domain not in used]:
        model.opset_import.remove(unused)
    onnx.save(model, path)


def _slice_backwards(graph: Any, node: Any, **_: Any) -> None:
    """tf2onnx's handler of `ops.flip`: Slice with step -1, which more programs can read than its ReverseSequence."""
    from tf2onnx.graph_builder import GraphBuilder

    axes = node.inputs[1].get_tensor_value()
    backwards = {"starts": -1, "ends": -(2**63), "steps": -1}
    slices = {"data": node.input[0], "outputs": node.output, "axes": axes}
    slices |= {name: [number] * len(axes) for name, number in backwards.items()}
    shapes, dtypes = node.output_shapes, node.output_dtypes
    graph.remove_node(node.name)
    GraphBuilder(graph).make_slice(slices, node.name, shapes, dtypes)


def write_onnx_int8(core: keras.Model, path: Path) -> None:
    """Write an ONNX file with weights in 8 bits."""
    import onnx

    from distill.exporters import quantized

    write_onnx(core, path)
    model = onnx.load(path)
    quantized.to_int8(model)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def write_litert_int8(core: keras.Model, path: Path) -> None:
    """Write a LiteRT file with weights in 8 bits."""
    import tensorflow as tf

    _export(core, path, format="litert", optimizations=[tf.lite.Optimize.DEFAULT])


def write_kaggle(core: keras.Model, path: Path) -> None:
    """Write the program `submission.py` with the weights as text below it.

    Raises UserError for an architecture that it does not compute, and where the file is larger than Kaggle takes.
    """
    import numpy as np

    from distill.networks import pillar

    arch = networks.arch_of(core)
    if arch not in submission.NETWORKS:
        raise UserError(f"Kaggle: no NumPy program for {arch}; there is one for {', '.join(submission.NETWORKS)}")
    arrays = {weight.path: np.asarray(weight.numpy(), "<f4") for weight in core.weights}
    arrays |= {"lines/kernels": pillar.line_kernels(), "lines/off_board": pillar.off_board()}
    # All bytes of one significance together: the exponents then compress.
    values = np.concatenate([array.ravel() for array in arrays.values()]).view(np.uint8).reshape(-1, 4).T
    shapes = {name: array.shape for name, array in arrays.items()}
    stored = base64.encodebytes(zlib.compress(values.tobytes(), 9)).decode()
    program = Path(submission.__file__).read_text(encoding="utf-8").partition("ARCH, WEIGHTS =")[0]
    data = f'ARCH = {arch!r}\nSHAPES = {shapes}\nWEIGHTS = """\\\n{stored}"""\n'
    written = (program + data).encode()
    if len(written) > LARGEST_SUBMISSION:
        raise UserError(f"Kaggle: the network is too large: {len(written):,} bytes, of {LARGEST_SUBMISSION:,} at most")
    path.write_bytes(written)


# Loading: the source of these functions runs in a clean process -------------------------------------------------------


def load_litert(path: str) -> Answer:
    """A LiteRT file through its interpreter."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=path).get_signature_runner("serving_default")
    return lambda boards: {name: array.copy() for name, array in runner(board=boards).items()}


def load_kaggle(path: str) -> Answer:
    """A Kaggle submission, which is a Python file."""
    import runpy

    return runpy.run_path(path)["predict"]


# The table ------------------------------------------------------------------------------------------------------------

SAVED_MODEL = "savedmodel"
"""The format that is always written."""

_onnx = partial(Format, load=predict.run_onnx, needs=("tf2onnx", "onnx", "onnxruntime"), extra="onnx")
_litert = partial(Format, load=load_litert, needs=("ai_edge_litert",), extra="litert")

FORMATS: dict[str, Format] = {
    SAVED_MODEL: Format(
        file=str(CONTRACT),
        title="SavedModel",
        write=write_saved_model,
        load=predict.run_saved_model,
        needs=("tensorflow", "keras"),
    ),
    "litert": _litert(file="model.tflite", title="LiteRT", write=partial(_export, format="litert")),
    "onnx": _onnx(file=finding.ONNX, title="ONNX", write=write_onnx),
    "litert-int8": _litert(file="model.int8.tflite", title="LiteRT int8", write=write_litert_int8, int8=True),
    "onnx-int8": _onnx(file=finding.ONNX_INT8, title="ONNX int8", write=write_onnx_int8, int8=True),
    "kaggle": Format(file="submission.py", title="Kaggle", write=write_kaggle, load=load_kaggle),
}
"""Every format by the name that `export --formats` takes."""

"""A saved model as a plain function, and the writing of SavedModels.

In: a `.keras` file, a SavedModel folder, or the folder of a training run. Out: `predict(boards)` as `predict.py` says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from distill.common import UserError, first_line
from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import finding, heads, pillar, transformer  # noqa: F401  their layers register themselves for loading
from distill.networks.predict import Predict, check_names, on_arrays

SIGNATURE = "serving_default"


def load(path: Path) -> Predict:
    """The model behind a path as `predict(boards) → outputs`.

    A path is a `.keras` file, a SavedModel folder, the folder around it, or the folder of a run, which stands for its
    SavedModel or else its best network. Raises UserError for a path that is no such model.
    """
    path = Path(path)
    for folder in (path, path / "1", path / "saved_model" / "1"):
        if (folder / "saved_model.pb").is_file() and finding.is_current(path):
            return _load_saved_model(folder)
    file = finding.network_in(path)
    return predict_with(load_core(file), str(file))


def load_core(path: Path) -> keras.Model:
    """The network (raw logits) in a `.keras` file, read in Keras' safe mode: no code out of the file is run.

    Raises UserError for a damaged file, one that holds code, another kind of model, or weights that are no numbers.
    """
    try:
        core = keras.models.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # whatever is wrong with the file, Keras raises many types
        raise UserError(f"{path}: not a readable Keras model ({first_line(error)})") from None
    inputs, output = getattr(core, "inputs", None), getattr(core, "output", None)  # absent from some kinds of model
    shapes = [tuple(tensor.shape)[1:] for tensor in inputs or []]
    outputs = {name: tuple(tensor.shape)[1:] for name, tensor in output.items()} if isinstance(output, dict) else {}
    is_network = outputs in ({"logits": (COLUMNS,)}, {"logits": (COLUMNS,), "value": ()})
    if shapes not in ([(ROWS, COLUMNS, 2)], [(ROWS, COLUMNS, 3)], [(CELLS,)]) or not is_network:
        raise UserError(f"{path}: not a network of distill (inputs {shapes}, outputs {outputs})")
    if not all(np.isfinite(weight).all() for weight in core.get_weights()):
        raise UserError(f"{path}: some of its weights are NaN or infinite, as after a training that diverged")
    return core


def predict_with(core: keras.Model, file: str = "") -> Predict:
    """`predict` for a network in memory; later changes of its weights are seen. Errors name the file it is from."""
    model = heads.served(core)

    def outputs(board: Any) -> Any:
        return model(board, training=False)

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Not model.predict: it builds a tf.data pipeline whose autotuning stalls for seconds.
        outputs = tf.function(outputs, input_signature=[board_signature()])
    return on_arrays(outputs, file)


def write(core: keras.Model, folder: Path) -> None:
    """Write the SavedModel of a network into a folder that does not exist yet (TensorFlow backend)."""
    model = heads.served(core)
    archive = keras.export.ExportArchive()  # that tracks no model: of one that it tracks it writes each weight twice
    archive.add_endpoint("serve", lambda board: model(board, training=False), input_signature=[board_signature()])
    try:
        archive.write_out(str(folder), verbose=False)
    except Exception as error:  # a full disk is TensorFlow's OutOfRangeError, and others in other versions
        raise UserError(f"{folder}: the SavedModel cannot be written ({first_line(error)})") from None


def _load_saved_model(folder: Path) -> Predict:
    import tensorflow as tf

    try:
        loaded = tf.saved_model.load(str(folder))
        signature = loaded.signatures[SIGNATURE]
        names, outputs = set(signature.structured_input_signature[1]), set(signature.structured_outputs)
    except Exception as error:  # as above
        raise UserError(f"{folder}: not a readable SavedModel ({first_line(error)})") from None
    check_names(folder, names, outputs)

    def call(board: Any) -> Any:
        # `loaded` is named so that it lives as long as this function: its variables die with it.
        return loaded.signatures[SIGNATURE](board=tf.constant(board))

    return on_arrays(call, str(folder))


def board_signature() -> Any:
    """What every exported model takes: int8 (B, 6, 7), any B, by the name `board`."""
    import tensorflow as tf

    return tf.TensorSpec((None, ROWS, COLUMNS), tf.int8, name="board")

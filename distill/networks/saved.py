"""Read and write networks as Keras has them: `.keras` files, `predict(boards)` in memory, SavedModels.

A `.keras` file whose network has layers of a user's own needs their module. It is imported only if the user names it,
by `train --arch` or in an environment variable, never because the file names it:

    DISTILL_IMPORT=my_nets:build python -m distill.evaluate models/mine
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from distill.common import UserError, first_line, read_object, run_folder, say_once, write_atomically
from distill.common.settings import by_path
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads, pillar, transformer  # noqa: F401  they register their layers
from distill.networks.finding import has_own_layers
from distill.networks.predict import Predict, on_arrays
from distill.networks.registry import IMPORT, import_trusted


def load_core(path: Path) -> keras.Model:
    """The network (raw logits) in a `.keras` file, read in Keras' safe mode: no code in the file is run.

    Raises UserError for a damaged file, one that holds code, layers that are not known here, another kind of model, and
    weights that are NaN or infinite.
    """
    imported = import_trusted()
    try:
        core = keras.models.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises many types
        if "Could not locate class" in str(error):
            loads = f"{IMPORT}=module:function, which built it, in the environment loads them"
            raise UserError(f"{path}: has layers of its own; {loads}") from error
        raise UserError(f"{path}: not a readable Keras model ({first_line(error)})") from error
    heads.require_network(core, str(path))
    if not all(np.isfinite(weight).all() for weight in core.get_weights()):
        raise UserError(f"{path}: some of its weights are NaN or infinite, as after a training that diverged")
    trained = by_path(read_object(Path(path).with_name(run_folder.RECORD))).get("identity.arch source")
    if trained and imported and has_own_layers(Path(path)) and not any(code.endswith(trained) for code in imported):
        say_once(f"{path}: the code of its layers has changed since the training, and is used as it is now")
    return core


def save_network(core: keras.Model, path: Path) -> None:
    """Write a `.keras` file as a whole, replacing the one before; a link stays a link."""
    # Beside the file, where there is room; the next one replaces what a killed process leaves.
    temporary = path.with_name(f".{path.name}.tmp.keras")  # Keras chooses the format by the suffix
    try:
        core.save(temporary)
        write_atomically(path, temporary.read_bytes())
    finally:
        temporary.unlink(missing_ok=True)


def predict_with(core: keras.Model) -> Predict:
    """`predict` for a network in memory; it follows later changes of the weights."""
    model = heads.served(core)

    def outputs(board: Any) -> Any:
        return model(board, training=False)

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Not model.predict, whose tf.data pipeline stalls for seconds while it tunes itself.
        outputs = tf.function(outputs, input_signature=[board_signature()])
    return on_arrays(outputs)


def board_signature() -> Any:
    """The argument of every exported model: `board`, int8 (B, 6, 7), any B."""
    import tensorflow as tf

    return tf.TensorSpec((None, ROWS, COLUMNS), tf.int8, name="board")

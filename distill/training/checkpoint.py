"""Everything the next step depends on, in one file that is replaced as a whole.

`checkpoint.npz` holds the variables of the model (weights, moving statistics and the state of every dropout's random
numbers) and of the optimizer, and the state of the loop: a JSON text, and its arrays one by one.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill.common import UserError, write_atomically

FILE = "checkpoint.npz"
STATE = "state"

Arrays = list[NDArray[Any]]


def snapshot(model: keras.Model) -> Arrays:
    """Copies of all variables of a compiled model and its optimizer."""
    return [np.array(keras.ops.convert_to_numpy(variable)) for variable in _variables(model)]


def restore(model: keras.Model, arrays: Arrays) -> None:
    """Set all variables to the values in a snapshot of the same model."""
    variables = _variables(model)
    if [tuple(v.shape) for v in variables] != [a.shape for a in arrays]:
        raise ValueError("the checkpoint is of another model")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


def save(folder: Path, model: keras.Model, state: dict[str, Any]) -> None:
    """Replace the folder's checkpoint."""
    content = io.BytesIO()
    arrays: dict[str, Any] = {f"variable_{number:04d}": array for number, array in enumerate(snapshot(model))}
    plain = {name: each for name, each in state.items() if not isinstance(each, np.ndarray)}
    arrays |= {f"{STATE}_{name}": each for name, each in state.items() if name not in plain}
    np.savez(content, **{STATE: np.array(json.dumps(plain)), **arrays})
    write_atomically(folder / FILE, content.getvalue())


def load(folder: Path) -> tuple[Arrays, dict[str, Any]] | None:
    """Arrays and state in a folder's checkpoint, None if there is none. Raises UserError for a damaged one."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with np.load(path) as stored:
            state: dict[str, Any] = json.loads(str(stored[STATE]))
            names = sorted(set(stored.files) - {STATE})
            of_state = [name for name in names if name.startswith(STATE)]
            state |= {name.removeprefix(f"{STATE}_"): stored[name] for name in of_state}
            return [stored[name] for name in names if name not in of_state], state
    except Exception as error:  # a damaged zip raises many types
        raise UserError(f"{path}: damaged ({error}); --restart starts from scratch") from None


def _variables(model: keras.Model) -> list[Any]:
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return [*model.variables, *model.optimizer.variables]

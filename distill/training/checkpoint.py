"""Everything the next step depends on, in one file that is replaced as a whole.

`checkpoint.npz` holds the variables of the model (weights, moving statistics and the state of every dropout's random
numbers) and of the optimizer, and the state of the loop as JSON.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.common import UserError, write_atomically

if TYPE_CHECKING:
    import keras

FILE = "checkpoint.npz"
STATE = "state"

Values = list[NDArray[Any]]


def snapshot(model: keras.Model, also: Sequence[keras.Model] = ()) -> Values:
    """Copies of all variables of a model of `step.compiled`, its optimizer, and other models."""
    from keras import ops  # only now, because a state is read without Keras

    return [np.array(ops.convert_to_numpy(variable)) for variable in _variables(model, also)]


def restore(model: keras.Model, arrays: Values, folder: Path = Path(), also: Sequence[keras.Model] = ()) -> None:
    """Set all variables to the values in a snapshot. Raises UserError for one of another model, from this folder."""
    variables = _variables(model, also)
    if [tuple(v.shape) for v in variables] != [a.shape for a in arrays]:
        raise UserError(f"{folder / FILE}: of another model than the one to train; --restart starts from scratch")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


def save(folder: Path, model: keras.Model, state: dict[str, Any], also: Sequence[keras.Model] = ()) -> None:
    """Replace the folder's checkpoint."""
    # Into memory first, then to disk as a whole.
    content = io.BytesIO()
    arrays: dict[str, Any] = {f"variable_{number:04d}": array for number, array in enumerate(snapshot(model, also))}
    np.savez(content, **{STATE: np.array(json.dumps(state, default=float)), **arrays})
    write_atomically(folder / FILE, content.getvalue())


def load(folder: Path, kind: Callable[..., Any] = dict) -> tuple[Values, Any] | None:
    """Values and state in a folder's checkpoint, None if there is none. Raises UserError for a damaged one.

    `kind` is the type of the state; a checkpoint of another kind of run counts as damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    content = io.BytesIO(path.read_bytes())  # an error of the disk is no damage
    try:
        with np.load(content) as stored:
            names = sorted({*stored.files} - {STATE})
            return [stored[name] for name in names], kind(**json.loads(str(stored[STATE])))
    except MemoryError:
        raise
    except Exception as error:  # a damaged zip raises many types
        raise UserError(f"{path}: damaged ({error}); --restart starts from scratch") from error


def _variables(model: keras.Model, also: Sequence[keras.Model]) -> list[Any]:
    return [*model.variables, *model.optimizer.variables, *(variable for other in also for variable in other.variables)]

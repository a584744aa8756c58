"""Write a network in one format, run the file in a clean process, and compare its outputs with the network's.

In: a network with its raw logits, and the name of a format. Out: a file that a process without this package has loaded
and that gave the network's outputs on 256 boards: a converter can report success and leave a file that cannot be
loaded. A file in 8 bits has outputs of its own; its moves must be the best of its own logits, and about as good as the
network's (`quantized.py`).

float32 has seven digits, so the rounding error of a correct result grows with its size. A difference of policy and
value, which are at most 1, is absolute. A difference of a logit is divided by the largest absolute logit among the
board's open columns, or by 1 where that is smaller. Every difference may be at most TOLERANCE, in 8 bits any number.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill.common import UserError, first_line
from distill.datasets import benchmark
from distill.exporters import formats, quantized
from distill.game import encoding
from distill.game.rules import COLUMNS, ROWS, best_columns
from distill.networks import heads, saved
from distill.networks.predict import Predict

# Runs as an app would: `python -I` ignores PYTHONPATH and the working directory; its last line refuses this package.
# One board first, then 1,000 at a time, so that a batch size frozen into the file shows.
_CLIENT = """from __future__ import annotations
import sys
import numpy as np
{load}
path, boards_file, outputs_file = sys.argv[1:]
answer = {name}(path)
boards = np.load(boards_file)
parts = [boards[:1], *(boards[start : start + 1000] for start in range(1, len(boards), 1000))]
answers = [answer(part) for part in parts]
unwanted = {{name.split(".")[0] for name in sys.modules}} & {unwanted}
assert not unwanted, f"it needs {{unwanted}}"
np.savez(outputs_file, **{{name: np.concatenate([np.asarray(a[name]) for a in answers]) for name in answers[0]}})
"""

TOLERANCE = 1e-5
"""Largest difference allowed between the network in Keras and an exported file, of any output on any board."""
MEASURE = "of policy, of value, or of logits divided by the board's largest logit"
"""The difference in words, for the card and messages."""
CHECKED_BOARDS = 256

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Converted:
    """How far a written file is from the network.

    Attributes:
      difference: the largest of its outputs (`largest_difference`).
      losses: what its moves lose, by set of the benchmark, for a file in 8 bits.
    """

    difference: float
    losses: Mapping[str, quantized.Loss] = field(default_factory=dict)


def convert(name: str, core: keras.Model, path: Path, *, predict: Predict | None = None) -> Converted:
    """Write a network to `path` in a format of `formats.FORMATS`, checked.

    Args:
      core: the network with its raw logits.
      path: in a folder that is deleted after an error.
      predict: evaluates the network; None: traced here.

    Raises UserError where the file fails or differs, or, in 8 bits, loses too much.
    """
    format = formats.FORMATS[name]
    try:
        format.write(core, path)
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:  # converters raise many types
        raise UserError(f"{format.title}: cannot be written ({first_line(error)})") from error
    predict, boards = predict or saved.predict_with(core), check_boards()
    if not format.int8:
        return Converted(difference=check(format.title, predict(boards), run_alone(format, path, boards)))
    # One process runs the checked and the graded boards, because starting it takes seconds.
    graded = quantized.graded_boards()
    boards = np.concatenate([boards, quantized.with_mirrors(graded)])
    expected, outputs = predict(boards), run_alone(format, path, boards)
    difference = check(format.title, expected, outputs, sys.float_info.max)
    losses = quantized.losses(graded, *(answers["move"][-2 * len(graded) :] for answers in (expected, outputs)))
    quantized.check(format.title, losses)
    return Converted(difference=difference, losses=losses)


def run_alone(format: formats.Format, path: Path, boards: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
    """The outputs of a written file on int8 (B, 6, 7), from a process without this package. Raises UserError."""
    # A format that needs neither must not load them, or an app would have to install them.
    unwanted = {"distill", "tensorflow", "keras"} - {*format.needs}
    code = _CLIENT.format(
        load=textwrap.dedent(inspect.getsource(format.load)), name=format.load.__name__, unwanted=unwanted
    )
    with tempfile.TemporaryDirectory() as workplace:
        boards_file, outputs_file = Path(workplace, "boards.npy"), Path(workplace, "outputs.npz")
        np.save(boards_file, boards)
        paths = (path, boards_file, outputs_file)
        command = [sys.executable, "-I", "-c", code, *(str(file.resolve()) for file in paths)]
        client = subprocess.run(command, cwd=workplace, capture_output=True, text=True, errors="replace")
        if client.returncode:
            problem = (client.stderr.strip().splitlines() or [f"exit {client.returncode}"])[-1]
            raise UserError(f"{format.title}: the written file does not work without the project ({problem})")
        with np.load(outputs_file) as outputs:
            return dict(outputs)


# Comparing ------------------------------------------------------------------------------------------------------------


def check_boards(number: int = CHECKED_BOARDS) -> NDArray[np.int8]:
    """int8 (number, 6, 7): the empty board, graded boards, a fifth of which have full columns, and a full board."""
    graded = benchmark.read(half="dev")
    rows = np.linspace(0, len(graded) - 1, number - 2).astype(int)
    full = np.where(np.add.outer(np.arange(ROWS) // 2, np.arange(COLUMNS)) % 2, 1, -1)
    between = encoding.boards(graded.current[rows], graded.mask[rows])
    return np.concatenate([np.zeros_like(full)[None], between, full[None]]).astype(np.int8)


def largest_difference(expected: Outputs, outputs: Outputs) -> float:
    """The largest difference of any output on any board, NaN if one is NaN; infinity where an output is wrong.

    Wrong are a missing output, another shape, a full column without the logit -1e9 and the policy 0, and a
    move that is not the best column of the file's own logits, ties to the centre and then the lower column. The
    network's own move is not compared: where two columns are equal up to rounding, as on a symmetric board, another
    runtime may prefer the other.

    Args:
      expected, outputs: (B, 7) or (B,) arrays by name, as the model card lists them, of the same B boards.
    """
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in (expected, outputs)]
    if shapes[0] != shapes[1]:
        return np.inf
    full = expected["logits"] == heads.FULL_COLUMN_LOGIT
    is_exact = (outputs["logits"][full] == heads.FULL_COLUMN_LOGIT).all() and not outputs["policy"][full].any()
    best = np.where(full.all(1), -1, best_columns(outputs["logits"]))
    if not is_exact or (outputs["move"] != best).any():
        return np.inf
    logits = np.where(full, 0.0, expected["logits"])
    scale = np.maximum(np.abs(logits).max(1, keepdims=True, initial=0.0), 1.0)
    by = [np.abs(expected[name].astype(np.float64) - outputs[name]) for name in expected.keys() - {"logits", "move"}]
    by.append(np.abs(logits - np.where(full, 0.0, outputs["logits"])) / scale)
    return float(np.max([array.max() for array in by]))  # unlike max, keeps a NaN


def check(title: str, expected: Outputs, outputs: Outputs, tolerance: float = TOLERANCE) -> float:
    """The largest difference. Raises UserError, which names the file by its `title`, above the tolerance."""
    difference = largest_difference(expected, outputs)
    if not np.isfinite(difference):
        wrong = "an output is missing or NaN, a full column is not excluded, or a move is not the best by the logits"
        raise UserError(f"{title}: the written file does not compute what the network does: {wrong}")
    if difference > tolerance:
        problem = f"the written file differs from the network by {difference:.1e}"
        raise UserError(f"{title}: {problem}; allowed: {tolerance:.0e}, {MEASURE}")
    return difference

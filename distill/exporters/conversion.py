"""Write a network in one format, run the file in a clean process, and compare its outputs with the network's.

In: a network with its raw logits, and the name of a format. Out: a file at a path, put in place only after a process
without this package has loaded it and given the network's outputs on 256 boards: a converter can report success and
leave a file that cannot be loaded. A file in 8 bits has outputs of its own; its moves must be the best of its own
logits, and about as good as the network's (`quantized.py`).
"""

from __future__ import annotations

import inspect
import os
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
from distill.common.machine import lacks_memory
from distill.exporters import comparison, formats, quantized
from distill.exporters.comparison import Outputs
from distill.networks import saved

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


@dataclass(frozen=True, kw_only=True)
class Converted:
    """How far a written file is from the network.

    Attributes:
      difference: the largest of its outputs (`comparison.largest_difference`).
      losses: what its moves lose, by set of the benchmark, for a file in 8 bits.
    """

    difference: float
    losses: Mapping[str, quantized.Loss] = field(default_factory=dict)


def convert(
    name: str, core: keras.Model, path: Path, *, facts: Mapping[str, Any] | None = None, expected: Outputs | None = None
) -> Converted:
    """Write a network to `path` in a format of `formats.FORMATS`, checked.

    Args:
      core: the network with its raw logits.
      path: an older file stays until the new one has passed.
      facts: `formats.facts` to embed; None: those without the network's file and run.
      expected: the network's outputs on `check_boards()`; None: computed here.

    Raises UserError where a module is missing, the file fails or differs, or, in 8 bits, loses too much.
    """
    formats.check_installed(name)
    format = formats.FORMATS[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as workplace:
        new = Path(workplace) / format.file
        # Write beside the target, check, and only then replace what was there.
        try:
            format.write(core, new)
            format.embed(new, formats.facts(core) if facts is None else facts)
        except Exception as error:  # converters raise many types, and so does ONNX on a spoiled file
            if isinstance(error, UserError | OSError) or lacks_memory(error):
                raise
            raise UserError(f"{format.title}: cannot be written ({first_line(error)})") from None
        converted = _check(format, core, new, expected)
        os.replace(new, path)
    return converted


def _check(format: formats.Format, core: keras.Model, new: Path, expected: Outputs | None) -> Converted:
    checked, predict = comparison.check_boards(), saved.predict_with(core)
    expected = predict(checked) if expected is None else expected
    if not format.int8:
        return Converted(difference=comparison.check(format.title, expected, run_alone(format, new, checked)))
    # One process runs the checked and the graded boards, because starting it takes seconds.
    _, graded = quantized.graded_boards()
    questions = quantized.with_mirrors(graded)
    outputs = run_alone(format, new, np.concatenate([checked, questions]))
    wrong = sorted(outputs.keys() ^ expected.keys())
    if wrong := wrong or comparison.contradictions(outputs, np.concatenate([checked, questions])[:, 0] != 0):
        raise UserError(f"{format.title}: the outputs of the written file contradict each other ({', '.join(wrong)})")
    losses = quantized.losses(graded, predict(questions)["move"], outputs["move"][len(checked) :])
    quantized.check(format.title, losses)
    on_checked = {name: array[: len(checked)] for name, array in outputs.items()}
    return Converted(difference=comparison.largest_difference(expected, on_checked), losses=losses)


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

"""What every exported file must pass: a process without this project gives the outputs of the network in Keras.

In: a file or folder that was just written, a few lines of Python that run it, and the network's own outputs on
the boards of `check_boards`. Out: the largest difference over all outputs, or a UserError that says why not.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.cli import UserError
from distill.game import encoding, rules

TOLERANCE = 1e-5
"""Largest difference allowed between the network in Keras and an exported file, over every output."""
CHECKED_BOARDS = 256

Outputs = Mapping[str, NDArray[Any]]

# Runs as an app would, with nothing of this project: `python -I` ignores PYTHONPATH and the current folder too. One
# board alone and then the others, so a number of boards that was frozen into the file is noticed.
_CLIENT = """
import sys
import numpy as np
model, given, returned = sys.argv[1:]
{load}
boards = np.load(given)
answers = [answer(part) for part in (boards[:1], boards[1:])]
unwanted = {{name.split(".")[0] for name in sys.modules}} & {{{unwanted}}}
assert not unwanted, f"it needs {{unwanted}}"
np.savez(returned, **{{name: np.concatenate([np.asarray(a[name]) for a in answers]) for name in answers[0]}})
"""


def check_boards(number: int = CHECKED_BOARDS) -> NDArray[np.int8]:
    """int8 (number, 6, 7): the empty board, a full one, and random play, half of it with a full column or more."""
    dice = random.Random(0)
    open_boards: list[rules.Position] = []
    blocked: list[rules.Position] = []
    while min(len(open_boards), len(blocked)) < number // 2:
        position = rules.EMPTY
        while not rules.is_over(position):
            some_full = len(rules.legal_columns(position)) < rules.COLUMNS
            (blocked if some_full else open_boards).append(position)
            position = rules.play(position, dice.choice(rules.legal_columns(position)))
    drawn = dice.sample(blocked, number // 2 - 1) + dice.sample(open_boards, number - number // 2 - 1)
    chosen = [rules.EMPTY, *drawn]
    boards = encoding.boards([p.current for p in chosen], [p.mask for p in chosen])
    full = np.where(np.add.outer(np.arange(rules.ROWS) // 2, np.arange(rules.COLUMNS)) % 2, 1, -1)
    return np.concatenate([boards, full[None].astype(np.int8)])


def largest_difference(expected: Outputs, found: Outputs) -> float:
    """The largest absolute difference over all outputs; infinity or NaN where one is missing or not a number.

    A move counts as different unless it is the one that the logits found with it ask for: where two columns are equal
    up to rounding, as on a board that is its own mirror image, another runtime may prefer the other one.
    """
    if set(expected) != set(found) or any(expected[name].shape != found[name].shape for name in expected):
        return float("inf")
    order = np.array(rules.COLUMNS_FROM_CENTRE)
    asked_for = np.where(expected["move"] < 0, -1, order[found["logits"][:, order].argmax(1)])
    differences = {name: np.abs(expected[name] - found[name]) for name in expected if name != "move"}
    differences["move"] = np.abs(asked_for - found["move"])
    return float(np.max([np.max(difference) for difference in differences.values()]))  # unlike max, keeps a NaN


def compare(
    written: Path, title: str, load: str, unwanted: tuple[str, ...], expected: Outputs, workplace: Path
) -> float:
    """The largest difference between a written model and `expected`, the network's outputs on `check_boards()`.

    Args:
      written: the file or folder.
      title: what the messages call it.
      load: Python lines that define `answer(boards) → outputs by name` for the path `model`.
      unwanted: packages that an app must not need; that one of them is imported is an error.
      workplace: a folder for the boards and the outputs on their way.

    Raises UserError where the process fails or the difference is more than TOLERANCE.
    """
    try:
        found = outputs_in_clean_process(written, load, unwanted, workplace)
    except RuntimeError as error:
        raise UserError(f"{title}: the written file does not work without the project ({error})") from None
    difference = largest_difference(expected, found)
    if not difference <= TOLERANCE:  # also NaN
        raise UserError(f"{title}: the written file differs from the network by {difference:.1e}, more than 1e-5")
    return difference


def outputs_in_clean_process(
    written: Path, load: str, unwanted: tuple[str, ...], workplace: Path
) -> dict[str, NDArray[Any]]:
    """A written model's outputs on `check_boards()`; arguments as for `compare`. Raises RuntimeError."""
    given, returned = workplace / "boards.npy", workplace / "outputs.npz"
    np.save(given, check_boards())
    code = _CLIENT.format(load=load.strip(), unwanted=", ".join(map(repr, ("distill", *unwanted))))
    client = subprocess.run(
        [sys.executable, "-I", "-c", code, *(str(path.resolve()) for path in (written, given, returned))],
        cwd=workplace,
        capture_output=True,
        text=True,
    )
    if client.returncode:
        raise RuntimeError((client.stderr.strip().splitlines() or [f"exit {client.returncode}"])[-1])
    with np.load(returned) as outputs:
        return dict(outputs)

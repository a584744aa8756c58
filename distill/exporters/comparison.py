"""What every exported file must pass: a process without this project gives the outputs of the network in Keras.

In: a file or folder that was just written, a few lines of Python that run it, and the network's own outputs on
the boards of `check_boards`. Out: the largest difference over all outputs, or a UserError that says why not.

float32 has seven digits, so how far apart two right results may be depends on their size: a difference of policy and
value, which are at most 1, is taken as it is, and one of a logit as a share of the largest absolute logit among the
board's open columns, or as it is where that is below 1. All of them may be TOLERANCE at most.
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

from distill.common import UserError
from distill.game import encoding, rules
from distill.networks import heads

TOLERANCE = 1e-5
"""Largest difference allowed between the network in Keras and an exported file, of any output on any board."""
MEASURE = "of policy, value, and logits as shares of the board's largest"
"""What a largest difference is, in the words of card and messages."""
CHECKED_BOARDS = 256

Outputs = Mapping[str, NDArray[Any]]

# Runs as an app would, with nothing of this project: `python -I` ignores PYTHONPATH and the current folder too. One
# board alone and then the others, 1,000 at once, so a number of boards that was frozen into the file is noticed.
_CLIENT = """
import sys
import numpy as np
model, given, returned = sys.argv[1:]
{load}
boards = np.load(given)
parts = [boards[:1], *(boards[start : start + 1000] for start in range(1, len(boards), 1000))]
answers = [answer(part) for part in parts]
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


def differences(expected: Outputs, found: Outputs) -> dict[str, float]:
    """Output by name → its largest difference, as the module's text defines it, or infinity where it cannot be right.

    It cannot where an output is missing or of another shape, a full column's logit is not exactly -1e9, or a move is
    not the best column of the logits found with it, ties to the centre and then the lower column. The network's own
    move is not asked for: where two columns are equal up to rounding, as on a board that is its own mirror image,
    another runtime may prefer the other one. A difference may be NaN.

    Args:
      expected, found: (B, 7) or (B,) arrays by name, as the model card lists them, of the same B boards.
    """
    if {name: array.shape for name, array in expected.items()} != {name: array.shape for name, array in found.items()}:
        return dict.fromkeys({*expected, *found}, np.inf)
    full = expected["logits"] == heads.FULL_COLUMN_LOGIT
    logits = np.where(full, 0.0, expected["logits"])
    scale = np.maximum(np.abs(logits).max(1, keepdims=True, initial=0.0), 1.0)
    result = {"logits": float(np.max(np.abs(logits - np.where(full, 0.0, found["logits"])) / scale))}
    if not (found["logits"][full] == heads.FULL_COLUMN_LOGIT).all():
        result["logits"] = np.inf
    result["move"] = 0.0 if (found["move"] == _best_columns(found["logits"], full)).all() else np.inf
    for name in expected.keys() - result.keys():
        result[name] = float(np.max(np.abs(expected[name].astype(np.float64) - found[name])))
    return result


def largest_difference(expected: Outputs, found: Outputs) -> float:
    """The largest of all `differences`, NaN where one of them is; found fit only where it is at most TOLERANCE."""
    return float(np.max([*differences(expected, found).values()]))  # unlike max, keeps a NaN


def contradictions(found: Outputs) -> list[str]:
    """Which outputs cannot stand beside the `logits` found with them, whatever network they are of.

    Policy is their softmax, and exactly 0 on full columns; move is their best column, ties to the centre and then the
    lower one; full columns have the logit -1e9; value is in [-1, 1].
    """
    logits = found["logits"].astype(np.float64)
    full = found["logits"] == heads.FULL_COLUMN_LOGIT
    powers = np.where(full, 0.0, np.exp(logits - logits.max(1, keepdims=True)))
    policy = powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)
    right = {
        "logits": bool(np.isfinite(logits).all() and (np.abs(logits[~full]) < -heads.FULL_COLUMN_LOGIT / 2).all()),
        "policy": bool((np.abs(found["policy"] - policy) <= TOLERANCE).all() and (found["policy"][full] == 0).all()),
        "move": bool((found["move"] == _best_columns(found["logits"], full)).all()),
        "value": bool((np.abs(found.get("value", 0.0)) <= 1).all()),
    }
    return [name for name, is_right in right.items() if not is_right]


def _best_columns(logits: NDArray[Any], full: NDArray[np.bool_]) -> NDArray[Any]:
    order = np.array(rules.COLUMNS_FROM_CENTRE)
    return np.where(full.all(1), -1, order[logits[:, order].argmax(1)])


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

    Raises UserError where the process fails or a difference is more than TOLERANCE.
    """
    try:
        found = outputs_in_clean_process(written, load, unwanted, workplace)
    except RuntimeError as error:
        raise UserError(f"{title}: the written file does not work without the project ({error})") from None
    wrong = {name: by for name, by in differences(expected, found).items() if not by <= TOLERANCE}  # also NaN
    if wrong:
        listed = ", ".join(name + (f" by {by:.1e}" if np.isfinite(by) else " wrong") for name, by in wrong.items())
        raise UserError(
            f"{title}: the written file differs from the network ({listed}); allowed: {TOLERANCE:.0e}, {MEASURE}"
        )
    return largest_difference(expected, found)


def outputs_in_clean_process(
    written: Path,
    load: str,
    unwanted: tuple[str, ...],
    workplace: Path,
    boards: NDArray[np.int8] | None = None,
) -> dict[str, NDArray[Any]]:
    """A written model's outputs on `boards`, None: `check_boards()`; else arguments as for `compare`.

    Raises RuntimeError.
    """
    given, returned = workplace / "boards.npy", workplace / "outputs.npz"
    np.save(given, check_boards() if boards is None else boards)
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

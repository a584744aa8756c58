"""How far an exported file's outputs are from the network's, and boards on which the network itself is wrong.

float32 has seven digits, so the rounding error of a correct result grows with its size. A difference of policy and
value, which are at most 1, is absolute. A difference of a logit is divided by the largest absolute logit among the
board's open columns, or by 1 where that is smaller. Every difference may be at most TOLERANCE.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import UserError
from distill.datasets import benchmark
from distill.datasets.grades import grade_moves, keeps_outcome
from distill.game import encoding, rules
from distill.networks import heads

TOLERANCE = 1e-5
"""Largest difference allowed between the network in Keras and an exported file, of any output on any board."""
MEASURE = "of policy, of value, or of logits divided by the board's largest logit"
"""The difference in words, for the card and messages."""
CHECKED_BOARDS = 256

Outputs = Mapping[str, NDArray[Any]]


def check_boards(number: int = CHECKED_BOARDS) -> NDArray[np.int8]:
    """int8 (number, 6, 7): the empty board, a full one, and random play, half of it with full columns."""
    dice = random.Random(0)
    open_boards: list[rules.Position] = []
    blocked: list[rules.Position] = []
    while min(len(open_boards), len(blocked)) < number // 2:
        position = rules.EMPTY
        while not rules.is_over(position):
            some_full = len(rules.legal_columns(position)) < rules.COLUMNS
            (blocked if some_full else open_boards).append(position)
            position = rules.next_position(position, dice.choice(rules.legal_columns(position)))
    # Half of the boards have full columns, whose outputs have rules of their own.
    drawn = dice.sample(blocked, number // 2 - 1) + dice.sample(open_boards, number - number // 2 - 1)
    chosen = [rules.EMPTY, *drawn]
    boards = encoding.boards(*encoding.bitboards_of(chosen))
    full = np.where(np.add.outer(np.arange(rules.ROWS) // 2, np.arange(rules.COLUMNS)) % 2, 1, -1)
    return np.concatenate([boards, full[None].astype(np.int8)])


def mistakes(predict: Callable[[NDArray[np.int8]], Outputs], most: int = 4) -> dict[str, Any]:
    """On how many `boards` of `heldout`'s dev half a move is `wrong` (loses the result), and those with fewest stones.

    Each of the `most` examples has the position, the `move`, and the columns that were `right`.
    """
    boards = benchmark.read(half="dev", sets=("heldout",))
    moves = predict(encoding.boards(boards.current, boards.mask))["move"]
    kept = keeps_outcome(boards.scores)
    rows = np.flatnonzero(~grade_moves(boards.scores, moves)[1])
    examples = [
        {
            "current": int(boards.current[row]),
            "mask": int(boards.mask[row]),
            "move": int(moves[row]),
            "right": np.flatnonzero(kept[row]).tolist(),
        }
        for row in rows[np.argsort(boards.ply[rows], kind="stable")][:most]
    ]
    return {"boards": len(boards), "wrong": len(rows), "examples": examples}


def differences(expected: Outputs, outputs: Outputs) -> dict[str, float]:
    """Output by name → its largest difference; infinity where it is wrong, and possibly NaN.

    Wrong are a missing output, another shape, a full column without the logit -1e9 and the policy 0, and a
    move that is not the best column of the file's own logits, ties to the centre and then the lower column. The
    network's own move is not compared: where two columns are equal up to rounding, as on a symmetric board, another
    runtime may prefer the other.

    Args:
      expected, outputs: (B, 7) or (B,) arrays by name, as the model card lists them, of the same B boards.
    """
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in (expected, outputs)]
    if shapes[0] != shapes[1]:
        return dict.fromkeys({*expected, *outputs}, np.inf)
    full = expected["logits"] == heads.FULL_COLUMN_LOGIT
    logits = np.where(full, 0.0, expected["logits"])
    scale = np.maximum(np.abs(logits).max(1, keepdims=True, initial=0.0), 1.0)
    others = expected.keys() - {"logits", "move"}
    by = {name: np.abs(expected[name].astype(np.float64) - outputs[name]) for name in others}
    by["logits"] = np.abs(logits - np.where(full, 0.0, outputs["logits"])) / scale
    by["move"] = np.where(outputs["move"] == _best_columns(outputs["logits"], full), 0.0, np.inf)
    result = {name: float(np.max(array)) for name, array in by.items()}
    exact = {"logits": heads.FULL_COLUMN_LOGIT, "policy": 0.0}  # on full columns
    wrong = [name for name, value in exact.items() if name in outputs and not (outputs[name][full] == value).all()]
    return result | dict.fromkeys(wrong, np.inf)


def largest_difference(expected: Outputs, outputs: Outputs) -> float:
    """The largest of all `differences`, NaN if one is NaN; the file is accepted if it is at most TOLERANCE."""
    return float(np.max([*differences(expected, outputs).values()]))  # unlike max, keeps a NaN


def check(title: str, expected: Outputs, outputs: Outputs) -> float:
    """The largest difference. Raises UserError, which names the file by its `title`, above TOLERANCE."""
    wrong = {name: by for name, by in differences(expected, outputs).items() if not by <= TOLERANCE}  # also NaN
    if wrong:
        listed = ", ".join(name + (f" by {by:.1e}" if np.isfinite(by) else " wrong") for name, by in wrong.items())
        allowed = f"allowed: {TOLERANCE:.0e}, {MEASURE}"
        raise UserError(f"{title}: the written file differs from the network ({listed}); {allowed}")
    return largest_difference(expected, outputs)


def contradictions(outputs: Outputs, full: NDArray[np.bool_]) -> list[str]:
    """Names of the outputs that contradict the `logits` among them, for any network.

    The policy is the softmax of the logits and exactly 0 on full columns, bool (B, 7); the move is their best column,
    ties to the centre and then the lower one; full columns have the logit -1e9; the value is in [-1, 1].
    """
    # A file whose outputs follow from its logits would give these.
    logits = np.where(full, heads.FULL_COLUMN_LOGIT, outputs["logits"].astype(np.float64))
    powers = np.where(full, 0.0, np.exp(logits - logits.max(1, keepdims=True)))
    consistent = {**outputs, "logits": logits, "policy": powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)}
    if "value" in outputs:
        consistent["value"] = np.clip(outputs["value"], -1, 1)
    return [name for name, difference in differences(consistent, outputs).items() if not difference <= TOLERANCE]


def _best_columns(logits: NDArray[Any], full: NDArray[np.bool_]) -> NDArray[Any]:
    order = np.array(rules.COLUMNS_FROM_CENTRE)
    return np.where(full.all(1), -1, order[logits[:, order].argmax(1)])

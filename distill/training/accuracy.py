"""How well a network predicts the teacher's labels, over raw rows in the orientation in which they were played.

The rows are those of `validation.validation_rows`. A packed board counts as a game of one row; its label is the column
with most visits.

    top1_all       = share of all rows whose label is the argmax of the masked logits
    top1_unseen    = the same over rows whose board is in the training table in no orientation
    top1_first_19  = the same over the first 19 rows of each game
    teacher        = over all rows: top-2 and top-3 accuracy, log loss, Cohen's kappa, confusion matrix, calibration

On a board that is its own mirror a column and its mirror image are the same answer, the left one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.datasets import batching
from distill.game import encoding, rules
from distill.game.rules import canonical_keys
from distill.games import reader

if TYPE_CHECKING:
    from distill.networks.predict import Predict


FIRST_ROWS = 19
"""Rows of a game that are also counted separately: about the length of the published system's games."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A network's answers on N rows, beside the rows' labels; all folded on boards that are their own mirror.

    move: int32 (N,), the network's column.  policy: float32 (N, 7).  value: float32 (N,); None without a value head.
    label: int64 (N,), the teacher's column.
    """

    move: NDArray[np.int32]
    policy: NDArray[np.float32]
    value: NDArray[np.float32] | None
    label: NDArray[np.int64]


def measure(predict: Predict, rows: reader.RawRows, training: batching.Examples) -> dict[str, Any]:
    """The three shares, the rows behind each, and `compare`; a share over no rows is None."""
    answer = answers(predict, rows)
    same = answer.label == answer.move
    unseen = ~np.isin(canonical_keys(rows.current, rows.mask), canonical_keys(training.current, training.mask))
    chosen = {"all": np.ones(len(rows), np.bool_), "unseen": unseen, f"first_{FIRST_ROWS}": is_early(rows)}
    shares = {f"top1_{name}": float(same[where].mean()) if where.any() else None for name, where in chosen.items()}
    counts = {f"rows_{name}": int(where.sum()) for name, where in chosen.items()}
    return {**shares, **counts, "teacher": compare(answer, rows)}


def answers(predict: Predict, rows: reader.RawRows) -> Answers:
    """The network's answers; equal boards are evaluated once."""
    boards, inverse = np.unique(np.stack([rows.current, rows.mask], axis=1), axis=0, return_inverse=True)
    outputs = predict(encoding.boards(boards[:, 0], boards[:, 1]))
    answered = {name: array[inverse.reshape(-1)] for name, array in outputs.items()}
    own_mirror = rules.is_own_mirror(rows.current, rows.mask)
    return Answers(
        move=fold_columns(answered["move"], own_mirror),
        policy=np.minimum(fold_shares(answered["policy"], own_mirror), 1),  # a sum can be rounded above 1
        value=answered.get("value"),
        label=fold_columns(rows.label.astype(np.int64), own_mirror),
    )


def fold_columns(columns: NDArray[Any], own_mirror: NDArray[np.bool_]) -> NDArray[Any]:
    """Columns (N, …), the lower of a column and its mirror on boards that are their own mirror, bool (N,)."""
    folded = columns.copy()
    folded[own_mirror] = np.minimum(columns, rules.COLUMNS - 1 - columns)[own_mirror]
    return folded


def fold_shares(shares: NDArray[Any], own_mirror: NDArray[np.bool_]) -> NDArray[Any]:
    """Shares or visits by column, (N, …, 7); on boards that are their own mirror the right is added to the left."""
    folded = shares.copy()
    folded[own_mirror, ..., : rules.CENTRE] += shares[own_mirror, ..., : rules.CENTRE : -1]
    folded[own_mirror, ..., rules.CENTRE + 1 :] = 0
    return folded


def compare(answer: Answers, rows: reader.RawRows) -> dict[str, Any]:
    """The network's answers compared with the teacher's labels and with the results of the games.

    `top2` and `top3`: shares of labels among the network's two and three likeliest columns. `log_loss`: of the policy,
    in nats. `kappa`: Cohen's, None where there is one column only. `confusion`: rows by the label (first index) and the
    network's column (second). `calibration`: pairs of predicted and observed shares, by bins of the prediction. The
    policy predicts with the probability of the network's column that the teacher chose it; the value v predicts with
    (v + 1) / 2 the mean score, a draw being half a win.
    """
    from sklearn.calibration import calibration_curve  # not at the top, because it takes a second
    from sklearn.metrics import cohen_kappa_score, confusion_matrix, log_loss, top_k_accuracy_score

    columns = np.arange(rules.COLUMNS)

    def curve(happened: ArrayLike, predicted: ArrayLike) -> list[list[float]]:
        observed, mean = calibration_curve(happened, predicted, pos_label=True, n_bins=10)
        return np.stack([mean, observed], axis=1).tolist()

    chances = answer.policy[np.arange(len(rows)), answer.move]
    calibration = {"policy": curve(answer.label == answer.move, chances)}
    if answer.value is not None:
        # Each row twice: a win happens twice, a draw once, a loss never.
        scores = np.concatenate([rows.outcome > 0, rows.outcome >= 0])
        calibration["value"] = curve(scores, np.tile((answer.value + 1) / 2, 2))
    several = len(np.unique([answer.label, answer.move])) > 1
    return {
        **{f"top{k}": float(top_k_accuracy_score(answer.label, answer.policy, k=k, labels=columns)) for k in (2, 3)},
        "log_loss": float(log_loss(answer.label, answer.policy, labels=columns)),
        "kappa": float(cohen_kappa_score(answer.label, answer.move)) if several else None,
        "confusion": confusion_matrix(answer.label, answer.move, labels=columns).tolist(),
        "calibration": calibration,
    }


def is_early(rows: reader.RawRows) -> NDArray[np.bool_]:
    """bool (N,): whether a row is among the FIRST_ROWS of its game; `rows` hold whole games, in the order played.

    Several runs may number their games alike, so a game also ends where the number of stones does not increase.
    """
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows.game[1:] != rows.game[:-1]) | (rows.ply[1:] <= rows.ply[:-1])
    number = np.arange(len(rows))
    return number - np.maximum.accumulate(np.where(begins, number, 0)) < FIRST_ROWS

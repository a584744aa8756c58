"""Check what a network, an evaluator or a player returns, before anything computes with it.

Compiled searches do not check their arrays: with a NaN among the logits there is no best column, and they would write
outside their arrays. Each function returns the array it was given, or raises OutputError with one line that says what
is wrong and on how many boards. `named` adds the network or player.

Dimensions: B boards, A = 7 columns. The mask `legal` is bool (B, A), True = may be played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, first_line
from distill.game.rules import COLUMNS, from_moves, legal_mask

VALUE_ROUNDING = 1e-5
"""How far a value may lie outside [-1, 1]: the tanh of ONNX Runtime goes up to 1.0000001."""
SUM_ROUNDING = 1e-3
"""How far the sum of a policy may be from 1."""
TRIAL = np.array([[p.current, p.mask] for p in map(from_moves, ("4453", "111111"))], np.uint64).T
"""current, mask: uint64 (2,), positions on which a user's code is tried before a command deletes or writes anything:
one has a full column, and their number is none of a board's dimensions."""


@contextmanager
def named(source: str) -> Iterator[None]:
    """Add the source, a network's file or a player, to an OutputError from the block that has none."""
    try:
        yield
    except OutputError as error:
        raise error if error.source else OutputError(error.problem, source) from None


def evaluation(output: Any, mask: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits (B, A) and values (B,) that an evaluator returned for positions, as contiguous float32, copied."""
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise OutputError(f"returned {type(output).__name__}, not a pair of logits and values")
    # An evaluator may return the same arrays again.
    prior = np.array(_array(output[0], "logits", (len(mask), COLUMNS)), np.float32, order="C")
    value = np.array(_array(output[1], "values", mask.shape), np.float32, order="C")
    if not np.isfinite(prior).all():
        logits(prior, legal_mask(mask))
    return prior, values(value, len(mask))


def network(outputs: Mapping[str, Any], boards: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
    """The outputs of a network for boards (B, 6, 7): logits, policy, move, and value where it has that head.

    On a full board the policy is 0 and the move -1.
    """
    legal = boards[:, 0] == 0
    checked = {
        "logits": logits(outputs["logits"], legal),
        "policy": policy(outputs["policy"], legal),
        "move": moves(outputs["move"], legal),
    }
    return checked | ({"value": values(outputs["value"], len(legal))} if "value" in outputs else {})


def logits(output: ArrayLike, legal: NDArray[np.bool_]) -> NDArray[Any]:
    """Logits (B, A). Full columns may hold anything; -inf means probability 0, which not all legal columns may have."""
    array = _array(output, "logits", legal.shape)
    if not np.isfinite(array).all():
        _refuse("a logit that is NaN or infinite", ((np.isnan(array) | np.isposinf(array)) & legal).any(1))
        _refuse("no finite logit for a legal column", legal.any(1) & ~(np.isfinite(array) & legal).any(1))
    return array


def policy(output: ArrayLike, legal: NDArray[np.bool_]) -> NDArray[Any]:
    """Probabilities (B, A)."""
    array = _array(output, "a policy", legal.shape)
    _refuse("a probability that is NaN, outside [0, 1] or of a full column", ~((array >= 0) & (array <= legal)).all(1))
    _refuse("a policy that does not sum to 1", np.abs(array.sum(1) - legal.any(1)) > SUM_ROUNDING)
    return array


def moves(output: ArrayLike, legal: NDArray[np.bool_], what: str = "move") -> NDArray[Any]:
    """Columns (B,); `what` is the word for one of them."""
    array = _array(output, f"{what}s", legal.shape[:1], kinds="iu")
    _refuse(f"an illegal {what}", ~are_legal(array[:, None], legal)[:, 0] & (legal.any(1) | (array != -1)))
    return array


def values(output: ArrayLike, boards: int) -> NDArray[Any]:
    """Values (B,) in [-1, 1], up to rounding."""
    array = _array(output, "values", (boards,))
    _refuse("a value outside [-1, 1]", ~(np.abs(array) <= 1 + VALUE_ROUNDING))  # NaN is outside, too
    return array


def visits(output: ArrayLike, legal: NDArray[np.bool_]) -> NDArray[Any]:
    """Visits (B, A) of a labeller: whole numbers, 0 on full columns, at least one on each board."""
    array = _array(output, "visits", legal.shape, kinds="iu")
    _refuse("visits that are negative or of a full column", ((array < 0) | ((array != 0) & ~legal)).any(1))
    _refuse("no visits", ~array.any(1))
    _refuse("more than 2,147,483,647 visits", array.sum(1, dtype=np.float64) >= 2**31)
    return array


def votes(output: ArrayLike, legal: NDArray[np.bool_]) -> NDArray[Any]:
    """Votes (B, K) of K searches: columns, and -1 for a vote that was skipped; from 1 to 100 of them."""
    array = _array(output, "votes", None, kinds="iu")
    if array.ndim != 2 or len(array) != len(legal) or not 1 <= array.shape[1] <= 100:
        raise OutputError(f"returned votes of shape {array.shape}, not ({len(legal)}, K) with K from 1 to 100")
    _refuse("a vote for an illegal column", ~(are_legal(array, legal) | (array == -1)).all(1))
    return array


def are_legal(columns: NDArray[Any], legal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool (B, n): whether columns (B, n) exist and are not full."""
    inside = (columns >= 0) & (columns < COLUMNS)
    return inside & np.take_along_axis(legal, np.where(inside, columns, 0).astype(np.intp), axis=1)


def _array(output: ArrayLike, what: str, shape: tuple[int, ...] | None, kinds: str = "f") -> NDArray[Any]:
    try:
        array = np.asarray(output)
    except Exception as error:  # lists of different lengths, a tensor on a GPU: each library raises its own
        raise OutputError(f"returned {what} that NumPy cannot convert ({first_line(error)})") from error
    if shape is not None and array.shape != shape:
        raise OutputError(f"returned {what} of shape {array.shape}, not {shape}")
    if array.dtype.kind not in kinds:
        kind = "floating-point" if kinds == "f" else "whole"
        raise OutputError(f"returned {what} of type {array.dtype}, not {kind} numbers")
    return array


def _refuse(what: str, wrong: Any) -> None:
    """Raise OutputError if `wrong`, bool (B,), is True for a board."""
    if wrong.any():
        raise OutputError(f"returned {what} on {np.count_nonzero(wrong)} of {len(wrong)} boards")

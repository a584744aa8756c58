"""`predict(boards)`: what a network is to its callers, whichever runtime computes it.

It maps int8 boards (B, 6, 7), or one (6, 7), to NumPy arrays by name, as the README of an exported model lists them:
logits (B, 7) with -1e9 on full columns, policy (B, 7), move int32 (B,), and value (B,) where there is that head. The
move on one board is an int.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, UserError, first_line
from distill.game import outputs
from distill.game.rules import COLUMNS, ROWS

Outputs: TypeAlias = dict[str, Any]
Predict: TypeAlias = Callable[[ArrayLike], Outputs]

CHUNK = 4096
"""Most boards per call of the graph. Bounds the memory of attention; larger batches are not faster."""


def check_names(path: Path, arguments: Collection[str], outputs: Collection[str]) -> None:
    """Raise UserError unless a file's arguments and outputs have the names that `export` gives them."""
    if set(arguments) != {"board"} or not {"logits", "policy", "move"} <= set(outputs):
        raise UserError(f"{path}: not a model of distill (arguments {sorted(arguments)}, outputs {sorted(outputs)})")


def on_arrays(graph: Callable[[Any], Mapping[str, Any]], file: str = "", checks: bool = True) -> Predict:
    """`predict` from a graph for boards (B, 6, 7): takes one board as well, and splits large batches.

    Args:
      graph: boards int8 (B, 6, 7) → outputs by name.
      file: where the graph is from; an error inside it becomes an OutputError that names the file.
      checks: whether to check what the graph returns.
    """

    def evaluate(boards: NDArray[np.int8]) -> Outputs:
        with outputs.named(file):
            try:
                output = graph(boards)
            except Exception as error:  # the runtimes have many types
                if not file:
                    raise
                raise OutputError(f"cannot be evaluated ({first_line(error)})") from error
            return outputs.network(output, boards) if checks else dict(output)

    def predict(boards: ArrayLike) -> Outputs:
        boards = np.asarray(boards, np.int8)
        if boards.ndim not in (2, 3) or boards.shape[-2:] != (ROWS, COLUMNS):
            raise ValueError(
                f"boards have shape {boards.shape}, expected (B, {ROWS}, {COLUMNS}) or ({ROWS}, {COLUMNS})"
            )
        batch = boards.reshape(-1, ROWS, COLUMNS)
        if not len(batch):  # TensorFlow's convolutions refuse an empty batch
            return {name: array[:0] for name, array in predict(np.zeros((1, ROWS, COLUMNS), np.int8)).items()}
        # Split what is too large for one call, and join the outputs.
        pieces = [evaluate(batch[start : start + CHUNK]) for start in range(0, len(batch), CHUNK)]
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        if boards.ndim == 3:
            return joined
        return {name: array[0] for name, array in joined.items()} | {"move": int(joined["move"][0])}

    return predict

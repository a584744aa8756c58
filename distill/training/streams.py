"""Streams of training batches: what `step.fit` learns from.

A stream is an iterator of `Batch`es without end. There are three kinds, which the loop treats alike:

- a table in memory: a prepared table, or the window of latest games that `datasets/replay.py` makes;
- a table on an accelerator (JAX), where many steps run per call (`training/on_device.py`);
- games that are played for each batch, as in `experiments/reinforce`.

The first two are `Table`s: columns, the rows of each batch, and a function that makes a batch of them. The same lines
make a batch with NumPy on the host and with JAX on the device.

Dimensions: N boards of the table, B boards of a batch, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import keras
import numpy as np
from numpy.typing import NDArray

from distill.datasets import batching
from distill.game import encoding
from distill.game.rules import COLUMNS
from distill.networks import backend, heads
from distill.training.recipe import Recipe

if TYPE_CHECKING:
    from distill.training.step import TrainingModel

Batch: TypeAlias = tuple[Any, dict[str, Any], Any]
"""Boards int8 (B, 6, 7), targets by name, (B, …), and weights (B,)."""

Columns: TypeAlias = Mapping[str, Any]
"""Arrays by name with one entry for each of N boards: `current` and `mask` uint32 (N, 2) as `encoding.words`, and what
the targets are made from."""


@dataclass(kw_only=True)
class Table(Iterator[Batch]):
    """A stream of batches from a table.

    Attributes:
      columns: of all boards; on the device if `on_device`.
      picks: the rows of each batch, and which of them are mirrored. Several tables with a share of the batch each are
        one table, whose rows these shares are drawn from.
      batch: columns, rows and mirrored → a batch. One function for all tables of a model, because JAX compiles it.
    """

    columns: Columns
    picks: Iterator[batching.Pick]
    batch: Callable[[Columns, Any, Any], Batch]
    on_device: bool = False

    def __next__(self) -> Batch:
        return self.batch(self.columns, *next(self.picks))


def table(
    model: TrainingModel, examples: batching.Examples, picks: Iterator[batching.Pick], on_device: bool | None = None
) -> Table:
    """The stream of a table for a model; on the device with JAX on an accelerator, unless `on_device` says otherwise.

    On a CPU the loop of many steps is slow: XLA computes a convolution twenty times slower inside a loop.
    """
    recipe, xp = model.recipe, np  # the array module
    columns: Columns = columns_of(examples, recipe)
    if on_device is None:
        on_device = keras.backend.backend() == "jax" and backend.on_accelerator()
    if on_device:
        import jax.numpy

        xp = jax.numpy
        columns = {name: xp.asarray(_for_device(column)) for name, column in columns.items()}
    batch = partial(batch_of, recipe=recipe, with_value=heads.has_value(model), xp=xp)
    return Table(columns=columns, picks=picks, batch=batch, on_device=on_device)


def columns_of(examples: batching.Examples, recipe: Recipe) -> dict[str, NDArray[Any]]:
    """The columns of a table; their weights have the mean 1."""
    power = {"equal": 0.0, "root": 0.5, "count": 1.0}[recipe.targets.count_weights]
    weight = np.power(examples.count, power, dtype=np.float32)
    return {
        "current": encoding.words(examples.current),
        "mask": encoding.words(examples.mask),
        "visits": examples.visits,
        "label": examples.label.astype(np.int32),
        "value": examples.value,
        "outcome": examples.outcome,
        "weight": weight * np.float32(1 / float(weight.mean())),
    }


def _for_device(column: NDArray[Any]) -> NDArray[Any]:
    """The column as it is sent: visits as float32, and rows of zeros up to a power of two.

    Tables of like sizes share compiled steps so.
    """
    if column.dtype == np.int64:
        column = column.astype(np.float32)
    padding = (1 << max(12, (len(column) - 1).bit_length())) - len(column)
    return np.concatenate([column, np.zeros((padding, *column.shape[1:]), column.dtype)])


def batch_of(columns: Columns, rows: Any, mirrored: Any, *, recipe: Recipe, with_value: bool, xp: Any = np) -> Batch:
    """The batch of these rows, some of them mirrored; `xp` is NumPy, or jax.numpy for columns on the device."""
    part = {name: column[rows] for name, column in columns.items()}
    boards, visits = encoding.boards_of_words(part["current"], part["mask"]), part["visits"].astype(np.float32)
    boards = xp.where(mirrored[:, None, None], boards[:, :, ::-1], boards)
    visits = xp.where(mirrored[:, None], visits[:, ::-1], visits)
    label = xp.where(mirrored, COLUMNS - 1 - part["label"], part["label"])
    vote = (label[:, None] == np.arange(COLUMNS)).astype(np.float32)
    policy = visits / visits.sum(axis=1, keepdims=True)
    # Blend what the recipe asks for.
    of_visits = {"visits": 1.0, "vote": 0.0, "blend": 0.5}[recipe.targets.target]
    of_value = {"value": 1.0, "outcome": 0.0}.get(recipe.targets.value_target, 0.5)
    targets = {"logits": of_visits * policy + (1 - of_visits) * vote}
    if with_value:
        targets["value"] = of_value * part["value"] + (1 - of_value) * part["outcome"]
    return boards, targets, part["weight"]

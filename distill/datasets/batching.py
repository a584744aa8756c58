"""A prepared table in memory, and which of its rows make the batches of an epoch.

`Examples` is a whole table as arrays (`preparation.load`), `picks` are the rows of each batch, some of them mirrored;
`training/streams.py` makes batches of both. An accelerator's machine needs no PyArrow for this.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common.arrays import Arrays


@dataclass(frozen=True, kw_only=True)
class Examples(Arrays):
    """A prepared table in memory: N canonical boards, everything from the side to move.

    current, mask: uint64 (N,).  visits: int64 (N, 7), summed.  label: int8 (N,).
    value, outcome: float32 (N,), means in [-1, 1].  count: int32 (N,), raw rows merged.
    """

    current: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    visits: NDArray[np.int64]
    label: NDArray[np.int8]
    value: NDArray[np.float32]
    outcome: NDArray[np.float32]
    count: NDArray[np.int32]


def batches_an_epoch(rows: int, batch_size: int) -> int:
    """Batches of one epoch: rows left over are dropped, and fewer rows than `batch_size` make one batch."""
    return rows // batch_size or 1


Pick: TypeAlias = tuple[NDArray[np.intp], NDArray[np.bool_]]
"""The rows of a batch, (B,), and which of them are mirrored, (B,)."""


def picks(rows: int, batch_size: int, *, seed: int, mirror: bool = True, step: int = 0) -> Iterator[Pick]:
    """The batches of all epochs, without end, from the batch number `step` on, for a table of so many rows.

    The order of an epoch is drawn from (seed, epoch), and each row is mirrored with probability 1/2 by its own draw.

    Every batch has `batch_size` rows, so that one compiled step serves them all; each epoch drops other rows.
    """
    size, number = min(batch_size, rows), batches_an_epoch(rows, batch_size)
    for epoch in itertools.count(step // number):
        # From the seed and the epoch alone, so that a resumed run sees the same batches.
        rng = np.random.default_rng((seed, epoch))
        order = rng.permutation(rows)
        mirrored = rng.random(rows) < 0.5 if mirror else np.zeros(rows, np.bool_)
        for batch in range(step % number if epoch == step // number else 0, number):
            chosen = order[batch * size : (batch + 1) * size]
            yield chosen, mirrored[chosen]

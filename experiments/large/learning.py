"""What `solve.py` learns: the positions of its games, the batches of a round, and the loss.

Three quarters of a batch are positions with their proven moves, one of which, whichever the network likes, is to be
ahead. The others are boards on which it goes on answering as it did at first, which keeps its general strength.

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.alphazero.device_games import openings
from distill.datasets import canonical
from distill.game import encoding, rules
from distill.games import reader
from distill.training import streams
from experiments.large import positions
from experiments.large.positions import Answers, Keys, Layers

NEAREST, NEAR = 1 << 13, 1 << 17
"""Positions in the two pools of those with the smallest margins."""
SHARES = {"kept": 0.25, "nearest": 0.15, "near": 0.35}
"""What a batch is made of besides other positions; `kept` are the boards on which the network answers as before."""
VALUE_WEIGHT = 0.5
MARGIN = 0.5
"""Logits by which a proven move is to be ahead of all others; positions where it is teach nothing."""
OPENINGS = ((0, 3), (4, 16), (6, 18), (8, 20), (8, 24))
"""Fewest and most random moves before a random board."""


def margins(logits: NDArray[np.float32], moves: NDArray[np.uint8]) -> NDArray[np.float32]:
    """float32 (N,): the logit of the best proven move less that of the best other one; above 0, it is played."""
    proven = positions.is_in(moves)
    best, other = (np.where(mask, logits, -1e9).max(1) for mask in (proven, ~proven))
    result: NDArray[np.float32] = best - other
    return result


def loss_of_boards(targets: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """(B,): what the best proven move lacks to be MARGIN ahead; on kept boards, the distance from earlier answers."""
    as_before = ops.categorical_crossentropy(targets["logits"], outputs["logits"], from_logits=True)
    as_before = as_before + VALUE_WEIGHT * ops.square(targets["value"] - outputs["value"])
    best = ops.max(ops.where(targets["proven"], outputs["logits"], -1e9), axis=1)
    other = ops.max(ops.where(targets["other"], outputs["logits"], -1e9), axis=1)
    return ops.where(targets["is_kept"], as_before, ops.relu(MARGIN - (best - other)))


def batch_of(columns: Mapping[str, Any], rows: Any, _mirrored: Any, *, xp: Any) -> streams.Batch:
    """The batch of these rows, first of kept boards, then of positions to learn; `xp` is NumPy or jax.numpy."""
    number = int(SHARES["kept"] * len(rows))
    kept, rows = rows[:number], rows[number:]
    current, mask = (
        xp.concatenate([columns[f"kept_{name}"][kept], columns[name][rows]]) for name in ("current", "mask")
    )
    proven = (columns["moves"][rows][:, None] >> np.arange(7, dtype=np.uint8)) & 1 == 1
    boards, fill = encoding.boards_of_words(current, mask), ((0, len(rows)), (0, 0))
    others = ~proven & (boards[number:, 0] == 0)
    targets = {
        "logits": xp.pad(columns["kept_policy"][kept].astype(np.float32), fill),
        "value": xp.pad(columns["kept_value"][kept].astype(np.float32), fill[:1]),
        "proven": xp.pad(proven, ((number, 0), (0, 0))),
        "other": xp.pad(others, ((number, 0), (0, 0))),
        "is_kept": xp.arange(number + len(rows)) < number,
    }
    return boards, targets, xp.ones(number + len(rows), np.float32)


class Pool:
    """Positions to learn, layer by layer.

    Attributes:
      keys, moves, margins: uint64 (N,); uint8 (N,), their proven moves; float32 (N,), as in `margins`.
      wrong: positions in which the network chooses a move that is not proven.
      kept_out: as many among the graded boards, which are never learned.
      below_1: positions in which a proven move is less than a logit ahead.
      near, nearest: rows of the positions with the smallest margins.
    """

    def __init__(self, layers: Layers, proof: positions.Proof, logits: Answers, excluded: Keys) -> None:
        keys, moves, values, self.kept_out = [], [], [], 0
        for stones, layer in layers.items():
            of_layer, is_graded = margins(logits(stones, layer), proof[stones]), np.isin(layer, excluded)
            is_proven = proof[stones] != 0
            self.kept_out += int((is_proven & is_graded & (of_layer <= 0)).sum())
            fits = is_proven & ~is_graded
            keys.append(layer[fits])
            moves.append(proof[stones][fits])
            values.append(of_layer[fits])
        self.keys, self.moves = np.concatenate(keys), np.concatenate(moves)
        self.margins, self.sizes = np.concatenate(values), np.array([*map(len, keys)])
        self.wrong, self.below_1 = int((self.margins <= 0).sum()), int((self.margins < 1).sum())
        self.near = np.argpartition(self.margins, min(NEAR, len(self.margins) - 1))[:NEAR]
        self.look(self.margins[self.near])

    def look(self, near: NDArray[np.float32]) -> None:
        """Choose `nearest` by the margins of the near positions."""
        self.nearest = self.near[np.argpartition(near, min(NEAREST, len(near) - 1))[:NEAREST]]

    def picks(self, random: np.random.Generator, batch_size: int, kept: int) -> Iterator[tuple[Any, Any]]:
        """Rows of batches without end, of `kept` boards first."""
        numbers = {name: int(share * batch_size) for name, share in SHARES.items()}
        rest = batch_size - sum(numbers.values())
        chances = np.sqrt(self.sizes) / np.sqrt(self.sizes).sum()
        starts, nobody = np.cumsum(self.sizes) - self.sizes, np.zeros(batch_size, np.bool_)
        while True:
            layer = random.choice(len(self.sizes), rest, p=chances)
            rows = [
                random.integers(0, kept, numbers["kept"]),
                random.choice(self.nearest, numbers["nearest"]),
                random.choice(self.near, numbers["near"]),
                starts[layer] + random.integers(0, self.sizes[layer]),
            ]
            yield np.concatenate(rows), nobody


def words(keys: Keys, rows: int) -> dict[str, Any]:
    """The boards of positions as columns `current` and `mask` on the device, uint32 (rows, 2), filled up with zeros."""

    @jax.jit  # type: ignore[untyped-decorator]
    def split(keys: Any) -> list[Any]:
        boards = rules.from_keys(keys)
        return [jnp.stack([bits & 0xFFFFFFFF, bits >> 32], axis=1).astype(jnp.uint32) for bits in boards]

    with jax.enable_x64(True):
        return dict(zip(("current", "mask"), split(np.pad(keys, (0, rows - len(keys)))), strict=True))


def kept_boards(folders: Sequence[Path], random_boards: int, most: int | None, excluded: Keys) -> Keys:
    """Canonical keys of the boards in folders and of so many after random moves, without the excluded ones."""
    shards = [shard for run in reader.open_runs(folders) for shard in run.shards]
    rows = [reader.read(shard, ("current", "mask")) for shard in shards]
    keys = [canonical.board_keys(part["current"], part["mask"]) for part in rows]
    if random_boards:
        with jax.enable_x64(True):
            current, mask = jax.jit(lambda: openings(jax.random.key(0), random_boards, OPENINGS))()
        keys.append(canonical.board_keys(current, mask))
    boards = positions.distinct(keys)
    boards = boards[~np.isin(boards, excluded)]
    return boards if most is None else np.sort(np.random.default_rng(0).permutation(boards)[:most])

"""The latest self-play games as a table to train on: read, made canonical and merged in memory.

`preparation.prepare` makes one table of a finished data set; this makes one per iteration, of a few hundred thousand
rows, with no validation split, by the same rules: canonical boards, visits summed, value and outcome averaged, the
boards that are kept out of training left out. Where searches record unequal sums of visits, each counts as the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError
from distill.datasets.batching import Examples
from distill.datasets.canonical import canonical, merged
from distill.games import reader, schema
from distill.games.reader import chosen, joined
from distill.games.schema import PREPARED_ROW
from distill.mcts.labeller import majority

COLUMNS_READ = ("current", "mask", "label", "visits", "value", "outcome")


def latest(folders: Sequence[Path], most_rows: int | None, most_games: int | None) -> list[schema.Shard]:
    """The last shards of finished runs, given oldest first, that together hold at most so many rows and games.

    The newest run is always taken whole. None: no limit.
    """
    limits = [math.inf if most is None else most for most in (most_rows, most_games)]
    shards, rows, games = list[schema.Shard](), 0, 0
    # From the newest run back, until the next shard would be one too many.
    for folder in reversed(folders):
        for shard in reversed(reader.open_run(folder).shards):
            rows, games = rows + shard.rows, games + shard.games
            if folder != folders[-1] and (rows > limits[0] or games > limits[1]):
                return shards[::-1]
            shards.append(shard)
    return shards[::-1]


def table(shards: Sequence[schema.Shard], excluded: NDArray[np.uint64]) -> Examples:
    """Their rows on their canonical boards, merged, without boards whose key is in `excluded` (sorted).

    The label of a merged board is the column with most visits, then nearest the centre, then lower. Raises DataError
    where no row is left.
    """
    rows = canonical(joined([reader.read(shard, COLUMNS_READ) for shard in shards]))
    # Each search counts the same, however many simulations it had.
    totals = np.maximum(rows["visits"].sum(1, dtype=np.int64), 1)
    rows["visits"] = np.rint(rows["visits"] * (totals.max() / totals)[:, None])
    boards = merged(rows, ("current", "mask"))
    keys = boards["current"] + boards["mask"]
    kept = np.argsort(keys)
    # Boards that grade networks must not teach them.
    kept = kept[~np.isin(keys[kept], excluded, assume_unique=True)]
    if not len(kept):
        raise DataError("no row to train on: every board is kept out of training")
    boards = chosen(boards, kept)
    boards["label"] = majority(boards["visits"], boards["visits"])
    for name in ("value", "outcome", "count"):
        boards[name] = boards[name].astype(PREPARED_ROW.field(name).type.to_pandas_dtype())
    return Examples(**boards)


def sample(examples: Examples, rows: int | None, seed: int) -> Examples:
    """`rows` boards drawn without repetition; all of them where there are no more, or for None."""
    if rows is None or rows >= len(examples):
        return examples
    return examples[np.sort(np.random.default_rng(seed).permutation(len(examples))[:rows])]

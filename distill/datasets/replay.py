"""The latest self-play games as a table to train on: read, made canonical and merged in memory.

`preparation.prepare` makes one table of a finished data set; this makes one per iteration, of a few hundred thousand
rows, with no validation split, by the same rules: canonical boards, visits summed, value and outcome averaged, the
boards that are kept out of training left out. Where searches record unequal sums of visits, each counts as the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError
from distill.datasets.batching import Examples
from distill.datasets.canonical import canonical, merged
from distill.games import reader
from distill.games.schema import PREPARED_ROW
from distill.mcts.labeller import majority

COLUMNS_READ = ("current", "mask", "label", "visits", "value", "outcome")


def verified_run(folder: Path) -> reader.Run:
    """The finished run in a folder, its shards verified."""
    run = reader.open_run(folder)
    reader.verify([run])
    return run


def latest(
    folders: Sequence[Any],
    most_rows: int | None,
    most_games: int | None,
    *,
    open_run: Callable[[Any], reader.Run] = verified_run,
) -> list[reader.ShardFile]:
    """The last shards of finished runs, given oldest first, that together hold at most so many rows and games.

    The newest run is always taken whole. None: no limit.

    Args:
      folders: the runs, as `open_run` takes them; it is not called for those that are older than any that is needed.
    """
    chosen: list[reader.ShardFile] = []
    rows = count = 0

    def over(limit: int | None, number: int) -> bool:
        return limit is not None and number > limit

    # From the newest run back, until the next shard would be one too many.
    for folder in reversed(folders):
        newest = folder == folders[-1]
        if not newest and (over(most_rows, rows + 1) or over(most_games, count + 1)):
            break
        for shard in reversed(open_run(folder).shards):
            rows, count = rows + shard.rows, count + shard.games
            if not newest and (over(most_rows, rows) or over(most_games, count)):
                return chosen[::-1]
            chosen.append(shard)
    return chosen[::-1]


def table(shards: Sequence[reader.ShardFile], excluded: NDArray[np.uint64]) -> Examples:
    """Their rows on their canonical boards, merged, without boards whose key is in `excluded` (sorted).

    The label of a merged board is the column with most visits, then nearest the centre, then lower. Raises DataError
    where no row is left.
    """
    parts = [reader.read(shard, COLUMNS_READ) for shard in shards]
    rows = canonical({name: np.concatenate([part[name] for part in parts]) for name in COLUMNS_READ})
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
    boards = {name: values[kept] for name, values in boards.items()}
    boards["label"] = majority(boards["visits"], boards["visits"])
    for name in ("value", "outcome", "count"):
        boards[name] = boards[name].astype(PREPARED_ROW.field(name).type.to_pandas_dtype())
    return Examples(**boards)


def sample(examples: Examples, rows: int | None, seed: int) -> Examples:
    """`rows` boards drawn without repetition; all of them where there are no more, or for None."""
    if rows is None or rows >= len(examples):
        return examples
    return examples[np.sort(np.random.default_rng(seed).permutation(len(examples))[:rows])]

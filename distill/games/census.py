"""Counts of a run of games or packed boards: rows, distinct boards, results; and one hash of its files.

In: a finished run (`games/reader.py`). Out: a `Census`. A board and its mirror image count as one. The counted columns
of all rows are in memory, 30 bytes a row.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from distill.common import DataError
from distill.game import rules
from distill.games import reader
from distill.games.reader import Run

_READ = ("game_id", "ply", "current", "mask", "outcome")


@dataclass(frozen=True, kw_only=True)
class Census:
    """The counts of a run.

    Attributes:
      plies: by stones on the board (the index): `rows`, distinct `boards`, and `repeated` rows, those whose board
        another row has too.
      results: games by their result for the first player, 1, 0 or -1.
      lengths: stones on the board at the end of each game.
    """

    plies: pd.DataFrame
    results: dict[int, int]
    lengths: pd.Series


def count(run: Run) -> Census:
    """Count a run, after every shard was compared with its SHA-256.

    Raises DataError for a damaged file and for a run without rows.
    """
    reader.verify([run])
    if not run.rows:
        raise DataError(f"{run.folder}: holds no rows")
    rows = pd.concat((pd.DataFrame(reader.read(shard, _READ)) for shard in run.shards), ignore_index=True)
    rows["current"], rows["mask"], _ = rules.canonicalise(rows["current"].to_numpy(), rows["mask"].to_numpy())
    boards = rows.groupby(["ply", "current", "mask"]).size().rename("rows").reset_index()
    boards["repeated"] = boards["rows"].where(boards["rows"] > 1, 0)
    plies = boards.groupby("ply").agg(rows=("rows", "sum"), boards=("rows", "size"), repeated=("repeated", "sum"))
    last = rows.groupby("game_id").last()
    of_first = np.where(last["ply"] % 2 == 0, last["outcome"], -last["outcome"])
    results = {result: int((of_first == result).sum()) for result in (1, 0, -1)}
    return Census(plies=plies, results=results, lengths=last["ply"] + 1)


def bytes_digest(run: Run) -> str:
    """One SHA-256 for all shard files: what `LC_ALL=C sha256sum shard-*.parquet | sha256sum` prints."""
    lines = "".join(f"{shard.sha256}  {shard.name}\n" for shard in sorted(run.shards, key=lambda shard: shard.name))
    return hashlib.sha256(lines.encode()).hexdigest()

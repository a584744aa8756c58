"""Counts of a run of games: rows, boards, openings, lengths, results, labels; and one hash of its files.

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
from distill.game.rules import Position
from distill.games import reader
from distill.games.reader import Run

_READ = ("game_id", "ply", "current", "mask", "label", "move", "outcome")


@dataclass(frozen=True, kw_only=True)
class Ply:
    """The rows with one number of stones.

    Attributes:
      rows, boards: rows, and distinct boards up to mirror.
      repeated: rows whose board another row has too.
    """

    rows: int
    boards: int
    repeated: int


@dataclass(frozen=True, kw_only=True)
class Census:
    """The counts of a run.

    Attributes:
      games, rows, boards, repeated: over the whole run, as in `Ply`.
      simulations, bytes, shards: of its files.
      plies: by stones on the board.
      openings: games by random moves before the first labelled position.
      lengths: games by stones on the board at their end.
      results: games by their result for the first player, 1, 0 or -1.
      endings: distinct last labelled boards of games, up to mirror; games with the same ending are mostly the same.
      labels: rows by label, column 0 to 6.
      off_label: rows whose move is not the label.
      frequent: the boards with most rows, canonical, with their rows; of equally frequent ones those with fewer stones.
    """

    games: int
    rows: int
    boards: int
    repeated: int
    simulations: int
    bytes: int
    shards: int
    plies: dict[int, Ply]
    openings: dict[int, int]
    lengths: dict[int, int]
    results: dict[int, int]
    endings: int
    labels: tuple[int, ...]
    off_label: int
    frequent: tuple[tuple[Position, int], ...]


def count(run: Run, *, frequent: int = 3) -> Census:
    """Count a run, after every shard was compared with its SHA-256; name the `frequent` most frequent boards.

    Raises DataError for a damaged file and for a run without rows.
    """
    reader.verify([run])
    if not run.rows:
        raise DataError(f"{run.folder}: holds no rows")
    parts = (rows for shard in run.shards for rows in reader.read(shard, _READ))
    rows = pd.concat(map(pd.DataFrame, parts), ignore_index=True)
    rows["current"], rows["mask"], _ = rules.canonicalise(rows["current"].to_numpy(), rows["mask"].to_numpy())
    boards = rows.groupby(["ply", "current", "mask"]).size().reset_index(name="rows")
    boards["repeated"] = boards["rows"].where(boards["rows"] > 1, 0)
    by_ply = boards.groupby("ply").agg(rows=("rows", "sum"), boards=("rows", "size"), repeated=("repeated", "sum"))
    plies = {
        ply: Ply(rows=rows, boards=boards, repeated=repeated)
        for ply, rows, boards, repeated in by_ply.reset_index().to_numpy().tolist()
    }
    games = rows.groupby("game_id")
    first, last = games.first(), games.last()
    results = _counts(pd.Series(np.where(last["ply"] % 2 == 0, last["outcome"], -last["outcome"])))
    labels = _counts(rows["label"])
    most = boards.sort_values("rows", ascending=False, kind="stable").head(frequent)
    return Census(
        games=len(first),
        rows=len(rows),
        boards=len(boards),
        repeated=int(boards["repeated"].sum()),
        simulations=sum(shard.simulations for shard in run.shards),
        bytes=sum(shard.path.stat().st_size for shard in run.shards),
        shards=len(run.shards),
        plies=plies,
        openings=_counts(first["ply"]),
        lengths=_counts(last["ply"] + 1),
        results={result: results.get(result, 0) for result in (1, 0, -1)},
        endings=len(last[["current", "mask"]].drop_duplicates()),
        labels=tuple(labels.get(column, 0) for column in range(rules.COLUMNS)),
        off_label=int((rows["move"] != rows["label"]).sum()),
        frequent=tuple(
            (Position(current, mask), number)
            for current, mask, number in most[["current", "mask", "rows"]].itertuples(index=False)
        ),
    )


def bytes_digest(run: Run) -> str:
    """One SHA-256 for all shard files: what `LC_ALL=C sha256sum shard-*.parquet | sha256sum` prints."""
    return _digest(run, "sha256")


def rows_digest(run: Run) -> str:
    """The same over the hashes of the shards' values, which do not depend on what wrote the files."""
    return _digest(run, "content_hash")


def _digest(run: Run, field: str) -> str:
    shards = sorted(run.shards, key=lambda shard: shard.name)
    lines = "".join(f"{getattr(shard, field)}  {shard.name}\n" for shard in shards)
    return hashlib.sha256(lines.encode()).hexdigest()


def _counts(values: pd.Series) -> dict[int, int]:
    """How often each value occurs, in ascending order of the values."""
    found, numbers = np.unique(values.to_numpy(), return_counts=True)
    return dict(zip(found.tolist(), numbers.tolist(), strict=True))

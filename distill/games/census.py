"""What a run of games holds, counted: rows, boards, games, and one digest of its files.

In: a finished run (`games/reader.py`). Out: a `Census`. Boards count as equal up to mirror. The rows stream through
DuckDB, which spills to disk beyond its memory limit, so a run may be larger than memory.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from distill.common import DataError
from distill.game import rules
from distill.game.rules import Position
from distill.games import database, reader
from distill.games.reader import Run

_POSITION = {
    "game_id": "BIGINT",
    "ply": "TINYINT",
    "current": "UBIGINT",  # canonical board
    "mask": "UBIGINT",
    "label": "TINYINT",  # as played, not mirrored
    "move": "TINYINT",
    "first": "TINYINT",  # the game's result for the first player: 1, 0, -1
}
_READ = ("game_id", "ply", "current", "mask", "label", "move", "outcome")


@dataclass(frozen=True, kw_only=True)
class Ply:
    """Rows with one number of stones.

    Attributes:
      rows, boards: rows, and unlike boards up to mirror.
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
      simulations, bytes, shards: those of its files.
      plies: by stones on the board.
      openings: games by random moves before the first labelled position.
      lengths: games by stones on the board at their end.
      results: games by their result for the first player, 1, 0 or -1.
      endings: unlike last labelled boards of games, up to mirror; games that end alike mostly are alike.
      labels: rows by label, column 0 to 6.
      off_label: rows whose move is another column than the label.
      frequent: the boards with most rows, canonical, with those rows; of equally frequent ones those with fewer stones.
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


def count(run: Run, *, frequent: int = 3, memory_gib: float = 1.0, threads: int = 2) -> Census:
    """Count a run, after every shard was compared with its SHA-256.

    Args:
      frequent: how many of the most frequent boards to name.
      memory_gib: what DuckDB may use before it spills.

    Raises DataError for a damaged file and for a run without rows.
    """
    reader.verify([run])
    room = Path(tempfile.gettempdir())
    task = f"{run.folder}: the rows could not be counted"
    with database.opened(task, room, memory_gib=memory_gib, threads=threads) as counting:
        counting.create("position", _POSITION)
        for rows in _positions(run):
            counting.insert("position", rows)
        counting.execute("""
            CREATE TEMP TABLE board AS
            SELECT current, mask, any_value(ply) AS ply, count(*) AS rows FROM position GROUP BY current, mask
        """)
        plies = {
            ply: Ply(rows=rows, boards=boards, repeated=repeated)
            for ply, rows, boards, repeated in counting.execute("""
                SELECT ply, sum(rows)::BIGINT, count(*), coalesce(sum(rows) FILTER (rows > 1), 0)::BIGINT
                FROM board GROUP BY ply ORDER BY ply
            """)
        }
        if not plies:
            raise DataError(f"{run.folder}: holds no rows")
        most = counting.execute(f"SELECT * FROM board ORDER BY rows DESC, ply, current, mask LIMIT {frequent}")
        by_label = dict(counting.execute("SELECT label, count(*) FROM position GROUP BY label"))
        ((off_label,),) = counting.execute("SELECT count(*) FILTER (move != label) FROM position")
        counting.execute("""
            CREATE TEMP TABLE game AS
            SELECT min(ply) AS opening, max(ply) + 1 AS length, arg_max(first, ply) AS first,
                arg_max(current, ply) AS current, arg_max(mask, ply) AS mask
            FROM position GROUP BY game_id
        """)
        kinds = counting.execute("SELECT opening, length, first, count(*) FROM game GROUP BY ALL")
        ((endings,),) = counting.execute("SELECT count(DISTINCT (current, mask)) FROM game")
    openings, lengths, results = (_marginal(kinds, place) for place in range(3))
    return Census(
        games=sum(openings.values()),
        rows=sum(ply.rows for ply in plies.values()),
        boards=sum(ply.boards for ply in plies.values()),
        repeated=sum(ply.repeated for ply in plies.values()),
        simulations=sum(shard.simulations for shard in run.shards),
        bytes=sum(shard.path.stat().st_size for shard in run.shards),
        shards=len(run.shards),
        plies=plies,
        openings=openings,
        lengths=lengths,
        results={result: results.get(result, 0) for result in (1, 0, -1)},
        endings=endings,
        labels=tuple(by_label.get(column, 0) for column in range(rules.COLUMNS)),
        off_label=off_label,
        frequent=tuple((Position(current, mask), rows) for current, mask, _, rows in most),
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


def _positions(run: Run) -> Iterator[pa.Table]:
    """All rows on their canonical boards, a piece at a time."""
    for shard in run.shards:
        for rows in reader.read(shard, _READ):
            rows["current"], rows["mask"], _ = rules.canonicalise(rows["current"], rows["mask"])
            rows["first"] = np.where(rows["ply"] % 2 == 0, rows["outcome"], -rows["outcome"])
            yield pa.table({name: rows[name] for name in _POSITION})


def _marginal(kinds: list[Any], place: int) -> dict[int, int]:
    """Games by one of the things that were counted together, in ascending order."""
    found: Counter[int] = Counter()
    for *values, number in kinds:
        found[values[place]] += number
    return dict(sorted(found.items()))

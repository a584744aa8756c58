"""Reads finished games: a complete folder, its verified shards, the split of its games, its raw rows.

In: complete folders of `generate`, of `selfplay` or of packed boards, each one run. Out: columns as NumPy arrays, a
shard at a time. Nothing is changed on disk. Packed boards are read like games of one row each.

Every shard is compared with the SHA-256 in the record: all of them by `verify`, before anything is done, and again by
`read`, in the bytes whose rows it returns. This covers the footer as well as the pages and notices a shard of another
run, which page checksums do not; it takes about a second per gigabyte.
"""

from __future__ import annotations

import hashlib
import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError, cli, run_folder
from distill.common.arrays import Arrays
from distill.game import rules
from distill.game.mixing import GOLDEN, splitmix64
from distill.games import schema
from distill.games.schema import ROW, VALIDATION, VALUE_STEPS
from distill.mcts.labeller import majority

KINDS = (schema.GAMES, schema.PACKED_BOARDS)
"""The kinds of folders that can be read as games."""

RAW = ("game_id", "current", "mask", "label", "ply", "outcome")
"""The columns of RawRows."""

Columns = dict[str, NDArray[Any]]
"""Raw columns by name, each (B,) in the type of `schema.ROW`, visits (B, 7)."""


class ShardFile(schema.Shard):
    """A shard and its folder."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete folder of games.

    Attributes:
      name: hash of the run's identity: settings, seed and search version.
      sources: names of the runs whose games it holds; packed boards may be of many.
      identity: what its games depend on.
    """

    folder: Path
    name: str
    sources: frozenset[str]
    identity: dict[str, Any]
    games: int
    rows: int
    shards: tuple[ShardFile, ...]


@dataclass(frozen=True, kw_only=True)
class RawRows(Arrays):
    """Labelled positions in the orientation they were played in, one entry a row.

    game: int64 (N,), its number in its run.  current, mask: uint64 (N,).  label: int8 (N,), the majority vote.
    ply: int8 (N,), stones on the board.  outcome: int8 (N,), the game's result for the side to move.
    """

    game: NDArray[np.int64]
    current: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    label: NDArray[np.int8]
    ply: NDArray[np.int8]
    outcome: NDArray[np.int8]


# Runs -----------------------------------------------------------------------------------------------------------------


def open_run(folder: Path) -> Run:
    """The run in a folder, from its record alone; the shards are not opened.

    Raises DataError for a folder that is missing, empty, not of games, or not finished.
    """
    if not folder.is_file() and not any(path.name != run_folder.LOCK for path in folder.glob("*")):
        where = "--preset smoke" if folder == cli.SMOKE_DATA / "games" else f"--out {shlex.quote(str(folder))}"
        raise DataError(f"{folder}: no games here; make them with: python -m distill.generate {where}")
    record = run_folder.finished(folder, *KINDS)
    result = schema.run_of(folder, record.result or {})
    return Run(
        folder=folder,
        name=result.run,
        sources=frozenset(name for source in result.inputs for name in source["sources"]) or frozenset({result.run}),
        identity=record.identity,
        games=sum(shard.games for shard in result.shards),
        rows=sum(shard.rows for shard in result.shards),
        shards=tuple(ShardFile(folder=folder, **dict(shard)) for shard in result.shards),
    )


def open_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in several folders, ordered by name. Raises DataError where two folders hold games of the same run."""
    runs = sorted((open_run(Path(folder)) for folder in folders), key=lambda run: run.name)
    for first, second in itertools.combinations(runs, 2):
        if first.sources & second.sources or first.name == second.name:
            raise DataError(f"{second.folder}: games of the same run as in {first.folder}, which would count twice")
    return runs


def verify(runs: Iterable[Run], advice: str | None = None) -> None:
    """Raise DataError unless every shard is the file that the record describes.

    `advice` says what a user can do; None: make the games again.
    """
    for run in runs:
        for shard in run.shards:
            _content(shard, advice)


def _content(shard: ShardFile, advice: str | None = None) -> bytes:
    """The bytes of a shard. Raises DataError unless they are those that the record describes; `advice` as above."""
    content = shard.path.read_bytes() if shard.path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != shard.sha256:
        # `generate` does not overwrite rows that somebody changed, so the file must go first.
        again = advice or f"delete it, and start the command that wrote {shard.folder} again"
        raise DataError(f"{shard.path}: not the file that the record describes (missing, damaged or changed); {again}")
    return content


def in_validation(run: str, game_ids: NDArray[np.integer[Any]], fraction: float) -> NDArray[np.bool_]:
    """bool (B,): whether each game belongs to the validation split.

    A game's number u in [0, 1) is the game_id-th output of SplitMix64 (Steele, Lea & Flood 2014)
    seeded with the first 16 hexadecimal digits of the run's name; it is in validation iff u < fraction:

        s = int(run[:16], 16) + (game_id + 1) · 0x9E3779B97F4A7C15      all modulo 2^64
        s = (s ^ (s >> 30)) · 0xBF58476D1CE4E5B9
        s = (s ^ (s >> 27)) · 0x94D049BB133111EB
        u = ((s ^ (s >> 31)) >> 11) / 2^53

    So a game keeps its split when the run is extended, when other runs are added, and on any machine,
    and the validation games of a smaller fraction are among those of a larger one.
    """
    state = game_ids.astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(int(run[:16], 16))
    return (splitmix64(state) >> np.uint64(11)).astype(np.float64) / 2.0**53 < fraction


# Rows -----------------------------------------------------------------------------------------------------------------


def read(shard: ShardFile, columns: Sequence[str]) -> Columns:
    """Some columns of a shard, in its order.

    Raises DataError for a file that the record does not describe, for missing values and those outside
    `schema.LIMITS`, and where packed boards lack a column.
    """
    table, metadata = schema.read_table(shard.path, None, _content(shard), columns)
    return columns_of(shard.path, table, metadata, columns)


def columns_of(path: Path | str, table: pa.Table, metadata: Mapping[str, Any], columns: Sequence[str] = RAW) -> Columns:
    """Some columns of a table of raw rows or of packed boards, which lack some of them. Raises DataError as `read`."""
    rows = schema.arrays(path, table)
    # Packed boards hold less than rows of games: what follows from it is added, what does not is missing.
    if metadata.get("kind") == schema.PACKED:
        rows = unpacked(rows, metadata["first_game"])
    if missing := [name for name in columns if name not in rows]:
        raise DataError(f"{path}: packed boards, which have no {missing[0]}; games are needed here")
    return {name: rows[name] for name in columns}


def raw_rows(folders: Sequence[Path], split: int | None = None, validation_fraction: float = 0) -> RawRows:
    """All raw rows of the training games or of the validation games, in memory.

    Args:
      folders: finished games; several are read in the order of their runs' names.
      split: TRAINING, VALIDATION, or None for every row.
      validation_fraction: the share of games in validation, as given to `prepare`.
    """
    parts = []
    for run in open_runs(folders):
        for rows in (read(shard, RAW) for shard in run.shards):
            if split is not None:
                chosen = in_validation(run.name, rows["game_id"], validation_fraction) == (split == VALIDATION)
                rows = {name: values[chosen] for name, values in rows.items()}
            parts.append(rows)
    return joined(parts)


def joined(parts: Sequence[Columns]) -> RawRows:
    """The columns RAW of several tables as one."""
    columns = {
        name: np.concatenate([np.empty(0, ROW.field(name).type.to_pandas_dtype()), *(part[name] for part in parts)])
        for name in RAW
    }
    return RawRows(game=columns.pop("game_id"), **columns)


def unpacked(rows: Columns, game: int) -> Columns:
    """Raw columns of packed boards: each is a game of its own, its label the column with most visits."""
    current, mask = rules.from_keys(rows["key"])
    visits = rows["visits"].astype(np.int32)
    return {
        "game_id": np.arange(game, game + len(mask)),
        "ply": np.bitwise_count(mask).astype(np.int8),
        "current": current,
        "mask": mask,
        "label": majority(visits, visits),
        "visits": visits,
        "value": rows["value"].astype(np.float32) / VALUE_STEPS,
        "outcome": rows["outcome"],
    }

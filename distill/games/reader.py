"""Reads finished games: a complete folder, its verified shards, the split of its games, its raw rows.

In: complete folders of `generate`, of `selfplay` or of packed boards, each one run. Out: columns as NumPy arrays, a
shard at a time. Nothing is changed on disk. Packed boards are read like games of one row each.

Every shard is compared with the SHA-256 in the record by `read`, in the bytes whose rows it returns; commands that
write compare all of them by `verify` first. This covers the footer as well as the pages and notices a shard of another
run, which page checksums do not; it takes about a second per gigabyte.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from distill.common import DataError, cli, run_folder
from distill.common.arrays import Arrays
from distill.game import rules
from distill.game.mixing import GOLDEN, splitmix64
from distill.games import schema
from distill.games.schema import VALIDATION, VALUE_STEPS, Shard
from distill.mcts.labeller import majority

KINDS = (schema.GAMES, schema.PACKED_BOARDS)
"""The kinds of folders that can be read as games."""

RAW = ("game_id", "current", "mask", "label", "ply", "outcome")
"""The columns of RawRows."""

Columns = dict[str, NDArray[Any]]
"""Raw columns by name, each (B,) in the type of `schema.ROW`, visits (B, 7), votes (B, K)."""


@dataclass(frozen=True, kw_only=True)
class GamesRun:
    """A complete folder of games or of packed boards, as its record has it.

    Attributes:
      identity: what its games depend on.
      name: hash of the identity; the split of the games follows from it.
      inputs: what packed boards were made from.
    """

    folder: Path
    identity: Mapping[str, Any]
    name: str
    shards: Sequence[Shard]
    inputs: Sequence[Mapping[str, Any]] = ()

    @property
    def sources(self) -> frozenset[str]:
        """Names of the runs whose games it holds; packed boards may be of many."""
        return frozenset(name for source in self.inputs for name in source["sources"]) or frozenset({self.name})

    @property
    def games(self) -> int:
        return sum(shard.games for shard in self.shards)

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)


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


def open_run(folder: Path) -> GamesRun:
    """The run in a folder, from its record alone; the shards are not opened.

    Raises DataError for a folder without a record, not of games, or not finished.
    """
    if not (folder / run_folder.RECORD).is_file():
        where = "--preset smoke" if folder == cli.SMOKE_DATA / "games" else f"--out {shlex.quote(str(folder))}"
        raise DataError(f"{folder}: no games here; make them with: python -m distill.generate {where}")
    return run_of(folder, run_folder.finished(folder, *KINDS))


def run_of(place: object, record: run_folder.Record) -> GamesRun:
    """The run that the record of a finished one describes. Raises DataError where its shards are not described."""
    folder, result = Path(str(place)), record.result or {}
    try:
        shards = [Shard(folder=folder, **shard) for shard in result["shards"]]
    except ValidationError as error:
        problem = error.errors()[0]
        what = f"not the result of a run of games ({problem['loc'][0]}: {problem['msg']})"
        raise DataError(f"{folder / run_folder.RECORD}: {what}") from error
    inputs = result.get("inputs", ())
    return GamesRun(folder=folder, identity=record.identity, name=result["run"], shards=shards, inputs=inputs)


def open_runs(folders: Sequence[Path]) -> list[GamesRun]:
    """The runs in several folders, ordered by name. Raises DataError where two folders hold games of the same run."""
    runs = sorted((open_run(Path(folder)) for folder in folders), key=lambda run: run.name)
    for first, second in itertools.combinations(runs, 2):
        if first.sources & second.sources or first.name == second.name:
            raise DataError(f"{second.folder}: games of the same run as in {first.folder}, which would count twice")
    return runs


def verify(runs: Iterable[GamesRun], advice: str | None = None) -> None:
    """Raise DataError unless every shard is the file that the record describes.

    `advice` says what a user can do; None: make the games again.
    """
    for run in runs:
        for shard in run.shards:
            shard.content(advice)


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


def read(shard: Shard, columns: Sequence[str]) -> Columns:
    """Some columns of a shard, in its order; packed boards lack votes, moves and simulations.

    Raises DataError for a file that the record does not describe.
    """
    rows = columns_of(shard.path, *schema.read_table(shard.path, None, shard.content()))
    return {name: rows[name] for name in columns}


def columns_of(path: Path | str, table: pa.Table, metadata: Mapping[str, Any]) -> Columns:
    """The columns of a table of raw rows or of packed boards. Raises DataError for missing values."""
    rows = schema.arrays(path, table)
    return unpacked(rows, metadata["first_game"]) if metadata.get("kind") == schema.PACKED else rows


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
            in_split = in_validation(run.name, rows["game_id"], validation_fraction) == (split == VALIDATION)
            parts.append(rows if split is None else chosen(rows, in_split))
    return raw_rows_of(parts)


def raw_rows_of(parts: Sequence[Columns]) -> RawRows:
    """Several tables as one."""
    columns = joined([{name: part[name] for name in RAW} for part in parts])
    return RawRows(game=columns.pop("game_id"), **columns)


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of several tables, all of them. Raises DataError where there is no table."""
    if not parts:
        raise DataError("no games here; generate more games")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def chosen(rows: Columns, which: NDArray[Any]) -> Columns:
    """Some rows of a table: bool (B,) or their indices."""
    return {name: values[which] for name, values in rows.items()}


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

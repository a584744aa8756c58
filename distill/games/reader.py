"""Reading finished games: a complete folder, its verified shards, the split of its games, its raw rows.

In: folders that `generate` finished, each one run (`manifest.json` and its shards). Out: columns as
NumPy arrays, a shard or a bounded number of rows at a time. Nothing is changed on disk. Packed boards, which
`prepare --packed` writes, are read like games of one row each.

`verify` checks every shard against the SHA-256 in the manifest before a row is used. That one pass
covers the footer as well as the pages and notices a shard that came from another run, which page
checksums do not, and it costs about a second per gigabyte. A file that was changed after its manifest was written is
refused, and the message names the command that accepts changed labels as a run of their own.
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill.common import DataError, cli, file_hash, file_inside, first_line, folders, provenance, read_object
from distill.game import rules
from distill.game.mixing import GOLDEN, mix
from distill.games import schema
from distill.games.majority import majority
from distill.games.schema import PACKED_ROW, ROW, TRAINING, VALIDATION, VALUE_STEPS

BATCH_ROWS = 1 << 17
"""Rows decoded at a time: about 10 MB of arrays."""

RAW = ("game_id", "current", "mask", "label", "ply")
"""The columns of RawRows."""

Columns = dict[str, NDArray[Any]]
"""Raw columns by name, each (B,) in the type of `schema.ROW`, visits (B, 7)."""


@dataclass(frozen=True, kw_only=True)
class ShardFile(schema.Shard):
    """A shard and the folder it lies in."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file. Raises DataError for a link that leads out of the folder."""
        return file_inside(self.folder, self.name)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete folder of games. `name` is the hash of the run's identity: settings, seed and search version."""

    folder: Path
    name: str
    games: int
    rows: int
    shards: tuple[ShardFile, ...]


@dataclass(frozen=True, kw_only=True)
class RawRows(schema.Arrays):
    """Labelled positions in the orientation they were played in, one entry a row.

    game: int64 (N,), its number in its run.  current, mask: uint64 (N,).  label: int8 (N,), the majority vote.
    ply: int8 (N,), stones on the board.
    """

    game: NDArray[np.int64]
    current: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    label: NDArray[np.int8]
    ply: NDArray[np.int8]


def remake_command(folder: Path) -> str | None:
    """The command that makes a folder's games again where they are damaged or missing; None where no command does.

    The folder's own settings say who played. A folder that tells of nothing gets games of the teacher, unless it
    belongs to a self-play run: the networks that played there are not kept.
    """
    there, place = shlex.quote(str(folder)), folder.resolve()
    kind = folders.kind_of(folder)
    if kind is None:
        if place.parent.parent.name == "iterations" and folders.kind_of(place.parents[2]) == folders.SELFPLAY:
            return None
        smoke = folder == cli.SMOKE_DATA / "games"
        return f"python -m distill.generate {'--preset smoke' if smoke else f'--out {there}'}"
    command = {folders.GAMES: "generate", folders.NETWORK_GAMES: "selfplay"}.get(kind)
    config, identity = folder / "config.json", read_object(folder / schema.MANIFEST).get("identity", ())
    if command is None or not config.is_file() or schema.RELABELLED in identity:
        return None
    return f"python -m distill.{command} --config {shlex.quote(str(config))} --out {there}"


def open_run(folder: Path, otherwise: str = "") -> Run:
    """The run in a folder, from its manifest alone; the shards are not opened.

    Raises DataError for a folder that is missing, empty, foreign or not finished. `otherwise` is what a user can do
    beside making games, where there are none.
    """
    lacks = "holds no games" if folder.is_dir() else "no such folder"
    if not (folder / schema.MANIFEST).exists() and not any(folder.glob("shard-*.parquet")):
        if command := remake_command(folder):
            raise DataError(f"{folder}: {lacks}; make games with: {command}{otherwise}")
        there = folders.noun_of(folders.kind_of(folder))
        told = f"holds {there}, no games" if folder.is_dir() else f"{lacks}; games of a self-play run cannot be remade"
        raise DataError(f"{folder}: {told}{otherwise}")
    manifest = schema.read_manifest(folder)
    try:
        run, games, rows = str(manifest["run"]), int(manifest["games"]), int(manifest["rows"])
        bytes.fromhex(run[:16])
        if min(games, rows) < 0:
            raise ValueError(f"{games} games and {rows} rows")
        entries = (schema.shard_of(entry) for entry in manifest["shards"])
        shards = tuple(ShardFile(folder=folder, **dataclasses.asdict(entry)) for entry in entries)
        return Run(folder=folder, name=run, games=games, rows=rows, shards=shards)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / schema.MANIFEST}: not the manifest of a run of games ({error})") from None


def open_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in several folders, ordered by name. Raises DataError where two folders hold the same run.

    Its callers have a flag --data: where games are missing and `games-20000` is there, the error names that.
    """
    otherwise = ""
    if place := provenance.shipped("data/reference/games-20000"):
        here = Path.cwd()
        place = place.relative_to(here) if place.is_relative_to(here) else place
        otherwise = f", or take the shipped ones: --data {shlex.quote(str(place))}"
    runs = sorted((open_run(Path(folder), otherwise) for folder in folders), key=lambda run: run.name)
    for first, second in itertools.pairwise(runs):
        if first.name == second.name:
            raise DataError(f"{second.folder}: the same run as {first.folder}, so its games would count twice")
    return runs


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
    return (mix(state) >> np.uint64(11)).astype(np.float64) / 2.0**53 < fraction


def verify(runs: Iterable[Run], advice: str | None = None) -> None:
    """Raise DataError unless every shard is the file its manifest describes, in this schema.

    `advice` says what a user can do about it; None: make the games again, or accept them as they are now.
    """
    for run in runs:
        for shard in run.shards:
            path = shard.path
            if not path.is_file():
                raise DataError(f"{path}: missing, though the manifest names it; {advice or _restore(run.folder)}")
            if file_hash(path) != shard.sha256:
                _refuse_changed(path, run.folder, advice)
            with schema.opened(path) as file:
                metadata = schema.metadata_of(path, file)
                schema.check_schema(path, metadata, file, schema.row_of(metadata))


def _refuse_changed(path: Path, folder: Path, advice: str | None) -> NoReturn:
    """Raise DataError for a shard that is not its manifest's; only one that can be read can be accepted as it is."""
    try:
        with schema.opened(path):
            why, otherwise = "damaged or changed", changed_advice(folder, remake_command(folder))
    except DataError as error:
        why, otherwise = str(error).removeprefix(f"{path}: "), _restore(folder)
    raise DataError(f"{path}: not the file the manifest describes ({why}); {advice or otherwise}")


def verify_contents(runs: Iterable[Run]) -> None:
    """Raise DataError unless the rows of every verified shard have the content hash in the manifest.

    Prepared tables are named after these hashes. They take longer to check than files, so this is done once a table.
    """
    for run in runs:
        for shard in run.shards:
            row = schema.row_of(schema.read_metadata(shard.path))
            if schema.content_hash(schema.read_table(shard.path, row)[0]) != shard.content_hash:
                raise DataError(
                    f"{shard.path}: other rows than the content_hash in the manifest tells; {accept_advice(run.folder)}"
                )


def accept_advice(folder: object) -> str:
    """What to do about games whose labels were changed on purpose."""
    command = f"python -m distill.validate {shlex.quote(str(folder))} --accept-labels"
    return f"to train on changed labels, as a new run: {command}"


def changed_advice(folder: object, command: str | None) -> str:
    """What to do about shards that differ from the manifest, with the command that makes games again, if there is one.

    `generate` and `selfplay` do not overwrite changed labels, so the file must go first.
    """
    otherwise = f"delete the file, then: {command}" if command else "restore the file from a copy"
    return f"{accept_advice(folder)}; to discard changed labels: {otherwise}"


def _restore(folder: Path) -> str:
    command = remake_command(folder)
    return f"to make it again: {command}" if command else "restore it from a copy"


def read(shard: ShardFile, columns: Sequence[str]) -> Iterator[Columns]:
    """Some columns of a verified shard in its order, at most BATCH_ROWS rows at a time.

    Raises DataError for values no run can hold, and where packed boards lack a column.
    """
    path, game = shard.path, shard.first_game
    with pq.ParquetFile(path) as file:
        packed = schema.row_of(schema.metadata_of(path, file)) is PACKED_ROW
        expected = PACKED_ROW if packed else pa.schema([ROW.field(name) for name in columns])
        for batch in file.iter_batches(BATCH_ROWS, columns=expected.names):
            try:
                table = pa.Table.from_batches([batch]).select(expected.names).cast(expected)
                rows = {name: _array(table[name]) for name in expected.names}
            except pa.ArrowException as error:
                raise DataError(f"{path}: {first_line(error)}") from None
            if packed:
                rows = _unpacked(rows, game)
                game += len(batch)
                if lacking := [name for name in columns if name not in rows]:
                    raise DataError(f"{path}: packed boards, which have no {lacking[0]}; games are needed here")
            yield _checked(shard, {name: rows[name] for name in columns})


def raw_rows(folders: Sequence[Path], split: int | None, validation_fraction: float) -> RawRows:
    """All raw rows of the training games or of the validation games, in memory.

    Args:
      folders: finished games; several are read in the order of their runs' names.
      split: TRAINING, VALIDATION, or None for every row, as for the shipped reference set.
      validation_fraction: the share of games in validation, as given to `prepare`.
    """
    runs = open_runs(folders)
    verify(runs)
    parts: list[Columns] = []
    for run in runs:
        for shard in run.shards:
            for rows in read(shard, RAW):
                if split is not None:
                    chosen = in_validation(run.name, rows["game_id"], validation_fraction) == (split == VALIDATION)
                    rows = {name: values[chosen] for name, values in rows.items()}
                parts.append(rows)
    return _raw(parts)


def rows_at(run: Run, places: NDArray[np.int64]) -> RawRows:
    """The rows of a verified run at these places, counted through its shards, in this order; no others are kept.

    Raises DataError where the shards have not as many rows as the manifest says.
    """
    order = np.argsort(places)
    wanted, first = places[order], 0
    parts: list[Columns] = []
    for shard in run.shards:
        for rows in read(shard, RAW):
            last = first + len(rows["ply"])
            here = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, last)] - first
            parts.append({name: values[here] for name, values in rows.items()})
            first = last
    if first != run.rows:
        raise DataError(f"{run.folder}: holds {first:,} rows, but {run.rows:,} by its manifest; generate it again")
    return _raw(parts)[np.argsort(order)]


def _raw(parts: Sequence[Columns]) -> RawRows:
    columns = {name: _concatenate(parts, name) for name in RAW}
    return RawRows(game=columns.pop("game_id"), **columns)


def count_games(run: Run, validation_fraction: float) -> dict[int, int]:
    """Games of a run by split."""
    validation = sum(
        int(in_validation(run.name, np.arange(s.first_game, s.first_game + s.games), validation_fraction).sum())
        for s in run.shards
    )
    return {TRAINING: run.games - validation, VALIDATION: validation}


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    if column.null_count:
        raise pa.ArrowInvalid("a value is missing (null)")
    if pa.types.is_fixed_size_list(column.type):
        return schema.matrix(column, column.type.list_size)
    values: NDArray[Any] = column.to_numpy()
    return values


def _unpacked(rows: Columns, game: int) -> Columns:
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


def _checked(shard: ShardFile, rows: Columns) -> Columns:
    """The rows, once every value that is used as an index or summed is known to be in its range."""

    def require(fine: NDArray[np.bool_], what: str) -> None:
        if not fine.all():
            raise DataError(f"{shard.path}: row with {what}; generate it again")

    if "game_id" in rows:
        offset = rows["game_id"] - shard.first_game
        require((offset >= 0) & (offset < shard.games), "a game the manifest puts into another shard")
    if "mask" in rows:
        require(rows["mask"] & ~np.uint64(rules.FULL_BOARD) == 0, "stones outside the board")
    if "label" in rows:
        require((rows["label"] >= 0) & (rows["label"] < 7), "a label that is no column")
    if "value" in rows:
        require(np.abs(rows["value"]) <= 1, "a value outside [-1, 1]")
    return rows


def _concatenate(parts: Sequence[Mapping[str, NDArray[Any]]], name: str) -> NDArray[Any]:
    empty = np.empty(0, ROW.field(name).type.to_pandas_dtype())
    return np.concatenate([empty, *(part[name] for part in parts)])

"""A whole run held against what it should be: its manifest against its files, its files against the truth of rows.

In: the place of a run of games or of packed boards. Out: every violation, with file, row group and game. Nothing is
changed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from distill.common import DataError, first_line, folders
from distill.games import checks, schema
from distill.games.schema import Shard
from distill.games.storage import Folder, Storage

KINDS = (folders.GAMES.name, folders.NETWORK_GAMES.name, folders.PACKED_BOARDS.name)
"""What a manifest or a shard names as its kind: games, or packed boards."""
CHANGED = "not the file the manifest describes (SHA-256)"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One thing that is wrong. row_group and game are None where it concerns more than one."""

    file: str
    what: str
    row_group: int | None = None
    game: int | None = None

    def __str__(self) -> str:
        where = [self.file]
        where += [f"row group {self.row_group}"] if self.row_group is not None else []
        where += [f"game {self.game}"] if self.game is not None else []
        return f"{', '.join(where)}: {self.what}"


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One file of a run: rows looked at, what is wrong, its metadata, and what a manifest would say of it.

    metadata and shard are None where the file is too damaged to say. last_key is that of the last of packed boards.
    """

    name: str
    rows: int
    violations: list[Violation]
    metadata: dict[str, Any] | None = None
    shard: Shard | None = None
    last_key: int | None = None


def is_shard(name: str) -> bool:
    """Whether a file in a run's place is one of its shards, by its name."""
    return name.startswith("shard-") and name.endswith(".parquet")


def inspect(place: Storage) -> Iterator[Inspected]:
    """The manifest, then each shard that it names or that lies there. Raises DataError where there is no run at all."""
    names = place.names()
    require_run(place, names)
    manifest, shards, violations = _manifest(place, names)
    violations += [
        Violation(file=name, what="not in the manifest") for name in names if is_shard(name) and name not in shards
    ] * bool(manifest)
    yield Inspected(name=schema.MANIFEST, rows=0, violations=violations)
    last_key = None
    for name in sorted({*shards, *filter(is_shard, names)}):
        found = inspect_shard(place, name, shards.get(name), manifest.get("run"), last_key)
        last_key = found.last_key
        yield found


def require_run(place: Storage, names: list[str]) -> None:
    """Raise DataError unless a place with these files holds games or packed boards, finished or not."""
    shards = list(filter(is_shard, names))
    if isinstance(place, Folder):
        folders.refuse_file(place.path)
        if not place.path.exists():
            raise DataError(f"{place}: no such folder")
    try:
        kind = schema.parse_manifest("", place.read(schema.MANIFEST)).get("kind")
    except (DataError, FileNotFoundError):
        kind = None
    if kind in KINDS or (kind is None and any(metadata_in(place, name) for name in shards)):
        return
    if shards and kind is None:
        there = "no shard that distill wrote"
    else:
        there = folders.noun_of(folders.kind_in(names, place.read)) if names else "nothing"
    raise DataError(f"{place}: holds {there}; validate takes games and packed boards")


def _manifest(place: Storage, names: list[str]) -> tuple[dict[str, Any], dict[str, Shard], list[Violation]]:
    """The manifest, its shards by name, and what is wrong with it; empty where it cannot be used."""

    def wrong(what: str) -> Violation:
        return Violation(file=schema.MANIFEST, what=what)

    if schema.MANIFEST not in names:
        return {}, {}, [wrong("missing, so the run is not finished")]
    try:
        manifest = schema.parse_manifest(f"{place}/{schema.MANIFEST}", place.read(schema.MANIFEST))
        shards = [schema.shard_of(entry) for entry in manifest["shards"]]
        totals = {key: int(manifest[key]) for key in ("games", "rows")}
    except DataError as error:
        return {}, {}, [wrong(_without_path(error))]
    except (KeyError, TypeError, ValueError) as error:
        return {}, {}, [wrong(f"not the manifest of a run of games ({error})")]
    violations = []
    for key, total in totals.items():
        if total != (found := sum(getattr(shard, key) for shard in shards)):
            violations.append(wrong(f"{total:,} {key}, but its shards have {found:,}"))
    by_game = sorted(shards, key=lambda shard: shard.first_game)
    if by_game and by_game[0].first_game:
        violations.append(wrong(f"games 0 to {by_game[0].first_game - 1} are in no shard"))
    for one, other in itertools.pairwise(by_game):
        end = one.first_game + one.games
        if other.first_game < end:
            what = f"games {other.first_game} to {end - 1} are in {one.name} and in {other.name}"
            violations.append(wrong(what))
        elif other.first_game > end:
            violations.append(wrong(f"games {end} to {other.first_game - 1} are in no shard"))
    if len({shard.name for shard in shards}) < len(shards):
        violations.append(wrong("names a shard twice"))
    return manifest, {shard.name: shard for shard in shards}, violations


def inspect_shard(
    place: Storage, name: str, expected: Shard | None = None, run: str | None = None, after: int | None = None
) -> Inspected:
    """One shard: readable, of this schema, every page whole, every row true, and as the manifest says.

    Args:
      expected: the manifest's entry; None where there is none.
      run: the name of the run in the manifest; None where there is none.
      after: the last key of the shard before, where both hold packed boards.
    """
    violations: list[Violation] = []

    def wrong(what: str, row_group: int | None = None, game: int | None = None) -> None:
        violations.append(Violation(file=name, what=what, row_group=row_group, game=game))

    label = f"{place}/{name}"
    try:
        content = place.read(name)
    except FileNotFoundError:
        wrong("missing, though the manifest names it")
        return Inspected(name=name, rows=0, violations=violations)
    except DataError as error:
        wrong(_without_path(error))
        return Inspected(name=name, rows=0, violations=violations)
    sha256 = hashlib.sha256(content).hexdigest()
    if expected and sha256 != expected.sha256:
        wrong(CHANGED)
    try:
        with schema.opened(label, content) as file:
            metadata = schema.metadata_of(label, file)
            row = schema.row_of(metadata)
            schema.check_schema(label, metadata, file, row)
            groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
            tables = []
            for index in range(len(groups)):
                try:
                    found = file.read_row_group(index, use_threads=False)
                    tables.append(found.select(row.names).cast(row))
                except (OSError, pa.ArrowException) as error:
                    wrong(
                        f"damaged in {', '.join(_damaged(file, index, row)) or 'its pages'} ({first_line(error)})",
                        index,
                    )
        law = checks.law_of(metadata)
    except DataError as error:
        wrong(_without_path(error))
        return Inspected(name=name, rows=0, violations=violations)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        wrong(f"its metadata are not those of a shard of games ({type(error).__name__}: {error})")
        return Inspected(name=name, rows=0, violations=violations)
    if run is not None and metadata.get("run") != run:
        wrong(f"of the run {metadata.get('run')}, the manifest of {run}")
    if len(tables) < len(groups):  # what is left says nothing about whole games
        return Inspected(name=name, rows=sum(map(len, tables)), violations=violations, metadata=metadata)
    table = pa.concat_tables(tables) if tables else row.empty_table()
    bounds = np.cumsum(groups)
    packed = row is schema.PACKED_ROW
    for fault in checks.packed_faults(table, law, after) if packed else checks.faults(table, law):
        group = None if fault.place is None else int(np.searchsorted(bounds, fault.place, side="right"))
        wrong(fault.what, group, fault.game)
    shard = describe(name, table, metadata, sha256)
    if expected:
        for key in ("first_game", "games", "rows", "content_hash"):
            ours, theirs = getattr(shard, key), getattr(expected, key)
            if ours != theirs:
                wrong(f"{key} {ours}, but {theirs} in the manifest")
    last_key = table["key"][-1].as_py() if packed and len(table) else None
    return Inspected(
        name=name, rows=len(table), violations=violations, metadata=metadata, shard=shard, last_key=last_key
    )


def metadata_in(place: Storage, name: str) -> dict[str, Any] | None:
    """What a shard says of itself and its run, its rows unread; None where the file is too damaged to say."""
    label = f"{place}/{name}"
    try:
        with schema.opened(label, place.read(name)) as file:
            metadata = schema.metadata_of(label, file)
    except (DataError, FileNotFoundError):
        return None
    return metadata | ({} if isinstance(metadata.get("identity"), dict) else {"identity": {}})


def describe(name: str, table: pa.Table, metadata: Mapping[str, Any], sha256: str) -> Shard:
    """A shard's entry for the manifest; packed boards tell no simulations."""
    simulations = table["simulations"].combine_chunks() if "simulations" in table.column_names else None
    return Shard(
        name=name,
        first_game=metadata["first_game"],
        games=metadata["games"],
        rows=len(table),
        simulations=0 if simulations is None else int(schema.numbers(simulations).sum(dtype=np.int64)),
        sha256=sha256,
        content_hash=schema.content_hash(table),
    )


def _damaged(file: pq.ParquetFile, group: int, row: pa.Schema) -> Iterator[str]:
    """The columns of a row group that cannot be read."""
    for name in row.names:
        try:
            file.read_row_group(group, columns=[name], use_threads=False)
        except (OSError, pa.ArrowException):
            yield name


def _without_path(error: BaseException) -> str:
    """A DataError's message after the name of the file, which the violation names itself."""
    return str(error).partition(": ")[2] or str(error)

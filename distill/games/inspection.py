"""Checks of a whole run: the manifest against the files, and every row of every file.

In: the storage of a run of games or of packed boards. Out: every violation, with its file and game. Nothing is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from distill.common import DataError, folders
from distill.games import checks, schema
from distill.games.schema import Shard
from distill.games.storage import Folder, Storage

KINDS = (folders.GAMES.name, folders.NETWORK_GAMES.name, folders.PACKED_BOARDS.name)
"""The kinds of folders and shards that can be checked."""
CHANGED = "not the file the manifest describes (SHA-256)"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One thing that is wrong with a file, or with one of its games."""

    file: str
    what: str
    game: int | None = None

    def __str__(self) -> str:
        return f"{self.file}{'' if self.game is None else f', game {self.game}'}: {self.what}"


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One file of a run: what is wrong with it, and what it holds.

    Attributes:
      metadata, shard: its metadata and its entry for a manifest; None for a file that cannot be read.
      last_key: the last key of packed boards.
    """

    name: str
    violations: list[Violation]
    rows: int = 0
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    shard: Shard | None = None
    last_key: int | None = None


def is_shard(name: str) -> bool:
    """Whether a file is a shard, by its name."""
    return name.startswith("shard-") and name.endswith(".parquet")


def inspect(storage: Storage) -> Iterator[Inspected]:
    """The manifest, then each shard that it names or that exists. Raises DataError where there is no run at all."""
    names = storage.names()
    require_run(storage, names)
    manifest, shards, violations = _manifest(storage, names)
    if manifest:
        unlisted = (name for name in filter(is_shard, names) if name not in shards)
        violations += [Violation(file=name, what="not in the manifest") for name in unlisted]
    yield Inspected(name=schema.MANIFEST, violations=violations)
    last_key = None
    for name in sorted({*shards, *filter(is_shard, names)}):
        found = inspect_shard(storage, name, shards.get(name), manifest.get("run"), last_key)
        last_key = found.last_key
        yield found


def require_run(storage: Storage, names: list[str]) -> None:
    """Raise DataError unless these files are a run of games or packed boards, finished or not."""
    if isinstance(storage, Folder):
        folders.refuse_file(storage.path)
        if not storage.path.exists():
            raise DataError(f"{storage}: no such folder")
    try:
        kind = schema.parse_manifest("", storage.read(schema.MANIFEST)).get("kind")
    except (DataError, FileNotFoundError):
        kind = None
    shards = list(filter(is_shard, names))
    if kind in KINDS or (kind is None and any(metadata_in(storage, name) for name in shards)):
        return
    holds = folders.noun_of(folders.kind_in(names, storage.read)) if names else "nothing"
    if shards and kind is None:
        holds = "no shard that distill wrote"
    raise DataError(f"{storage}: holds {holds}; validate takes games and packed boards")


def _manifest(storage: Storage, names: list[str]) -> tuple[dict[str, Any], dict[str, Shard], list[Violation]]:
    """The manifest, its shards by name, and what is wrong with it; empty where it cannot be used."""
    try:
        if schema.MANIFEST not in names:
            raise DataError("missing, so the run is not finished")
        manifest = schema.parse_manifest(schema.MANIFEST, storage.read(schema.MANIFEST))
        shards = [schema.shard_of(entry) for entry in manifest["shards"]]
        totals = {key: int(manifest[key]) for key in ("games", "rows")}
    except DataError as error:
        return {}, {}, [Violation(file=schema.MANIFEST, what=_without_name(error))]
    except (KeyError, TypeError, ValueError) as error:
        return {}, {}, [Violation(file=schema.MANIFEST, what=f"not the manifest of a run of games ({error})")]
    wrong = []
    for key, total in totals.items():
        if total != (found := sum(getattr(shard, key) for shard in shards)):
            wrong.append(f"{total:,} {key}, but its shards have {found:,}")
    end, before = 0, ""
    for shard in sorted(shards, key=lambda shard: shard.first_game):
        if shard.first_game > end:
            wrong.append(f"games {end} to {shard.first_game - 1} are in no shard")
        elif shard.first_game < end:
            wrong.append(f"games {shard.first_game} to {end - 1} are in {before} and in {shard.name}")
        end, before = shard.first_game + shard.games, shard.name
    if len({shard.name for shard in shards}) < len(shards):
        wrong.append("names a shard twice")
    violations = [Violation(file=schema.MANIFEST, what=what) for what in wrong]
    return manifest, {shard.name: shard for shard in shards}, violations


def inspect_shard(
    storage: Storage, name: str, listed: Shard | None = None, run: str | None = None, after: int | None = None
) -> Inspected:
    """One shard: every page whole, every row true, and as the manifest says.

    Args:
      listed: its entry in the manifest, if any.
      run: the name of the run in the manifest, if any.
      after: the last key of the shard before, for packed boards.
    """
    wrong: list[tuple[int | None, str]] = []
    metadata = shard = last_key = None
    rows = 0
    try:
        content = storage.read(name)
        sha256 = hashlib.sha256(content).hexdigest()
        if listed and sha256 != listed.sha256:
            wrong.append((None, CHANGED))
        table, metadata = schema.read_table(f"{storage}/{name}", None, content)
        expected = checks.expected_of(metadata)
        rows, packed = len(table), metadata.get("kind") == schema.PACKED
        if run is not None and metadata.get("run") != run:
            wrong.append((None, f"of the run {metadata.get('run')}, the manifest of {run}"))
        wrong += checks.packed_faults(table, expected, after) if packed else checks.faults(table, expected)
        last_key = table["key"][-1].as_py() if packed and rows else None
        shard = describe(name, table, metadata, sha256)
        for key in ("first_game", "games", "rows", "content_hash") if listed else ():
            ours, theirs = getattr(shard, key), getattr(listed, key)
            if ours != theirs:
                wrong.append((None, f"{key} {ours}, but {theirs} in the manifest"))
    except FileNotFoundError:
        wrong.append((None, "missing, though the manifest names it"))
    except DataError as error:
        wrong.append((None, _without_name(error)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        wrong.append((None, f"its metadata are not those of a shard of games ({type(error).__name__}: {error})"))
    violations = [Violation(file=name, what=what, game=game) for game, what in wrong]
    return Inspected(name=name, violations=violations, rows=rows, metadata=metadata, shard=shard, last_key=last_key)


def metadata_in(storage: Storage, name: str) -> dict[str, Any] | None:
    """What a shard says about itself and its run, without its rows; None for a file that is too damaged to say."""
    label = f"{storage}/{name}"
    try:
        with schema.opened(label, storage.read(name)) as file:
            metadata = schema.metadata_of(label, file)
    except (DataError, FileNotFoundError):
        return None
    return metadata | ({} if isinstance(metadata.get("identity"), dict) else {"identity": {}})


def describe(name: str, table: pa.Table, metadata: Mapping[str, Any], sha256: str) -> Shard:
    """A shard's entry for the manifest; packed boards have no simulations."""
    simulations = 0
    if "simulations" in table.column_names:
        simulations = int(schema.numbers(table["simulations"].combine_chunks()).sum(dtype=np.int64))
    return Shard(
        name=name,
        first_game=metadata["first_game"],
        games=metadata["games"],
        rows=len(table),
        simulations=simulations,
        sha256=sha256,
        content_hash=schema.content_hash(table),
    )


def _without_name(error: BaseException) -> str:
    """A DataError's message without the file, which the violation names itself."""
    return str(error).partition(": ")[2] or str(error)

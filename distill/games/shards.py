"""Shards of a run: make one, find which are missing, delete them, write the manifest.

`make_shard(settings, index, ...)` plays games [index * S, (index + 1) * S) and writes one Parquet file; the same
settings and index give the same bytes anywhere. A run is that function mapped over its indices (`executors.py`): what
is missing or damaged is made, what is valid is kept, and the manifest is written last.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from distill.common import DataError, cli, folders, json_bytes, provenance
from distill.common.plugins import Plugin
from distill.games import checks, inspection, schema
from distill.games.checkpoints import CHECKPOINTS, Checkpoint
from distill.games.inspection import is_shard
from distill.games.playing import play_games
from distill.games.runs import RunSettings, identity, plugin_of, run_hash
from distill.games.schema import Shard
from distill.games.storage import Folder, Storage, storage_of

LIBRARIES = ("numba", "numpy", "pyarrow")
"""Libraries whose versions decide the bytes of a shard."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One shard to make: its index, and how many of its games."""

    index: int
    games: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The shards of a run that are done and those that are to be made; why existing files are rebuilt."""

    done: list[Shard]
    todo: list[Task]
    damaged: list[str]


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.parquet"


def shard_count(games: int, shard_games: int) -> int:
    """Shards of a run of so many games."""
    return -(-games // shard_games)


def tasks(settings: Any, games: int, indices: Iterable[int] | None = None) -> list[Task]:
    """The shards of a run of so many games, or those of them with these indices."""
    size = settings.shard_games
    ours = range(shard_count(games, size)) if indices is None else indices
    return [Task(index=index, games=min(size, games - index * size)) for index in ours]


# Making shards --------------------------------------------------------------------------------------------------------


def make_shard(
    settings: RunSettings, index: int, count: int, out: Path | Storage, plugin: Plugin | None = None
) -> Shard:
    """Play the first `count` games of a shard and write the shard, whole or not at all.

    Args:
      out: in a folder, games that have ended are kept in a checkpoint, and games found there are not played again.
      plugin: the user's labeller as described by the process that started the run; None: look it up here.
    """
    plugin, run = plugin or plugin_of(settings), identity(settings)
    kept = next(iter(checkpoints_of(settings, [Task(index=index, games=count)], out, run)), None)
    first = index * settings.shard_games
    table = play_games(settings, first, count, kept, plugin.load() if plugin else None)
    shard = write(table, run, index, first, count, out)
    if kept:
        kept.delete()
    return shard


def checkpoints_of(
    settings: Any,
    tasks: Iterable[Task],
    out: Path | Storage,
    run: Mapping[str, Any] | None = None,
    libraries: Sequence[str] = LIBRARIES,
) -> list[Checkpoint]:
    """The checkpoints of shards to be made; none on an object store.

    `run` is the identity of the run; `libraries` are those whose versions decide its bytes.
    """
    storage, size = storage_of(out), settings.shard_games
    if not isinstance(storage, Folder):
        return []
    about = {"identity": run or identity(settings), "versions": provenance.versions(*libraries)}
    games = {task.index: range(task.index * size, task.index * size + task.games) for task in tasks}
    return [Checkpoint(folder=storage.path, index=index, games=games[index], about=about) for index in games]


def write(
    table: pa.Table,
    run: Mapping[str, Any],
    index: int,
    first_game: int,
    games: int,
    out: Path | Storage,
    libraries: Sequence[str] = LIBRARIES,
) -> Shard:
    """Write the rows of a shard of the run with this identity; returns its entry for the manifest."""
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "games",
        "run": run_hash(run),
        "identity": run,
        "index": index,
        "first_game": first_game,
        "games": games,
        "versions": provenance.versions(*libraries),
    }
    content = schema.table_bytes(table, metadata)
    storage_of(out).write(shard_name(index), content)
    return inspection.describe(shard_name(index), table, metadata, hashlib.sha256(content).hexdigest())


def declare(run: Mapping[str, Any], shards: list[Shard], out: Path | Storage) -> dict[str, Any]:
    """Write and return the manifest of the run with this identity."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    manifest = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": (folders.NETWORK_GAMES if "network" in run else folders.GAMES).name,
        "run": run_hash(run),
        "identity": run,
        "commit": provenance.commit(),
        "versions": provenance.versions(*LIBRARIES),
        **{key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")},
        "shards": [dataclasses.asdict(shard) for shard in ordered],
    }
    storage = storage_of(out)
    storage.write(schema.MANIFEST, json_bytes(manifest))
    _delete_checkpoints(storage)
    return manifest


# What exists already --------------------------------------------------------------------------------------------------


def plan(
    settings: Any,
    games: int,
    out: Path | Storage,
    indices: Iterable[int] | None = None,
    run: Mapping[str, Any] | None = None,
) -> Plan:
    """Which shards of a run are done; each is read with its checksums, and every row is checked.

    Args:
      indices: the shards to look at; None: all of the run.
      run: the identity of a run that a network plays.

    Raises DataError for a run with other settings (naming the differences), for other files, and for a shard whose rows
    were changed.
    """
    run, storage = run or identity(settings), storage_of(out)
    names = storage.names()
    visible = folders.visible(names)
    if visible and not any(name in (schema.MANIFEST, "config.json") or is_shard(name) for name in visible):
        raise DataError(f"{storage}: holds files that are not games ({visible[0]}, ...); choose another --out")
    listed = _listed(storage) if schema.MANIFEST in names else {}
    plan = Plan(done=[], todo=[], damaged=[])
    ours = tasks(settings, games, indices)
    for task in ours:
        name = shard_name(task.index)
        if name in names:
            found = inspection.inspect_shard(storage, name, listed.get(name))
            _refuse_other_run(run, storage, found.metadata)
            _refuse_changed(storage, found.shard, listed.get(name))
            if found.violations:
                more = f" and {len(found.violations) - 1} more violations" if len(found.violations) > 1 else ""
                plan.damaged.append(f"{storage}/{found.violations[0]}{more}")
            elif found.shard and (found.shard.first_game, found.shard.games) == (
                task.index * settings.shard_games,
                task.games,
            ):
                plan.done.append(found.shard)
                continue
        plan.todo.append(task)
    if indices is None:
        for name in filter(is_shard, sorted({*names} - {shard_name(task.index) for task in ours})):
            _refuse_other_run(run, storage, inspection.metadata_in(storage, name))
    return plan


def games_there(run: Mapping[str, Any], out: Path | Storage) -> int:
    """Games up to the last one of this run that exists, in a shard whose metadata can be read."""
    storage = storage_of(out)
    for name in sorted(filter(is_shard, storage.names()), reverse=True):
        metadata = inspection.metadata_in(storage, name)
        if metadata is not None and metadata["identity"] == run:
            with suppress(KeyError, TypeError, ValueError):
                expected = checks.expected_of(metadata)
                return expected.first_game + expected.games
    return 0


def _listed(storage: Storage) -> dict[str, Shard]:
    """The shards in a manifest; none where it cannot be read, as it is written again then."""
    try:
        manifest = schema.parse_manifest(f"{storage}/{schema.MANIFEST}", storage.read(schema.MANIFEST))
        return {entry["name"]: schema.shard_of(entry) for entry in manifest["shards"]}
    except (DataError, KeyError, TypeError, ValueError):
        return {}


def _refuse_other_run(ours: Mapping[str, Any], storage: Storage, metadata: Mapping[str, Any] | None) -> None:
    """Raise DataError for a shard of another run; a damaged shard has no metadata and is rebuilt."""
    theirs = (metadata or {}).get("identity")
    if not isinstance(theirs, dict) or theirs == ours:
        return
    differences = [
        f"{name} {theirs.get(name)} there, {ours.get(name)} here"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
    raise DataError(
        f"{storage}: holds a run with other settings ({'; '.join(differences)}); "
        "choose another --out, or --restart to delete it"
    )


def _refuse_changed(storage: Storage, found: Shard | None, listed: Shard | None) -> None:
    """Raise DataError for a readable shard with other rows than the manifest says: a user may have changed them."""
    if found is None or listed is None or (found.first_game, found.games) != (listed.first_game, listed.games):
        return  # damaged, or of a run that was extended
    if found.content_hash != listed.content_hash:
        raise DataError(
            f"{storage}/{found.name}: its rows were changed after the manifest was written; delete the file to have it "
            "rebuilt, or --restart to delete the run"
        )


def locked(out: Path | Storage, shared: bool = False) -> AbstractContextManager[None]:
    """Hold a run's folder for one writer, or for several that share it, as `folders.locked` does.

    An object store has no lock: two writers with the same settings write the same bytes.
    """
    storage = storage_of(out)
    return folders.locked(storage.path, shared=shared) if isinstance(storage, Folder) else nullcontext()


def require(out: Path | Storage, kind: folders.Kind) -> None:
    """Raise UserError where storage holds something else than games of this kind; as `folders.require` does."""
    storage = storage_of(out)
    names = storage.names()
    folders.require_kind(storage, kind, folders.kind_in(names, storage.read), folders.visible(names))


def delete(out: Path | Storage) -> None:
    """Delete a run's files for --restart, and nothing else; config.json stays until it is replaced."""
    storage = storage_of(out)
    storage.delete(schema.MANIFEST)  # first, because half a run must not be complete
    for name in storage.names():
        if is_shard(name):
            storage.delete(name)
    _delete_checkpoints(storage)
    cli.omit_when_resuming("--restart")


def _delete_checkpoints(storage: Storage) -> None:
    if isinstance(storage, Folder):
        for path in storage.path.glob(CHECKPOINTS):
            path.unlink(missing_ok=True)

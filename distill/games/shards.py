"""Shards of a run: make one, find which are missing, delete them, write the manifest.

`make_shard(settings, index, ...)` plays games [index * S, (index + 1) * S) and writes one Parquet file; the same
settings and index give the same bytes anywhere. A run is that function mapped over its indices (`executors.py`): what
is missing or damaged is made, what is valid is kept, and the manifest is written last.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from distill.common import DataError, folders, json_bytes, provenance
from distill.common.plugins import Plugin
from distill.games import inspection, schema
from distill.games.playing import play_games
from distill.games.runs import RunSettings, identity, plugin_of, run_hash
from distill.games.schema import Shard, is_shard, shard_name
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
    """What a run has and lacks.

    Attributes:
      games: games of the finished run; a run never shrinks, so there may be more than were asked for.
      manifest: the run's manifest; empty where there is none that can be used.
      finished: whether there is nothing to make and the manifest says so.
      done, todo: its sound shards, and those to make.
      damaged: why files are rebuilt.
    """

    games: int
    manifest: Mapping[str, Any]
    finished: bool
    done: list[Shard]
    todo: list[Task]
    damaged: list[str]


# Making shards --------------------------------------------------------------------------------------------------------


def make_shard(
    settings: RunSettings, index: int, count: int, out: Path | Storage, plugin: Plugin | None = None
) -> Shard:
    """Play the first `count` games of a shard and write the shard, whole or not at all.

    `plugin` is the user's labeller as described by the process that started the run; None: look it up here.
    """
    plugin, first = plugin or plugin_of(settings), index * settings.shard_games
    table = play_games(settings, first, count, plugin.load() if plugin else None)
    return write(table, identity(settings), index, first, count, out)


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
    manifest = _manifest(run, shards) | {"commit": provenance.commit(), "versions": provenance.versions(*LIBRARIES)}
    storage_of(out).write(schema.MANIFEST, json_bytes(manifest))
    return manifest


def _manifest(run: Mapping[str, Any], shards: list[Shard]) -> dict[str, Any]:
    """What the manifest of a run with these shards says, whatever program wrote it."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    return {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": (folders.NETWORK_GAMES if "network" in run else folders.GAMES).name,
        "run": run_hash(run),
        "identity": run,
        **{key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")},
        "shards": [dataclasses.asdict(shard) for shard in ordered],
    }


# What exists already --------------------------------------------------------------------------------------------------


def plan(settings: Any, games: int, out: Path | Storage, run: Mapping[str, Any] | None = None) -> Plan:
    """What a run of at least so many games has and lacks; each shard is read, and every row is checked.

    `run` is the identity of a run that a network plays. Raises DataError for a run with other settings (naming the
    differences) and for a shard that somebody changed or that cannot be read although its bytes may be sound.
    """
    run, storage = run or identity(settings), storage_of(out)
    found, damaged, manifest, listed = dict[str, Shard](), list[str](), dict[str, Any](), dict[str, Shard]()
    names = storage.names()
    if schema.MANIFEST in names:
        try:
            manifest, entries = schema.parse_run(f"{storage}/{schema.MANIFEST}", storage.read(schema.MANIFEST))
            listed, games = {shard.name: shard for shard in entries}, max(games, sum(each.games for each in entries))
        except DataError as error:
            damaged = [str(error)]
    _refuse_other_run(run, storage, manifest)
    # Keep what is sound. A file that is damaged is made again; one whose rows were changed is somebody's work.
    for name in filter(is_shard, names):
        inspected = inspection.inspect_shard(storage, name, listed.get(name))
        _refuse_other_run(run, storage, inspected.metadata)
        reason = inspected.error
        if inspected.shard and name in listed and inspected.shard.content_hash != listed[name].content_hash:
            reason = schema.ForeignError(f"{storage}/{name}: its rows were changed after the manifest was written")
        if isinstance(reason, schema.ForeignError):  # a user may have rewritten the file, and would lose that
            raise DataError(f"{reason}; delete the file to rebuild it, or --restart to delete the run")
        if reason and not isinstance(reason, schema.DamagedError):
            raise reason
        if inspected.violations:
            more = f" and {len(inspected.violations) - 1} more violations" if len(inspected.violations) > 1 else ""
            damaged.append(f"{storage}/{inspected.violations[0]}{more}")
        elif inspected.shard:
            found[name] = inspected.shard
    # Never shrink a run, even when an interrupted extension left no manifest.
    games = max(games, *(shard.first_game + shard.games for shard in found.values()), 0)
    size = settings.shard_games
    tasks = [Task(index=first // size, games=min(size, games - first)) for first in range(0, games, size)]
    # An extension may need more games of the last shard: then it is made again.
    done = {}
    for task in tasks:
        shard = found.get(shard_name(task.index))
        if shard and (shard.first_game, shard.games) == (task.index * size, task.games):
            done[task] = shard
    todo = [task for task in tasks if task not in done]
    finished = not todo and manifest.items() >= _manifest(run, [*done.values()]).items()
    return Plan(games=games, manifest=manifest, finished=finished, done=[*done.values()], todo=todo, damaged=damaged)


def _refuse_other_run(ours: Mapping[str, Any], storage: Storage, metadata: Mapping[str, Any] | None) -> None:
    """Raise DataError for a manifest or a shard of another run; what is damaged names none and is rebuilt."""
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


def locked(out: Path | Storage) -> AbstractContextManager[None]:
    """Hold a run's folder for one writer, as `folders.locked` does.

    An object store has no lock: two writers with the same settings write the same bytes.
    """
    storage = storage_of(out)
    return folders.locked(storage.path) if isinstance(storage, Folder) else nullcontext()


def require(out: Path | Storage, kind: folders.Kind) -> None:
    """Raise UserError where storage holds something else than games of this kind; as `folders.require` does."""
    storage = storage_of(out)
    names = storage.names()
    folders.require_kind(storage, kind, folders.kind_in(names, storage.read), folders.visible(names))


def delete(out: Path | Storage) -> None:
    """Delete a run's files for --restart, and nothing else; config.json stays until it is replaced."""
    storage = storage_of(out)
    storage.delete(schema.MANIFEST)  # first, because half a run must not be complete
    for name in filter(is_shard, storage.names()):
        storage.delete(name)

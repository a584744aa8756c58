"""Shards of a run: make one, find which are missing, describe them for the record.

`make_shard(settings, index, ...)` plays games [index * S, (index + 1) * S) and writes one Parquet file; the same
settings and index give the same bytes anywhere. A run is that function mapped over its indices (`making.py`): what
is missing or damaged is made, what is valid is kept, and the result is recorded last.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from distill.common import DataError, provenance, run_folder
from distill.common.plugins import Plugin
from distill.common.settings import as_json
from distill.common.storage import Storage, storage_of
from distill.games import inspection, schema
from distill.games.playing import play_games
from distill.games.runs import RunSettings, identity, plugin_of
from distill.games.schema import Shard, shard_name

LIBRARIES = ("numba", "numpy", "pyarrow")
"""Libraries whose versions decide the bytes of a shard."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One shard to make: its index, and how many of its games."""

    index: int
    games: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return shard_name(self.index)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run has and lacks.

    Attributes:
      games: games of the finished run; a run never shrinks, so there may be more than were asked for.
      finished: whether there is nothing to make and the record says so.
      done, todo: its sound shards, and those to make.
      damaged: why files are rebuilt.
    """

    games: int
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
    return write(table, identity(settings, plugin), index, first, count, out)


def write(
    table: pa.Table,
    run: Mapping[str, Any],
    index: int,
    first_game: int,
    games: int,
    out: Path | Storage,
    libraries: Sequence[str] = LIBRARIES,
) -> Shard:
    """Write the rows of a shard of the run with this identity; returns its entry for the record."""
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "games",
        "run": schema.run_name(run),
        "identity": run,
        "index": index,
        "first_game": first_game,
        "games": games,
        "versions": provenance.versions(*libraries),
    }
    content = schema.table_bytes(table, metadata)
    storage_of(out).write(shard_name(index), content)
    return inspection.describe(shard_name(index), table, metadata, hashlib.sha256(content).hexdigest())


def finish(folder: run_folder.Run, run: Mapping[str, Any], shards: Sequence[Shard], games: int) -> dict[str, Any]:
    """Record that a run of so many games is finished; returns its result.

    Raises DataError where a shard has disappeared, so that no record has fewer games than were asked for.
    """
    names = folder.storage.names()
    if (left := sum(shard.games for shard in shards if shard.name in names)) != games:
        problem = f"{left:,} of {games:,} games are left, because shards were deleted or damaged"
        raise DataError(f"{folder.storage}: {problem}; start the command again")
    finished = _result(run, shards)
    folder.finish(finished)
    return finished


def _result(run: Mapping[str, Any], shards: Sequence[Shard]) -> dict[str, Any]:
    """What the record of a finished run of games with these shards says."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    sums = {key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")}
    return {"run": schema.run_name(run), **sums, "shards": [dataclasses.asdict(shard) for shard in ordered]}


# What exists already --------------------------------------------------------------------------------------------------


def opened(
    out: str | Path | Storage, settings: Any, games: int, run: Mapping[str, Any], *, config: Any, restart: bool = False
) -> AbstractContextManager[run_folder.Run]:
    """Hold the folder of a run of games (`run_folder.opened`); a folder has shards of one size.

    Args:
      settings: of the run, with `shard_games`.
      games: of the finished run.
      run: its identity.
      config: the command's settings, for the record.
    """
    names = [schema.shard_name(index) for index in range(-(-games // settings.shard_games))]
    identity = {**run, "shard_games": settings.shard_games}
    stored = as_json(config)
    return run_folder.opened(out, schema.GAMES, identity, settings=stored, files=names, restart=restart)


def plan(folder: run_folder.Run, settings: Any, games: int, run: Mapping[str, Any]) -> Plan:
    """What a run of at least so many games has and lacks; each shard is read, and every row is checked.

    `run` is its identity. Raises DataError for a shard of another run, one that somebody changed, and one that cannot
    be read although its bytes may be sound.
    """
    storage, size = folder.storage, settings.shard_games
    if folder.starts or folder.record is None:
        return Plan(games=games, finished=False, done=[], todo=_tasks(games, size), damaged=[])
    listed = {shard.name: shard for shard in schema.shards_of(storage, folder.result)} if folder.result else {}
    shards, damaged = dict[str, Shard](), list[str]()
    # Keep what is sound. A file that is damaged is rebuilt; one whose rows were changed is somebody's work.
    for name in sorted({*folder.record.files} & {*storage.names()}):
        inspected = inspection.inspect_shard(storage, name, listed.get(name), schema.run_name(run))
        reason = inspected.error
        if inspected.shard and name in listed and inspected.shard.content_hash != listed[name].content_hash:
            reason = schema.ForeignError(f"{storage}/{name}: its rows were changed after the run was finished")
        if inspected.metadata and inspected.metadata.get("run") != schema.run_name(run):
            reason = schema.ForeignError(f"{storage}/{name}: of another run")
        if isinstance(reason, schema.ForeignError):  # a user may have rewritten the file, and would lose that
            raise DataError(f"{reason}; delete the file to rebuild it, or --restart to delete the run")
        if reason and not isinstance(reason, schema.DamagedError):
            raise reason
        if inspected.violations:
            more = f" and {len(inspected.violations) - 1} more violations" if len(inspected.violations) > 1 else ""
            damaged.append(f"{storage}/{inspected.violations[0]}{more}")
        elif inspected.shard:
            shards[name] = inspected.shard
    # Never shrink a run, even an extension that was interrupted.
    sizes = [*shards.values(), *listed.values()]
    tasks = _tasks(max(games, *(shard.first_game + shard.games for shard in sizes), 0), size)
    # An extension may need more games of the last shard, which is then rebuilt.
    done = {
        task: shard
        for task in tasks
        if (shard := shards.get(task.name)) and (shard.first_game, shard.games) == (task.index * size, task.games)
    }
    todo = [task for task in tasks if task not in done]
    return Plan(
        games=sum(task.games for task in tasks),
        finished=not todo and folder.result == _result(run, [*done.values()]),
        done=[*done.values()],
        todo=todo,
        damaged=damaged,
    )


def _tasks(games: int, size: int) -> list[Task]:
    return [Task(index=first // size, games=min(size, games - first)) for first in range(0, games, size)]

"""Shards of a run: make one, find which are missing, describe them for the record.

`make_shard(settings, run, task)` plays games [index * S, (index + 1) * S) and returns the bytes of one Parquet file;
the same settings and index give the same bytes anywhere. A run is that function mapped over its indices (`making.py`):
what is missing or damaged is made, what is valid is kept, and the result is recorded last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from distill.common import DataError, provenance, run_folder
from distill.common.plugins import Plugin
from distill.common.settings import as_json
from distill.common.storage import Storage
from distill.games import schema
from distill.games.playing import play_games
from distill.games.runs import RunSettings
from distill.games.schema import DamagedError, Shard, shard_name

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


def make_shard(
    settings: RunSettings, run: Mapping[str, Any], task: Task, plugin: Plugin | None = None
) -> tuple[Shard, bytes]:
    """Play a shard of the run with this identity; returns its entry for the record and its file.

    `plugin` is the user's labeller as described by the process that started the run.
    """
    first = task.index * settings.shard_games
    table = play_games(settings, first, task.games, plugin.load() if plugin else None)
    return encoded(table, run, task, first)


def encoded(
    table: pa.Table, run: Mapping[str, Any], task: Task, first_game: int, libraries: Sequence[str] = LIBRARIES
) -> tuple[Shard, bytes]:
    """The rows of a shard of the run with this identity as its entry for the record and its file."""
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": schema.GAMES,
        "run": schema.run_name(run),
        "identity": run,
        "index": task.index,
        "first_game": first_game,
        "games": task.games,
        "versions": provenance.versions(*libraries),
    }
    content = schema.table_bytes(table, metadata)
    return schema.shard_of(task.name, table, metadata, content), content


def finish(folder: run_folder.Run, run: Mapping[str, Any], shards: Sequence[Shard], games: int) -> dict[str, Any]:
    """Record that a run of so many games is finished; returns its result.

    Raises DataError where a shard has disappeared, so that no record has fewer games than were asked for.
    """
    names = folder.storage.names()
    if (left := sum(shard.games for shard in shards if shard.name in names)) != games:
        problem = f"{left:,} of {games:,} games are left, because shards were deleted or damaged"
        raise DataError(f"{folder.storage}: {problem}; start the command again")
    finished = result(schema.run_name(run), shards)
    folder.finish(finished)
    return finished


def result(name: str, shards: Sequence[Shard]) -> dict[str, Any]:
    """What the record of a finished run of this name with these shards says."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    sums = {key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")}
    return {"run": name, **sums, "shards": [shard.model_dump() for shard in ordered]}


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
    names = [task.name for task in _tasks(games, settings.shard_games)]
    identity = {**run, "shard_games": settings.shard_games}
    stored = as_json(config)
    return run_folder.opened(out, schema.GAMES, identity, settings=stored, files=names, restart=restart)


def plan(folder: run_folder.Run, settings: Any, games: int, run: Mapping[str, Any]) -> Plan:
    """What a run of at least so many games has and lacks; each shard is read.

    `run` is its identity. Raises DataError for a shard of another run, one that somebody changed, and one that cannot
    be read although its bytes may be sound.
    """
    storage, size, name = folder.storage, settings.shard_games, schema.run_name(run)
    recorded = schema.run_of(storage, folder.result).shards if folder.result else []
    hashes = {shard.name: shard.content_hash for shard in recorded}
    before = [] if folder.starts or folder.record is None else folder.record.files
    shards, damaged = dict[str, Shard](), list[str]()
    # Keep what is sound. A file that is damaged is rebuilt; one whose rows were changed is somebody's work.
    for file in sorted({*before} & {*storage.names()}):
        try:
            content = storage.read(file)
            table, metadata = schema.read_table(f"{storage}/{file}", None, content)
            shard = schema.shard_of(file, table, metadata, content)
        except DamagedError as error:
            damaged.append(str(error))
            continue
        changed = hashes.get(file, shard.content_hash) != shard.content_hash
        if changed or metadata.get("run") != name:
            what = "its rows were changed after the run was finished" if changed else "of another run"
            raise DataError(f"{storage}/{file}: {what}; delete the file to rebuild it, or --restart to delete the run")
        shards[file] = shard
    # Never shrink a run, even an extension that was interrupted.
    tasks = _tasks(max(games, *(shard.first_game + shard.games for shard in (*shards.values(), *recorded)), 0), size)
    # An extension may need more games of the last shard, which is then rebuilt.
    todo = []
    for task in tasks:
        held = shards.get(task.name)
        if held is None or (held.first_game, held.games) != (task.index * size, task.games):
            todo.append(task)
    done = [shards[task.name] for task in tasks if task not in todo]
    return Plan(
        games=sum(task.games for task in tasks),
        finished=not todo and folder.result == result(name, done),
        done=done,
        todo=todo,
        damaged=damaged,
    )


def _tasks(games: int, size: int) -> list[Task]:
    return [Task(index=first // size, games=min(size, games - first)) for first in range(0, games, size)]

"""A run of games: its settings, what defines it, and its shards, made in processes of this machine or on a cluster.

`make_shard(settings, run, task)` plays games [index * S, (index + 1) * S) and returns the bytes of one Parquet file;
the same settings and index give the same bytes anywhere. A run is that function mapped over its indices: what is
missing or damaged is made, what is valid is kept, and the result is recorded last. Workers return the files of their
shards, which one process writes, so that no worker needs the folder.

Two runs with equal identities have equal games. The name of a run is a hash of its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field

from distill.common import DataError, cores, executors, provenance, run_folder
from distill.common.cluster import Cluster
from distill.common.executors import KilledError, Workers
from distill.common.plugins import Plugin
from distill.common.settings import Seed, Settings, as_json
from distill.common.storage import Storage
from distill.games import playing, reader, schema
from distill.games.schema import DamagedError, Shard, shard_name
from distill.mcts import uct
from distill.mcts.settings import UctSettings

LIBRARIES = ("numba", "numpy", "pyarrow")
"""Libraries whose versions decide the bytes of a shard."""


class RunSettings(Settings):
    """All that the games of a run depend on."""

    search: UctSettings = UctSettings()
    labeller: str | None = Field(
        None,
        title="MODULE:OBJECT",
        description="your own engine, to label; of the search settings, only the noise of moves has an effect",
    )
    opening_moves: playing.OpeningMoves = Field((1, 8), description=playing.OPENING_HELP)
    seed: Seed = Field(0, description="run seed; game g depends only on it and on g")
    shard_games: int = Field(200, ge=1, le=100_000, description="games in one shard file")


def identity(settings: RunSettings) -> dict[str, Any]:
    """What the games of a run depend on: its settings, and the version of the search or the labeller's source hash.

    Raises UserError for a labeller that cannot be imported.
    """
    stored = settings.model_dump(mode="json", include=RunSettings.model_fields.keys() - {"shard_games"})
    stored |= stored.pop("search")
    if settings.labeller is None:
        del stored["labeller"]
        return {"search_version": uct.SEARCH_VERSION, **stored}
    # With a labeller of the user's, settings of the search change nothing.
    searched = {"simulations", "votes", "rollout", "exploration", "mcts_solver"}
    source = Plugin.named(settings.labeller, "--labeller").source
    return {"labeller_source": source, **{name: stored[name] for name in stored if name not in searched}}


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
    size = settings.shard_games
    names = [shard_name(index) for index in range(-(-games // size))]
    known = {**run, "shard_games": size}
    return run_folder.opened(out, schema.GAMES, known, settings=as_json(config), files=names, restart=restart)


def plan(folder: run_folder.Run, games: int) -> Plan:
    """What a run of at least so many games, whose folder is `opened`, has and lacks; each shard is read.

    Raises DataError for a shard of another run, one that somebody changed, and one that cannot be read although its
    bytes may be sound.
    """
    storage, size, name = folder.storage, folder.identity["shard_games"], _name(folder)
    record = None if folder.starts else folder.record
    recorded = reader.run_of(storage, record).shards if record and record.result else []
    hashes = {shard.name: shard.content_hash for shard in recorded}
    sound, damaged = dict[str, Shard](), list[str]()
    # Keep what is sound. A file that is damaged is rebuilt; one whose rows were changed is somebody's work.
    for file in sorted({*(record.files if record else ())} & {*storage.names()}):
        try:
            shard, _, metadata = schema.read_shard(f"{storage}/{file}", storage.read(file))
        except DamagedError as error:
            damaged.append(str(error))
            continue
        changed = hashes.get(file, shard.content_hash) != shard.content_hash
        if changed or metadata.get("run") != name:
            what = "its rows were changed after the run was finished" if changed else "of another run"
            raise DataError(f"{storage}/{file}: {what}; delete the file to rebuild it, or --restart to delete the run")
        sound[file] = shard
    # Never shrink a run, even an extension that was interrupted; one may need more games of the last shard.
    games = max(games, *(shard.first_game + shard.games for shard in (*sound.values(), *recorded)), 0)
    done, todo = list[Shard](), list[Task]()
    for first in range(0, games, size):
        task = Task(index=first // size, games=min(size, games - first))
        held = sound.get(task.name)
        if held and (held.first_game, held.games) == (first, task.games):
            done.append(held)
        else:
            todo.append(task)
    finished = not todo and folder.result == result(name, done)
    return Plan(games=games, finished=finished, done=done, todo=todo, damaged=damaged)


def finish(folder: run_folder.Run, shards: Sequence[Shard], games: int) -> dict[str, Any]:
    """Record that a run of so many games is finished; returns its result.

    Raises DataError where a shard has disappeared, so that no record has fewer games than were asked for.
    """
    names = folder.storage.names()
    if (left := sum(shard.games for shard in shards if shard.name in names)) != games:
        problem = f"{left:,} of {games:,} games are left, because shards were deleted or damaged"
        raise DataError(f"{folder.storage}: {problem}; start the command again")
    finished = result(_name(folder), shards)
    folder.finish(finished)
    return finished


def _name(folder: run_folder.Run) -> str:
    return schema.run_name({name: value for name, value in folder.identity.items() if name != "shard_games"})


def result(name: str, shards: Sequence[Shard]) -> dict[str, Any]:
    """What the record of a finished run of this name with these shards says."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    sums = {key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")}
    return {"run": name, **sums, "shards": [shard.model_dump() for shard in ordered]}


# Making shards --------------------------------------------------------------------------------------------------------


def workers_of(number: int | None, tasks: int, cluster: str | None) -> Workers:
    """Workers for so many tasks, started: of a cluster, all of which search as this process does, or processes.

    By default there is one process per core. Raises UserError where workers cannot be started.
    """
    if cluster:
        return Cluster(cluster, versions_here)
    return executors.started(max(1, min(number or cores(), tasks)))


def versions_here() -> dict[str, Any]:
    """The versions that decide the bytes of a shard."""
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION}


def make_shard(
    settings: RunSettings, run: Mapping[str, Any], task: Task, plugin: Plugin | None = None
) -> tuple[Shard, bytes]:
    """Play a shard of the run with this identity; returns its entry for the record and its file.

    `plugin` is the user's labeller as described by the process that started the run.
    """
    first = task.index * settings.shard_games
    table = playing.play_games(settings, first, task.games, plugin.load() if plugin else None)
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


def make(
    workers: Workers,
    settings: RunSettings,
    run: Mapping[str, Any],
    tasks: Sequence[Task],
    work: Callable[..., tuple[Shard, bytes]] = make_shard,
) -> Iterator[tuple[Shard, bytes]]:
    """Make these shards of the run with this identity, by `work`; yields each with its file as it comes.

    Raises DataError for shards whose workers died at every try, once all others are made.
    """
    plugin = Plugin.named(settings.labeller, "--labeller") if settings.labeller else None
    calls = [(settings, run, task, plugin) for task in tasks]
    try:
        for _, shard in executors.completed(workers, work, calls):
            yield shard
    except KilledError as error:
        names = ", ".join(tasks[number].name for number in error.numbers)
        todo = "all other shards are finished; start the command again"
        raise DataError(f"{names}: {error}; {todo}") from error

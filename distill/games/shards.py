"""A run of games: what its folder has and lacks, and its shards, made in processes of this machine or on a cluster.

The shard with index i holds games [i * S, (i + 1) * S) in one Parquet file, of which `play_shards` returns the bytes;
the same settings and index give the same bytes anywhere. A run is that function mapped over its indices: what is
missing is made, what is there is checked and kept, and the result is recorded last. Workers return the files of their
shards, which one process writes, so that no worker needs the folder.

The name of a run is a hash of its identity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from distill.common import DataError, executors, listed, provenance, run_folder
from distill.common.executors import KilledError, Workers
from distill.common.progress import Advance, silent
from distill.common.settings import as_json
from distill.common.storage import Place
from distill.games import playing, reader, schema
from distill.games.schema import Shard, shard_name
from distill.games.settings import GamesSettings, RunSettings
from distill.mcts import uct

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
      done, todo: its shards, and those to make.
    """

    games: int
    done: list[Shard]
    todo: list[Task]


def opened(
    out: Place, settings: GamesSettings, games: int, identity: Mapping[str, Any], *, restart: bool = False
) -> AbstractContextManager[run_folder.Run]:
    """Hold the folder of a run of games (`run_folder.opened`); a folder has shards of one size.

    Args:
      settings: for the record; those of a command have its other settings, too.
      games: of the finished run.
      identity: of the run.
    """
    size = settings.shard_games
    names = [shard_name(index) for index in range(-(-games // size))]
    known = {**identity, "shard_games": size}
    return run_folder.opened(out, schema.GAMES, known, settings=as_json(settings), files=names, restart=restart)


def plan(folder: run_folder.Run, games: int) -> Plan:
    """What a run of at least so many games, whose folder is `opened`, has and lacks; each shard is read.

    Raises DataError for a file that is not a shard of this run as it was written: it may be somebody's work.
    """
    storage, size, name = folder.storage, folder.ours.identity["shard_games"], schema.run_name(folder.ours.identity)
    record = None if folder.starts else folder.record
    recorded = reader.run_of(storage, record).shards if record and record.result else []
    hashes, held = {shard.name: shard.sha256 for shard in recorded}, dict[int, Shard]()
    for file in sorted({*(record.files if record else ())} & {*storage.names()}):
        content = storage.read(file)
        try:
            table, metadata = schema.read_table(f"{storage}/{file}", None, content)
            shard = schema.shard_of(file, table, metadata, content)
            written = (metadata.get("run"), shard_name(metadata.get("index", 0)), shard.sha256)
            if written != (name, file, hashes.get(file, shard.sha256)):
                raise DataError(f"{storage}/{file}: another shard, or changed after the run was finished")
        except DataError as error:
            raise DataError(f"{error}; delete the file to rebuild it") from error
        held[metadata["index"]] = shard
    # Never shrink a run, even an extension that was interrupted; one may need more games of the last shard.
    games = max(games, *(shard.first_game + shard.games for shard in (*held.values(), *recorded)), 0)
    tasks = [Task(index=first // size, games=min(size, games - first)) for first in range(0, games, size)]
    complete = {task for task in tasks if task.index in held and held[task.index].games == task.games}
    done = [held[task.index] for task in tasks if task in complete]
    return Plan(games=games, done=done, todo=[task for task in tasks if task not in complete])


def result(name: str, shards: Sequence[Shard]) -> dict[str, Any]:
    """What the record of a finished run of this name with these shards says."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    sums = {key: sum(getattr(shard, key) for shard in ordered) for key in ("games", "rows", "simulations")}
    return {"run": name, **sums, "shards": [shard.model_dump() for shard in ordered]}


# Making shards --------------------------------------------------------------------------------------------------------


Encoded: TypeAlias = tuple[Shard, bytes]
"""A shard: its entry for the record, and its file."""


def versions_here() -> dict[str, Any]:
    """The versions that decide the bytes of a shard, which must be equal on all workers."""
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION}


def play_shards(
    settings: RunSettings, identity: Mapping[str, Any], tasks: Sequence[Task], _seconds: float = 0
) -> list[Encoded]:
    """Play shards of the run with this identity, however long that takes."""
    size = settings.shard_games
    return [
        encode_shard(playing.play_games(settings, task.index * size, task.games), identity, task, task.index * size)
        for task in tasks
    ]


def encode_shard(
    table: pa.Table, identity: Mapping[str, Any], task: Task, first_game: int, libraries: Sequence[str] = LIBRARIES
) -> Encoded:
    """The rows of a shard of the run with this identity as its entry for the record and its file."""
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": schema.GAMES,
        "run": schema.run_name(identity),
        "identity": identity,
        "index": task.index,
        "first_game": first_game,
        "games": task.games,
        "versions": provenance.versions(*libraries),
    }
    content = schema.table_bytes(table, metadata)
    return schema.shard_of(shard_name(task.index), table, metadata, content), content


def complete(
    folder: run_folder.Run,
    known: Plan,
    workers: Workers,
    work: Callable[..., Sequence[Encoded]],
    calls: Iterable[tuple[Any, ...]],
    advance: Advance = silent,
) -> dict[str, Any]:
    """Complete a run: workers make shards, which are written into its folder, and the result is recorded and returned.

    Shards behind a missing one, which `work` gave up, are deleted, so that the number of games says which there are.

    Args:
      known: what the run has and lacks.
      work: some tasks, and what else its call has → their shards, or as many of them as it could finish.
      calls: of `work`; the next one is drawn when the result of another has come.
      advance: called with the number of further games.

    Raises DataError for shards whose workers died at every try, once all others are made.
    """
    written = list[Shard]()
    try:
        for _, encoded in executors.completed(workers, work, calls):
            new = {shard.name for shard, _ in encoded} - {*folder.ours.files}
            # `begin` deletes the old run after --restart, so it waits for the first result.
            if new or not written:
                folder.begin(new)
            for shard, content in encoded:
                folder.storage.write(shard.name, content)
                written.append(shard)
                advance(shard.games)
    except KilledError as error:
        names = listed([shard_name(task.index) for tasks, *_ in error.tasks for task in tasks])
        todo = "all other shards are finished; start the command again"
        raise DataError(f"{folder.storage}: {names}: {error}; {todo}") from error
    if not written:
        folder.begin()
    entries = {shard.name: shard for shard in (*known.done, *written)}
    kept = [*itertools.takewhile(entries.__contains__, map(shard_name, itertools.count()))]
    for name in entries.keys() - kept:
        folder.storage.delete(name)
    finished = result(schema.run_name(folder.ours.identity), [entries[name] for name in kept])
    folder.finish(finished)
    return finished

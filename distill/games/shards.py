"""A run of games: its settings, what defines it, and its shards, made in processes of this machine or on a cluster.

`make_shard(settings, run, task)` plays games [index * S, (index + 1) * S) and returns the bytes of one Parquet file;
the same settings and index give the same bytes anywhere. A run is that function mapped over its indices: what is
missing or damaged is made, what is valid is kept, and the result is recorded last. Workers return the files of their
shards, which one process writes, so that no worker needs the folder.

Two runs with equal identities have equal games. The name of a run is a hash of its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
from pydantic import Field, PlainSerializer, PlainValidator

from distill.common import DataError, executors, listed, provenance, run_folder
from distill.common.executors import KilledError, Workers
from distill.common.plugins import Plugin
from distill.common.progress import Advance, silent
from distill.common.settings import Seed, Settings, as_json
from distill.common.storage import Storage
from distill.games import playing, reader, schema
from distill.games.schema import Shard, shard_name
from distill.mcts import uct
from distill.mcts.settings import UctSettings

LIBRARIES = ("numba", "numpy", "pyarrow")
"""Libraries whose versions decide the bytes of a shard."""


def _imported(labeller: str | Plugin) -> Plugin:
    return labeller if isinstance(labeller, Plugin) else Plugin.named(labeller, "--labeller")


NamedLabeller = Annotated[Plugin, PlainValidator(_imported), PlainSerializer(lambda plugin: plugin.spec)]
"""A user's labeller, "module:object", which is imported when it is set. Raises UserError where that fails."""


class RunSettings(Settings):
    """All that the games of a run depend on."""

    search: UctSettings = UctSettings()
    labeller: NamedLabeller | None = Field(
        None,
        title="MODULE:OBJECT",
        description="your own engine, to label; of the search settings, only the noise of moves has an effect",
    )
    opening_moves: playing.OpeningMoves = Field((1, 8), description=playing.OPENING_HELP)
    seed: Seed = Field(0, description="run seed; game g depends only on it and on g")
    shard_games: int = Field(200, ge=1, le=100_000, description="games in one shard file")


def identity(settings: RunSettings) -> dict[str, Any]:
    """What the games of a run depend on: its settings, and the version of the search or the labeller's source hash."""
    stored = settings.model_dump(mode="json", include=RunSettings.model_fields.keys() - {"shard_games"})
    stored |= stored.pop("search")
    if settings.labeller is None:
        del stored["labeller"]
        return {"search_version": uct.SEARCH_VERSION, **stored}
    # With a labeller of the user's, settings of the search change nothing.
    searched = {"simulations", "votes", "rollout", "exploration", "mcts_solver"}
    known = {name: value for name, value in stored.items() if name not in searched}
    return {"labeller_source": settings.labeller.source, **known}


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
    out: str | Path | Storage, config: Any, games: int, run: Mapping[str, Any], *, restart: bool = False
) -> AbstractContextManager[run_folder.Run]:
    """Hold the folder of a run of games (`run_folder.opened`); a folder has shards of one size.

    Args:
      config: the settings for the record, with `shard_games`.
      games: of the finished run.
      run: its identity.
    """
    size = config.shard_games
    names = [shard_name(index) for index in range(-(-games // size))]
    known = {**run, "shard_games": size}
    return run_folder.opened(out, schema.GAMES, known, settings=as_json(config), files=names, restart=restart)


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
            written = (metadata["run"], shard_name(metadata["index"]), shard.sha256)
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


def finish(folder: run_folder.Run, shards: Sequence[Shard]) -> dict[str, Any]:
    """Record that a run of these shards is finished; returns its result."""
    finished = result(schema.run_name(folder.ours.identity), shards)
    folder.finish(finished)
    return finished


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


def make_shard(settings: RunSettings, run: Mapping[str, Any], task: Task) -> Encoded:
    """Play a shard of the run with this identity; returns its entry for the record and its file."""
    first = task.index * settings.shard_games
    return encoded(playing.play_games(settings, first, task.games), run, task, first)


def encoded(
    table: pa.Table, run: Mapping[str, Any], task: Task, first_game: int, libraries: Sequence[str] = LIBRARIES
) -> Encoded:
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
    return schema.shard_of(shard_name(task.index), table, metadata, content), content


def make_shards(
    settings: RunSettings, run: Mapping[str, Any], tasks: Sequence[Task], _seconds: float = 0
) -> list[Encoded]:
    """`make_shard` of each task, however long that takes."""
    return [make_shard(settings, run, task) for task in tasks]


def make(
    workers: Workers,
    record: run_folder.Run,
    work: Callable[..., Sequence[Encoded]],
    calls: Iterable[tuple[Any, ...]],
    advance: Advance = silent,
) -> list[Shard]:
    """Let workers make shards, and write them into the folder of the record; returns their entries, in any order.

    Args:
      work: some tasks, and what else its call has → their shards, or as many of them as it could finish.
      calls: of `work`; the next one is drawn when the result of another has come.
      advance: called with the number of further games.

    Raises DataError for shards whose workers died at every try, once all others are made.
    """
    entries = list[Shard]()
    try:
        for _, encoded in executors.completed(workers, work, calls):
            new = {shard.name for shard, _ in encoded} - {*record.ours.files}
            if new or not entries:  # only now that workers and labeller work: --restart deletes the old run
                record.begin(new)
            for shard, content in encoded:
                record.storage.write(shard.name, content)
                entries.append(shard)
                advance(shard.games)
    except KilledError as error:
        names = listed([shard_name(task.index) for tasks, *_ in error.tasks for task in tasks])
        todo = "all other shards are finished; start the command again"
        raise DataError(f"{record.storage}: {names}: {error}; {todo}") from error
    if not entries:
        record.begin()
    return entries

"""One shard of games as a pure function, and mapping it over a pool of processes.

`make_shard(settings, index, ...)` plays games [index * S, (index + 1) * S) and writes one Parquet
file; the same settings and index give the same bytes anywhere. A run is that function mapped over
its indices: whatever is missing or damaged is made, whatever is valid is kept, and the manifest
comes last.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill import provenance
from distill.cli import as_json, check, setting
from distill.data import schema
from distill.data.schema import DataError
from distill.game.rules import CELLS, EMPTY, Position, is_over, legal_columns, play
from distill.search import teacher
from distill.search.teacher import SearchSettings

KILLS_ALLOWED = 2
"""A shard whose worker dies this often is given up and reported."""


@dataclass(frozen=True, kw_only=True)
class RunSettings(SearchSettings):
    """All that the games of a run depend on: with `SEARCH_VERSION`, the run's identity."""

    opening_moves: tuple[int, ...] = setting((1, 8), "fewest and most random moves before the teacher plays")
    seed: int = setting(0, "run seed; game g depends on it and on g alone")
    shard_games: int = setting(200, "games in one shard file")

    def __post_init__(self) -> None:
        super().__post_init__()
        opening = " ".join(map(str, self.opening_moves))
        valid = len(self.opening_moves) == 2 and 0 <= self.opening_moves[0] <= self.opening_moves[-1] <= 20
        check(valid, "opening_moves", opening, "two numbers, fewest and most, from 0 to 20")
        check(0 <= self.seed < 2**64, "seed", self.seed, "from 0 to 2^64 - 1")
        check(1 <= self.shard_games <= 100_000, "shard_games", self.shard_games, "from 1 to 100,000")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """What a manifest says of one shard file."""

    name: str
    first_game: int
    games: int
    rows: int
    simulations: int
    sha256: str
    content_hash: str


def identity(settings: RunSettings) -> dict[str, Any]:
    """The settings that define a run, and the version of the search that plays it."""
    fields = {field.name for field in dataclasses.fields(RunSettings)}
    chosen = {name: value for name, value in as_json(settings).items() if name in fields}
    return {"search_version": teacher.SEARCH_VERSION, **chosen}


def run_hash(run_identity: Mapping[str, Any]) -> str:
    """Name of a run: BLAKE2b-128 over the canonical JSON of its identity, in hex."""
    return hashlib.blake2b(schema.canonical_json(run_identity).encode(), digest_size=16).hexdigest()


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.parquet"


def opening(settings: RunSettings, game: int) -> Position:
    """The position a game's random opening leads to; an opening that ends the game is redrawn."""
    fewest, most = settings.opening_moves
    random = teacher.generator(settings.seed, game, 0)
    while True:
        position = EMPTY
        for _ in range(random.integers(fewest, most + 1)):
            columns = legal_columns(position)
            position = play(position, columns[random.integers(len(columns))])
            if is_over(position):
                break
        if not is_over(position):
            return position


def play_games(settings: RunSettings, first: int, count: int, lanes: int = teacher.LANES) -> pa.Table:
    """The rows of games [first, first + count), in `schema.ROW`, sorted by (game_id, ply)."""
    games = range(first, first + count)
    starts = [opening(settings, game) for game in games]
    record = teacher.play(
        np.array([start.current for start in starts], np.uint64),
        np.array([start.mask for start in starts], np.uint64),
        teacher.draw(settings.seed, games, CELLS - settings.opening_moves[0], settings),
        settings,
        lanes,
    )
    game, step = np.nonzero(np.arange(record.label.shape[1]) < record.length[:, None])
    plies_to_end = record.length[game] - 1 - step
    mask, label = record.mask[game, step], record.label[game, step]
    columns = {
        "game_id": first + game,
        "ply": np.bitwise_count(mask),
        "current": record.current[game, step],
        "mask": mask,
        "votes": record.votes[game, step],
        "label": label,
        "visits": record.visits[game, step],
        "simulations": record.simulations[game, step],
        "value": record.value[game, step],
        "move": label,
        "outcome": record.result[game] * (1 - 2 * (plies_to_end % 2)),
    }
    return pa.table([_column(columns[field.name], field.type) for field in schema.ROW], schema=schema.ROW)


def _column(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of (B,) or (B, width) values, cast to its type.

    From buffers, since `pa.array` imports pandas to look at a NumPy array: 40 MB in every worker.
    """
    if values.ndim == 2:
        items = _column(values.ravel(), kind.value_type)
        if pa.types.is_fixed_size_list(kind):
            return pa.FixedSizeListArray.from_arrays(items, kind.list_size)
        offsets = np.arange(len(values) + 1) * values.shape[1]
        return pa.ListArray.from_arrays(_column(offsets, pa.int32()), items)
    typed = np.ascontiguousarray(values, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(typed), [None, pa.py_buffer(typed)])


def make_shard(settings: RunSettings, index: int, count: int, folder: Path) -> Shard:
    """Play the first `count` games of shard `index` and write them to `folder`, atomically."""
    first = index * settings.shard_games
    table = play_games(settings, first, count)
    run = identity(settings)
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "games",
        "run": run_hash(run),
        "identity": run,
        "index": index,
        "first_game": first,
        "games": count,
        "versions": provenance.versions("numba", "numpy", "pyarrow"),
    }
    path = folder / shard_name(index)
    schema.write_table(path, table, metadata)
    return _describe(path, table, metadata)


def _describe(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> Shard:
    return Shard(
        name=path.name,
        first_game=metadata["first_game"],
        games=metadata["games"],
        rows=len(table),
        simulations=int(schema.numbers(table["simulations"].combine_chunks()).sum(dtype=np.int64)),
        sha256=schema.file_hash(path),
        content_hash=schema.content_hash(table),
    )


@dataclass(frozen=True, kw_only=True)
class Task:
    """One shard still to be made."""

    index: int
    games: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a folder holds of a run and what it lacks."""

    done: list[Shard]
    todo: list[Task]
    damaged: list[str]


def plan(settings: RunSettings, games: int, folder: Path) -> Plan:
    """Look through a folder; every shard found is read with its checksums.

    Raises DataError where the folder holds a run with other settings (naming the differences) or
    files that are not a run's.
    """
    _refuse_foreign(settings, folder)
    done: list[Shard] = []
    todo: list[Task] = []
    damaged: list[str] = []
    for index in range(-(-games // settings.shard_games)):
        count = min(settings.shard_games, games - index * settings.shard_games)
        path = folder / shard_name(index)
        try:
            table, metadata = schema.read_table(path) if path.exists() else (None, {})
        except DataError as error:
            damaged.append(str(error))
            table = None
        if table is not None and metadata.get("index") == index and metadata["games"] == count:
            done.append(_describe(path, table, metadata))
        else:
            todo.append(Task(index=index, games=count))
    return Plan(done=done, todo=todo, damaged=damaged)


def _refuse_foreign(settings: RunSettings, folder: Path) -> None:
    if not folder.exists():
        return
    names = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    shards = sorted(folder.glob("shard-*.parquet"))
    if names and not shards and not {schema.MANIFEST, "config.json"} & set(names):
        raise DataError(f"{folder}: holds files that are no games ({sorted(names)[0]}, ...); choose another --out")
    ours = identity(settings)
    for path in shards:
        try:
            theirs = schema.read_metadata(path).get("identity", {})
        except DataError:
            continue  # damaged: made again
        differences = [
            f"{name} {theirs.get(name)} there, {ours.get(name)} here"
            for name in sorted({*ours, *theirs})
            if ours.get(name) != theirs.get(name)
        ]
        if differences:
            raise DataError(
                f"{folder}: holds a run with other settings ({'; '.join(differences)}); "
                "choose another --out, or --restart to delete it"
            )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one writer; the lock goes with the process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"{folder}: another process is writing here; wait for it, or choose another --out"
            ) from None
        yield


def delete(folder: Path) -> None:
    """Remove a run's files, and nothing else, from a folder."""
    (folder / schema.MANIFEST).unlink(missing_ok=True)
    for path in [*folder.glob("shard-*.parquet"), *folder.glob(".shard-*")]:
        path.unlink()


def finish(settings: RunSettings, shards: list[Shard], folder: Path) -> dict[str, Any]:
    """Declare a run complete: its manifest, written after all its shards."""
    for leftover in folder.glob(".shard-*"):
        leftover.unlink()
    run = identity(settings)
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    manifest = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "games",
        "run": run_hash(run),
        "identity": run,
        "commit": provenance.commit(),
        "versions": provenance.versions("numba", "numpy", "pyarrow"),
        "games": sum(shard.games for shard in ordered),
        "rows": sum(shard.rows for shard in ordered),
        "simulations": sum(shard.simulations for shard in ordered),
        "shards": [dataclasses.asdict(shard) for shard in ordered],
    }
    schema.write_manifest(folder, manifest)
    return manifest


Work = Callable[[RunSettings, int, int, Path], Shard]


def make_locally(
    settings: RunSettings, tasks: list[Task], folder: Path, workers: int, work: Work = make_shard
) -> Iterator[Shard]:
    """Make shards in `workers` processes, yielding each as it is finished, in any order.

    Each worker is a pool of one, so that a death is known to belong to its shard. That shard is
    tried again; after two deaths DataError names it, once all others are made.
    """
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    def new_pool() -> Any:
        return ProcessPoolExecutor(max_workers=1, initializer=_start_worker, initargs=(os.getpid(),))

    waiting, kills, given_up = list(reversed(tasks)), dict.fromkeys(tasks, 0), list[Task]()
    idle = [new_pool() for _ in range(min(workers, len(tasks)))]
    busy: dict[Future[Shard], tuple[Task, Any]] = {}
    try:
        while waiting or busy:
            while waiting and idle:
                task, pool = waiting.pop(), idle.pop()
                busy[pool.submit(work, settings, task.index, task.games, folder)] = (task, pool)
            finished, _ = wait(busy, return_when=FIRST_COMPLETED)
            for future in finished:
                task, pool = busy.pop(future)
                try:
                    shard = future.result()
                except BrokenProcessPool:
                    kills[task] += 1
                    (waiting if kills[task] < KILLS_ALLOWED else given_up).append(task)
                    pool.shutdown(wait=False, kill_workers=True)
                    pool = new_pool()
                else:
                    yield shard
                idle.append(pool)
    finally:
        for pool in [*idle, *(pool for _, pool in busy.values())]:
            pool.shutdown(wait=False, kill_workers=True)
    if given_up:
        names = ", ".join(shard_name(task.index) for task in given_up)
        raise DataError(
            f"{folder}: the worker making {names} died {KILLS_ALLOWED} times (out of memory?); "
            "the other shards are finished; start the command again to retry"
        )


def _start_worker(parent: int) -> None:
    """Ctrl-C is the parent's to handle, and a worker does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

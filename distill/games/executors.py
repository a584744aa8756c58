"""Makes shards in processes of this machine, or on the workers of a Dask cluster.

Both take tasks and yield shards as they are finished, in any order. A worker that dies costs the shard it was making,
which is tried again; a shard whose workers keep dying is named once all others are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from distill.common import DataError, provenance
from distill.common.cluster import Cluster, KilledError
from distill.common.storage import Folder, Storage, storage_of
from distill.common.workers import pool as new_pool
from distill.games.runs import RunSettings, plugin_of
from distill.games.schema import Shard, shard_name
from distill.games.shards import LIBRARIES, Task, make_shard
from distill.mcts import textbook, uct

KILLS_ALLOWED = 2
"""Deaths of local workers after which a shard is given up and reported."""

Work: TypeAlias = Callable[..., Shard]
"""A function with the parameters of `make_shard`."""


def make_locally(
    settings: RunSettings,
    tasks: list[Task],
    out: Path | Storage,
    workers: int,
    work: Work = make_shard,
) -> Iterator[Shard]:
    """Make shards in `workers` processes.

    Each worker is a pool of one, so that a death is known to belong to its shard. Raises DataError for shards whose
    workers have died KILLS_ALLOWED times, once all others are made.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    plugin = plugin_of(settings)
    waiting, kills, given_up = list(reversed(tasks)), dict.fromkeys(tasks, 0), list[Task]()
    idle = [new_pool() for _ in range(min(workers, len(tasks)))]
    busy: dict[Future[Shard], tuple[Task, Any]] = {}
    try:
        while waiting or busy:
            while waiting and idle:
                task, pool = waiting.pop(), idle.pop()
                busy[pool.submit(work, settings, task.index, task.games, out, plugin)] = (task, pool)
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
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
        raise _killers(out, given_up, f"died {KILLS_ALLOWED} times (out of memory?)")


def _killers(out: Path | Storage, tasks: list[Task], deaths: str) -> DataError:
    names = ", ".join(shard_name(task.index) for task in sorted(tasks, key=lambda task: task.index))
    return DataError(
        f"{out}: the worker making {names} {deaths}; the other shards are finished; start the command again to retry"
    )


def make_on_cluster(
    settings: RunSettings,
    tasks: list[Task],
    out: Path | Storage,
    address: str,
    work: Work = make_shard,
) -> Iterator[Shard]:
    """Make shards on the workers of the Dask scheduler at `address`.

    Raises DataError for shards whose workers died again and again, once all others are made. Workers must reach the
    same storage: shards are read back from here.
    """
    storage, plugin = storage_of(out), plugin_of(settings)
    if isinstance(storage, Folder):
        storage = Folder(path=storage.path.resolve())  # workers have working directories of their own
    todo = [(settings, task.index, task.games, storage, plugin) for task in tasks]
    try:
        for _, shard in on_cluster(address, settings.engine).mapped(work, todo):
            _require_stored(storage, shard)
            yield shard
    except KilledError as error:
        raise _killers(
            out, [tasks[number] for number in error.numbers], "died again and again (out of memory?)"
        ) from None


def on_cluster(address: str, engine: str = "compiled") -> Cluster:
    """A cluster whose workers make the bytes that this process would make with this engine."""
    return Cluster(address=address, versions=partial(versions_here, engine))


def versions_here(engine: str) -> dict[str, Any]:
    """The versions that decide the bytes of a shard; the textbook, engine `reference`, may be edited."""
    edited = {"reference": textbook.source_hash()} if engine == "reference" else {}
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION} | edited


def _require_stored(storage: Storage, shard: Shard) -> None:
    """Raise DataError unless this process finds the shard that a worker has written."""
    try:
        found = hashlib.sha256(storage.read(shard.name)).hexdigest()
    except FileNotFoundError:
        found = None
    if found != shard.sha256:
        raise DataError(
            f"{storage}/{shard.name}: a worker has written it, but it is not here: --out must be the same storage for "
            "all machines (a shared folder, or a URL)"
        )

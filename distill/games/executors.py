"""Makes shards in processes of this machine, or on the workers of a Dask cluster.

Both take tasks and yield shards as they are finished, in any order. A worker that dies costs the shard it was making,
which is tried again; a shard whose workers keep dying is named once all others are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, TypeAlias, cast

from distill.common import DataError, UserError, first_line, provenance
from distill.common.workers import pool as new_pool
from distill.games.runs import RunSettings, plugin_of
from distill.games.schema import Shard, shard_name
from distill.games.shards import LIBRARIES, Task, make_shard
from distill.games.storage import Folder, Storage, storage_of
from distill.mcts import uct

KILLS_ALLOWED = 2
"""Deaths of local workers after which a shard is given up and reported."""

CONNECT_SECONDS = 15.0
"""Seconds that a scheduler may take to answer."""

WORKERS_AWAITED = 120.0
"""Seconds that the first worker of a cluster may take to appear."""

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

    Dask gives the shard of a dead worker to another one, and gives up after `distributed.scheduler.allowed-failures`
    (3) deaths. Raises DataError for such shards, once all others are made. Every worker must have the versions of this
    process, on which the bytes depend, and must reach the same storage: shards are read back from here.
    """
    client = _connected(address)
    import distributed
    from distributed.scheduler import KilledWorker

    storage, plugin = storage_of(out), plugin_of(settings)
    if isinstance(storage, Folder):
        storage = Folder(path=storage.path.resolve())  # workers have working directories of their own
    suspects, completed = tasks, cast(Any, distributed.as_completed)
    try:
        _check_workers(client, address)
        # Dask blames every shard that waited on a worker that died: the shards it gives up are tried again, one by one.
        for at_once in (len(tasks), 1):
            waiting, suspects = suspects, []
            for first in range(0, len(waiting), at_once):
                made = {
                    client.submit(work, settings, task.index, task.games, storage, plugin, pure=False): task
                    for task in waiting[first : first + at_once]
                }
                with client.as_current():
                    finished = completed([*made])
                for future in finished:
                    try:
                        shard = future.result()
                    except KilledWorker:
                        suspects.append(made[future])
                        continue
                    _require_stored(storage, shard)
                    yield shard
    except distributed.CancelledError:
        raise UserError(f"--cluster {address}: the scheduler is gone; start the command again") from None
    finally:
        client.close(timeout=5)
    if suspects:
        raise _killers(out, suspects, "died again and again (out of memory?)")


def check_cluster(address: str) -> None:
    """Raise UserError where `make_on_cluster` would find no scheduler, no worker, or workers of other versions."""
    client = _connected(address)
    try:
        _check_workers(client, address)
    finally:
        client.close(timeout=5)


def _connected(address: str) -> Any:
    """A client of the scheduler at this address."""
    try:
        import distributed
    except ImportError:
        raise UserError(f"--cluster needs the extra cluster: {provenance.install_line('cluster')}") from None
    start: Any = distributed.Client
    try:
        return start(address, timeout=CONNECT_SECONDS, set_as_default=False, name="distill")
    except (OSError, ValueError) as error:
        raise UserError(f"--cluster {address}: no scheduler answers there ({first_line(error)})") from None


def _check_workers(client: Any, address: str) -> None:
    """Raise UserError unless the cluster has a worker and all have the versions of this process."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_AWAITED)
        found = client.run(versions_here)
    except TimeoutError:
        raise UserError(f"--cluster {address}: no worker there after {WORKERS_AWAITED:.0f} s") from None
    except Exception as error:  # whatever a worker without the package raises
        raise UserError(f"--cluster {address}: a worker cannot run distill ({first_line(error)})") from None
    ours = versions_here()
    for worker, theirs in sorted(found.items()):
        differences = [
            f"{key} {theirs.get(key)} there, {ours[key]} here" for key in ours if theirs.get(key) != ours[key]
        ]
        if differences:
            raise UserError(f"--cluster {address}: worker {worker} would write other bytes ({'; '.join(differences)})")


def versions_here() -> dict[str, Any]:
    """The versions that decide the bytes of a shard."""
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION}


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

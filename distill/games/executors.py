"""Mapping the shard function over processes of this machine, or over the workers of a Dask cluster.

Both take tasks and yield shards as they are finished, in any order. A worker that dies costs the shard it was
making, which is tried again; a shard whose workers keep dying is named once all others are made.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any

from distill.common import DataError, UserError, first_line, provenance
from distill.common.workers import pool as new_pool
from distill.games.schema import Shard
from distill.games.shards import LIBRARIES, RunSettings, Task, make_shard, shard_name
from distill.games.storage import Folder, Storage, storage_of
from distill.mcts import teacher

KILLS_ALLOWED = 2
"""A shard whose local worker dies this often is given up and reported."""

TASKS_A_THREAD = 3
"""Shards a cluster has in hand for each of its threads: enough that none waits for the next one."""

POLL_SECONDS = 1.0
"""Seconds between two readings of the progress of unfinished shards."""

CONNECT_SECONDS = 15.0
WORKERS_AWAITED = 120.0
"""Seconds a scheduler may take to answer, and a cluster may be without any worker."""

Work = Callable[[RunSettings, int, int, Path | Storage], Shard]
Watch = Callable[[Iterable[Task]], object]
"""Told now and then which shards are being made."""


def unwatched(_tasks: Iterable[Task]) -> None:
    """The `Watch` that does nothing."""


def make_locally(
    settings: RunSettings,
    tasks: list[Task],
    folder: Path | Storage,
    workers: int,
    work: Work = make_shard,
    watch: Watch = unwatched,
) -> Iterator[Shard]:
    """Make shards in `workers` processes, yielding each as it is finished, in any order.

    Each worker is a pool of one, so that a death is known to belong to its shard. That shard is
    tried again; after two deaths DataError names it, once all others are made.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    waiting, kills, given_up = list(reversed(tasks)), dict.fromkeys(tasks, 0), list[Task]()
    idle = [new_pool() for _ in range(min(workers, len(tasks)))]
    busy: dict[Future[Shard], tuple[Task, Any]] = {}
    try:
        while waiting or busy:
            while waiting and idle:
                task, pool = waiting.pop(), idle.pop()
                busy[pool.submit(work, settings, task.index, task.games, folder)] = (task, pool)
            finished, _ = wait(busy, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            watch(task for task, _ in busy.values())
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
        raise _killers(folder, given_up, f"died {KILLS_ALLOWED} times (out of memory?)")


def _killers(folder: Path | Storage, tasks: list[Task], deaths: str) -> DataError:
    names = ", ".join(shard_name(task.index) for task in sorted(tasks, key=lambda task: task.index))
    return DataError(
        f"{folder}: the worker making {names} {deaths}; the other shards are finished; start the command again to retry"
    )


def make_on_cluster(
    settings: RunSettings,
    tasks: list[Task],
    folder: Path | Storage,
    address: str,
    work: Work = make_shard,
    watch: Watch = unwatched,
) -> Iterator[Shard]:
    """Make shards on the workers of the Dask scheduler at `address`, yielding each as it is finished.

    Dask itself gives the shard of a dead worker to another one, and up after `distributed.scheduler.allowed-failures`
    (3) of them: DataError names such shards, once all others are made. Every worker must have the versions this process
    has, on which the bytes depend, and must reach the same place: what it wrote is read back from here.
    """
    client = _connected(address)
    from distributed.scheduler import KilledWorker

    place = storage_of(folder)
    if isinstance(place, Folder):
        place = Folder(path=place.path.resolve())  # workers have working directories of their own
    suspects, busy = list(tasks), dict[Any, Task]()
    try:
        threads = _threads(client, address)
        # Dask blames every shard that waited on a worker that died: those it gives up are tried once more, each alone.
        for in_hand in (TASKS_A_THREAD * threads, 1):
            waiting, suspects = list(reversed(suspects)), []
            while waiting or busy:
                while waiting and len(busy) < in_hand:
                    task = waiting.pop()
                    busy[client.submit(work, settings, task.index, task.games, place, pure=False)] = task
                for future in _finished(client, address, list(busy), lambda: watch(busy.values())):
                    task = busy.pop(future)
                    try:
                        shard = future.result()
                    except KilledWorker:
                        suspects.append(task)
                        continue
                    _require_there(place, shard)
                    yield shard
    finally:
        if client.status == "running":
            client.cancel(list(busy), force=True)
        client.close(timeout=5)
    if suspects:
        raise _killers(folder, suspects, "died again and again (out of memory?)")


def check_cluster(address: str) -> None:
    """Raise UserError where `make_on_cluster` would find no scheduler, no worker, or workers of other versions."""
    client = _connected(address)
    try:
        _threads(client, address)
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


def _finished(client: Any, address: str, futures: list[Any], watch: Callable[[], object]) -> list[Any]:
    """Those of the futures that are done, once one is; `watch` is called meanwhile.

    Raises UserError where scheduler or workers are gone.
    """
    import distributed

    wait_for: Any = distributed.wait
    last_worker = time.monotonic()
    while True:
        try:
            with client.as_current():
                wait_for(futures, timeout=5, return_when="FIRST_COMPLETED")
        except TimeoutError:
            watch()
        except distributed.CancelledError:
            raise UserError(f"--cluster {address}: the scheduler is gone; start the command again") from None
        if client.status != "running" or any(future.cancelled() for future in futures):
            raise UserError(f"--cluster {address}: the scheduler is gone; start the command again")
        if done := [future for future in futures if future.done()]:
            return done
        if client.nthreads():
            last_worker = time.monotonic()
        elif time.monotonic() - last_worker > WORKERS_AWAITED:
            raise UserError(f"--cluster {address}: no worker left; start some, then the command again")


def _threads(client: Any, address: str) -> int:
    """Threads of the cluster, once it has a worker and all of them have the versions of this process."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_AWAITED)
    except TimeoutError:
        raise UserError(f"--cluster {address}: no worker there after {WORKERS_AWAITED:.0f} s") from None
    try:
        found = client.run(versions_here)
    except Exception as error:  # whatever a worker without the package raises
        raise UserError(f"--cluster {address}: a worker cannot run distill ({first_line(error)})") from None
    ours = versions_here()
    for worker, theirs in sorted(found.items()):
        unlike = [f"{key} {theirs.get(key)} there, {ours[key]} here" for key in ours if theirs.get(key) != ours[key]]
        if unlike:
            raise UserError(f"--cluster {address}: worker {worker} would write other bytes ({'; '.join(unlike)})")
    return sum(client.nthreads().values())


def versions_here() -> dict[str, Any]:
    """What the bytes of a shard depend on beside its settings."""
    return provenance.versions(*LIBRARIES) | {"search_version": teacher.SEARCH_VERSION}


def _require_there(place: Storage, shard: Shard) -> None:
    """Raise DataError unless the shard that a worker has written lies where this process finds it."""
    try:
        found = hashlib.sha256(place.read(shard.name)).hexdigest()
    except FileNotFoundError:
        found = None
    if found != shard.sha256:
        raise DataError(
            f"{place}/{shard.name}: a worker has written it, but it is not here: --out must be the same place for all "
            "machines (a shared folder, or a URL)"
        )

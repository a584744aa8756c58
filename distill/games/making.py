"""Makes the missing shards of a run in processes of this machine or on a Dask cluster, with the same bytes.

A worker that dies costs the shards in flight, which are made again; shards that keep killing their workers are named
once all others are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from distill.common import DataError, cores, executors, provenance
from distill.common.executors import Cluster, KilledError, Workers
from distill.common.storage import Folder, Storage, storage_of
from distill.games.runs import RunSettings, plugin_of
from distill.games.schema import Shard, shard_name
from distill.games.shards import LIBRARIES, Task, make_shard
from distill.mcts import uct

Work: TypeAlias = Callable[..., Shard]
"""A function with the parameters of `make_shard`."""


def make(
    workers: Workers, settings: RunSettings, tasks: list[Task], out: Path | Storage, work: Work = make_shard
) -> Iterator[Shard]:
    """Make shards; yields each as it comes. Workers must reach the same storage: shards are read back from here.

    Raises DataError for shards whose workers died at every try, once all others are made.
    """
    storage, plugin = storage_of(out), plugin_of(settings)
    if isinstance(storage, Folder):
        storage = Folder(path=storage.path.resolve())  # workers of a cluster have other working directories
    calls = [(settings, task.index, task.games, storage, plugin) for task in tasks]
    try:
        for _, shard in executors.completed(workers, work, calls):
            if isinstance(workers, Cluster) and not _is_here(storage, shard):
                raise DataError(
                    f"{storage}/{shard.name}: a worker has written it, but it is not here: --out must be the same "
                    "storage for all machines (a shared folder, or a URL)"
                )
            yield shard
    except KilledError as error:
        names = ", ".join(shard_name(tasks[number].index) for number in error.numbers)
        raise DataError(f"{out}: {names}: {error}; all other shards are finished; start the command again") from error


def workers_of(number: int | None, tasks: int, cluster: str | None) -> Workers:
    """Workers for so many tasks, started: of a cluster, or processes, by default one per core.

    Raises UserError where they cannot be started.
    """
    if cluster:
        return on_cluster(cluster)
    return executors.started(max(1, min(number or cores(), tasks)))


def on_cluster(address: str) -> Cluster:
    """The workers of a cluster that search as this process does."""
    return Cluster(address, versions_here)


def versions_here() -> dict[str, Any]:
    """The versions that decide the bytes of a shard."""
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION}


def _is_here(storage: Storage, shard: Shard) -> bool:
    """Whether this process finds the shard that a worker has written."""
    content = storage.read(shard.name) if shard.name in storage.names() else b""
    return hashlib.sha256(content).hexdigest() == shard.sha256

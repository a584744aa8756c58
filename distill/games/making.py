"""Makes the missing shards of a run in processes of this machine or on a Dask cluster, with the same bytes.

Workers return the files of their shards, which one process writes, so that no worker needs the folder. A worker
that dies costs the shards in flight, which are made again; shards that keep killing their workers are named once all
others are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from distill.common import DataError, cores, executors, provenance
from distill.common.cluster import Cluster
from distill.common.executors import KilledError, Workers
from distill.games.runs import RunSettings, plugin_of
from distill.games.schema import Shard
from distill.games.shards import LIBRARIES, Task, make_shard
from distill.mcts import uct


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
    plugin = plugin_of(settings)
    calls = [(settings, run, task, plugin) for task in tasks]
    try:
        for _, shard in executors.completed(workers, work, calls):
            yield shard
    except KilledError as error:
        names = ", ".join(tasks[number].name for number in error.numbers)
        todo = "all other shards are finished; start the command again"
        raise DataError(f"{names}: {error}; {todo}") from error


def workers_of(number: int | None, tasks: int, cluster: str | None) -> Workers:
    """Workers for so many tasks, started: of a cluster, or processes, by default one per core.

    Raises UserError where they cannot be started.
    """
    return on_cluster(cluster) if cluster else executors.started(max(1, min(number or cores(), tasks)))


def on_cluster(address: str) -> Cluster:
    """The workers of a cluster that search as this process does."""
    return Cluster(address, versions_here)


def versions_here() -> dict[str, Any]:
    """The versions that decide the bytes of a shard."""
    return provenance.versions(*LIBRARIES) | {"search_version": uct.SEARCH_VERSION}

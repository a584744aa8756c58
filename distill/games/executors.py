"""Makes shards on workers: processes of this machine, or those of a Dask cluster. They share no folder with this one.

A worker that dies costs the shard it was making, which is tried again; a shard whose workers keep dying is named once
all others are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from distill.common import DataError, provenance
from distill.common.cluster import Cluster
from distill.common.workers import KilledError, Workers
from distill.games import shards
from distill.games.runs import RunSettings, plugin_of
from distill.games.schema import Shard, shard_name
from distill.games.shards import LIBRARIES, Task
from distill.games.storage import Storage
from distill.mcts import puct, uct


def make(settings: RunSettings, tasks: Sequence[Task], out: Storage, workers: Workers) -> Iterator[Shard]:
    """Make shards on `workers` and store them; yields each once it is stored, in any order.

    Raises DataError for shards whose workers died again and again, once all others are made.
    """
    plugin = plugin_of(settings)
    todo = [(settings, task.index, task.games, plugin) for task in tasks]
    try:
        for _, (shard, content) in workers.mapped(shards.make_shard, todo):
            out.write(shard.name, content)
            yield shard
    except KilledError as error:
        names = ", ".join(sorted(shard_name(tasks[number].index) for number in error.numbers))
        raise DataError(
            f"{out}: the worker making {names} died again and again (out of memory?); the other shards are finished; "
            "start the command again to retry"
        ) from None


def on_cluster(address: str) -> Cluster:
    """A cluster whose workers compute what this process would compute."""
    return Cluster(address=address, versions=versions_here)


def versions_here() -> dict[str, Any]:
    """The versions that decide what searches and networks compute."""
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    searches = {"search_version": uct.SEARCH_VERSION, "puct_version": puct.PUCT_VERSION, "backend": backend}
    return provenance.versions(*LIBRARIES, "keras", backend) | searches

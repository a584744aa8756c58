"""Throughput of a Dask cluster of separate processes against the local pool, with as many workers each.

    python benchmarks/cluster.py --games 400 --rounds 3

Both make the same run in fresh folders, in turn; the shards' hashes are compared. The pool's time includes starting its
processes, as in every command; the cluster is there already, and its time includes connecting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import distributed

from distill.games import executors, shards
from distill.games.runs import RunSettings
from distill.games.schema import Shard
from distill.games.shards import Task
from distill.mcts import compiling


def timed(
    makes: str, settings: RunSettings, tasks: list[Task], address: str, workers: int
) -> tuple[float, list[Shard]]:
    """Seconds for all tasks, and the shards."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        if makes == "cluster":
            made = list(executors.make_on_cluster(settings, tasks, Path(folder), address))
        else:
            made = list(executors.make_locally(settings, tasks, Path(folder), workers))
        return time.perf_counter() - began, sorted(made, key=lambda shard: shard.first_game)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--shard-games", type=int, default=20)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    settings = RunSettings(simulations=arguments.simulations, shard_games=arguments.shard_games)
    count = shards.shard_count(arguments.games, arguments.shard_games)
    tasks = [Task(index=index, games=arguments.shard_games) for index in range(count)]
    compiling.compile_search("uct")
    seconds: dict[str, list[float]] = {"pool": [], "cluster": []}
    with distributed.LocalCluster(
        n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        timed("cluster", settings, tasks[: arguments.workers], cluster.scheduler_address, arguments.workers)
        for _ in range(arguments.rounds):
            results = {}
            for makes, times in seconds.items():
                taken, results[makes] = timed(makes, settings, tasks, cluster.scheduler_address, arguments.workers)
                times.append(taken)
            assert results["pool"] == results["cluster"], "other bytes"

    games = count * arguments.shard_games
    figures = {
        f"{makes}_games_per_worker_hour": games / statistics.median(times) / arguments.workers * 3600
        for makes, times in seconds.items()
    }
    figures["cluster_to_pool"] = statistics.median(
        pool / cluster for pool, cluster in zip(seconds["pool"], seconds["cluster"], strict=True)
    )
    print(f"{games} games of {arguments.simulations:,} x 3, {arguments.workers} workers, median of {arguments.rounds}")
    for makes in seconds:
        print(f"{makes:8} {figures[f'{makes}_games_per_worker_hour']:>10,.0f} games/h a worker")
    print(f"cluster against pool, paired: {figures['cluster_to_pool']:.3f}")
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()

"""Networks that play on a Dask cluster of two real worker processes, which share no folder with this one. Properties:

- games and runs have the bytes, weights and moves of local ones;
- a worker killed while it plays costs its shards (shards that kill every worker: `games/test_cluster`);
- workers of other versions are refused, and a restart deletes nothing before they are known.
"""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers import same_record, shard_hashes, state
from network_helpers import same
from selfplay_helpers import games_of, metrics_of, tiny

from distill import selfplay
from distill.alphazero import workers
from distill.common import UserError
from distill.common import cluster as cluster_module
from distill.games.shards import Task
from distill.networks import saved
from distill.training import history


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("network") / "net.keras"
    tiny().save(path)
    return path


@pytest.fixture(scope="module")
def flags(network):
    words = ["--games-only", "--init", str(network), "--games", "10", "--set", "shard_games=2", "--simulations", "6"]
    return [*words, "--out"]


@pytest.fixture(scope="module")
def alone(flags, tmp_path_factory):
    """The games of a local run."""
    folder = tmp_path_factory.mktemp("alone")
    assert selfplay.main([*flags, str(folder), "--workers", "1"]) == 0
    return folder


def test_a_cluster_plays_the_bytes_of_a_local_run(alone, flags, tmp_path, cluster, capsys):
    command = [*flags, str(tmp_path), "--cluster", cluster.scheduler_address]
    assert selfplay.main(command) == 0
    assert len(shard_hashes(tmp_path)) == 5
    assert shard_hashes(tmp_path) == shard_hashes(alone)
    assert same_record(tmp_path, alone)
    assert selfplay.main(command) == 0
    assert "finished before: 10 games" in capsys.readouterr().out


def test_a_whole_run_gives_the_weights_of_a_local_one(network, tmp_path, cluster, small_networks, eagerly, monkeypatch):
    monkeypatch.setattr(history, "write", lambda *_: None)
    words = ["--preset", "smoke", "--set", "eval_boards=5", "--init", str(network)]
    here, there = tmp_path / "here", tmp_path / "there"
    assert selfplay.main([*words, "--out", str(here), "--workers", "1"]) == 0
    assert selfplay.main([*words, "--out", str(there), "--cluster", cluster.scheduler_address]) == 0
    assert games_of(there) == games_of(here) != []
    assert metrics_of(there) == metrics_of(here)
    assert same(*(saved.load_core(run / "best.keras").get_weights() for run in (here, there)))


def test_workers_with_another_backend_are_refused_before_anything_is_deleted(
    alone, flags, cluster, monkeypatch, capsys
):
    monkeypatch.setattr(workers.shards.uct, "SEARCH_VERSION", -1)
    before = state(alone)
    command = [*flags, str(alone), "--cluster", cluster.scheduler_address, "--restart"]
    assert selfplay.main(command) == 1
    assert "would write other bytes (search_version" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(UserError, match="backend tensorflow there, jax here"):
        cluster_module.Cluster(cluster.scheduler_address, workers.versions_here)
    assert state(alone) == before


def alone_or_die(marker: Path, work: Any, todo: list[Task], *arguments: Any) -> Any:
    """A worker that is killed when it first tries shard 1."""
    if any(task.index == 1 for task in todo) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(todo, *arguments)


def test_a_killed_worker_costs_its_task(alone, flags, tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(workers, "alone", partial(alone_or_die, tmp_path / "died"))
    out = tmp_path / "games"
    assert selfplay.main([*flags, str(out), "--cluster", cluster.scheduler_address]) == 0
    assert (tmp_path / "died").exists()
    assert shard_hashes(out) == shard_hashes(alone)

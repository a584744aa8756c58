"""Networks that play on a Dask cluster of two real worker processes, which share no folder with this one. Properties:

- `selfplay --games-only --cluster` writes the bytes of a local run; each worker fetches the network once, by its hash;
- a worker killed while it plays costs its shards; shards that kill every worker are named and all others are made;
- a whole run with its arena, and one that learns meanwhile, give the games and weights of a local run;
- workers with another backend are refused, and a restart deletes nothing before they are found;
- `evaluate --cluster` shares long searches, with the same moves.
"""

import hashlib
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers import same_record, shard_hashes, state
from network_helpers import same
from selfplay_helpers import games_of, metrics_of, tiny

from distill import evaluate, selfplay
from distill.alphazero import games, run_files, workers
from distill.common import UserError, executors, run_folder
from distill.common import cluster as cluster_module
from distill.games.shards import Task
from distill.networks import saved

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.logging.distributed": "critical"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as started,
    ):
        yield started


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


def received() -> list[str]:
    """On a worker: the names of the files that it was sent."""
    return sorted(path.name for path in Path(cluster_module._folder().name).iterdir())


def test_a_cluster_plays_the_bytes_of_a_local_run(alone, flags, network, tmp_path, cluster, capsys):
    command = [*flags, str(tmp_path), "--cluster", cluster.scheduler_address]
    assert selfplay.main(command) == 0
    assert len(shard_hashes(tmp_path)) == 5
    assert shard_hashes(tmp_path) == shard_hashes(alone)
    assert same_record(tmp_path, alone)
    assert run_folder.read(tmp_path).settings["machine"]["cluster"] is None
    assert selfplay.main(command) == 0
    assert "finished before: 10 games" in capsys.readouterr().out
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        names = client.run(received)
    assert len(names) == 2
    assert {tuple(each) for each in names.values()} == {(hashlib.sha256(network.read_bytes()).hexdigest() + ".keras",)}


def play_or_die(marker: Path, player: games.Player, todo: list[Task], *arguments: Any) -> dict[str, bytes | None]:
    """A worker that is killed at the first try of shard 1."""
    if any(task.index == 1 for task in todo) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return games.play(player, todo, *arguments)


def die(player: games.Player, todo: list[Task], *arguments: Any) -> dict[str, bytes | None]:
    """A worker that is killed whenever it tries shard 1."""
    if any(task.index == 1 for task in todo):
        os.kill(os.getpid(), signal.SIGKILL)
    return games.play(player, todo, *arguments)


@pytest.mark.parametrize("place", ["here", "cluster"])
def test_a_killed_worker_costs_its_task(alone, flags, tmp_path, cluster, monkeypatch, place):
    monkeypatch.setattr(games, "play", partial(play_or_die, tmp_path / "died"))
    out, where = tmp_path / "games", ["--cluster", cluster.scheduler_address]
    assert selfplay.main([*flags, str(out), *(["--workers", "1"] if place == "here" else where)]) == 0
    assert (tmp_path / "died").exists()
    assert shard_hashes(out) == shard_hashes(alone)


def test_shards_that_kill_every_worker_are_named_and_all_others_are_made(
    alone, flags, tmp_path, cluster, monkeypatch, capsys
):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2)  # with one worker all shards would be one task
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)  # to restart a worker takes seconds
    monkeypatch.setattr(games, "play", die)
    command = [*flags, str(tmp_path), "--cluster", cluster.scheduler_address]
    assert selfplay.main(command) == 1
    named = capsys.readouterr().err
    assert "shard-00001.parquet" in named
    assert "worker processes died at every try of a task" in named
    left = {name: digest for name, digest in shard_hashes(alone).items() if name not in named}
    assert shard_hashes(tmp_path) == left != {}
    monkeypatch.undo()
    assert selfplay.main(command) == 0
    assert shard_hashes(tmp_path) == shard_hashes(alone)


SMOKE = ["--preset", "smoke", "--set", "eval_boards=5", "--iterations", "2"]


def test_a_run_plays_and_meets_its_champion_there(network, tmp_path, cluster, eagerly, monkeypatch):
    monkeypatch.setattr(run_files, "report", lambda *_: None)
    command = [*SMOKE, "--init", str(network), "--out"]
    assert selfplay.main([*command, str(tmp_path / "here"), "--workers", "1"]) == 0
    assert selfplay.main([*command, str(tmp_path / "there"), "--cluster", cluster.scheduler_address]) == 0
    here, there = (tmp_path / name for name in ("here", "there"))
    assert games_of(there) == games_of(here) != []
    assert metrics_of(there) == metrics_of(here)
    assert all(each["distinct_games"] for each in metrics_of(there))
    weights = [saved.load_core(run / "best.keras").get_weights() for run in (here, there)]
    assert same(*weights)


@pytest.mark.slow
def test_a_network_learns_here_while_others_play_there(
    network, tmp_path, cluster, small_networks, eagerly, monkeypatch
):
    monkeypatch.setattr(run_files, "report", lambda *_: None)
    counts = [{"games": games, "steps": steps} for games, steps in ((4, 0), (4, 2), (4, 2), (0, 2))]
    (tmp_path / "run.json").write_text(json.dumps({"result": {"replay": counts}}))
    values = ("eval_boards=5", "shard_games=2", "batch_size=16", "precision=float32", "teacher_simulations=20")
    words = ["--preset", "hour", "--init", str(network), *(f"--set={value}" for value in values)]
    words += ["--replay", str(tmp_path / "run.json"), "--out"]
    assert selfplay.main([*words, str(tmp_path / "there"), "--cluster", cluster.scheduler_address]) == 0
    assert selfplay.main([*words, str(tmp_path / "here"), "--workers", "1"]) == 0
    assert games_of(tmp_path / "there") == games_of(tmp_path / "here") != []


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
        workers.on_cluster(cluster.scheduler_address)
    assert state(alone) == before


def test_long_searches_are_shared_with_the_same_moves(tmp_path, cluster, undrawn, monkeypatch):
    def graded(out: Path, *more: str) -> Any:
        words = ["uct:50", "--boards", "4", "--sets", "midgame", "--workers", "1", "--out", str(out), *more]
        assert evaluate.main(words) == 0
        return run_folder.result_of(out)["players"]

    here = graded(tmp_path / "here")
    monkeypatch.setattr("distill.players.network.SHARED_SIMULATIONS", 100)
    shared: list[int] = []
    results = executors.results

    def counted(cluster: executors.Workers, work: Any, tasks: Any) -> Any:
        assert isinstance(cluster, cluster_module.Cluster)
        shared.append(len(tasks))
        return results(cluster, work, tasks)

    monkeypatch.setattr(executors, "results", counted)
    assert graded(tmp_path / "there", "--cluster", cluster.scheduler_address) == here
    assert max(shared) > 2

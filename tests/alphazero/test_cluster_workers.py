"""Networks that play on a Dask cluster of two real worker processes, which share no folder with this one. Properties:

- `selfplay --games-only --cluster` writes the bytes of a local run; each worker fetches the network once, by its hash;
- a worker killed while it plays costs its shard, a process here no finished one; a shard that kills every
  worker is named and all others are made;
- a whole run, its arena and the measuring of a plan work there, with the games and weights of a local run;
- workers with another backend are refused, and a restart deletes nothing before they are found;
- `evaluate --cluster` shares long searches, with the same moves.
"""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers import same_record, shard_hashes, state
from network_helpers import same
from selfplay_helpers import games_of, metrics_of, tiny

from distill import evaluate, selfplay
from distill.alphazero import plan, run_files, workers
from distill.common import UserError, executors, run_folder
from distill.common import cluster as cluster_module
from distill.games.schema import shard_name
from distill.games.shards import Task
from distill.networks import saved
from distill.players import search

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


def play_or_die(games: workers.Games, task: Task, *network: Path) -> bytes:
    """A worker that is killed at the first try of shard 1."""
    marker = games.folder.parent / "died"
    if task.index == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return workers.play_apart(games, task, *network)


def die(games: workers.Games, task: Task, *network: Path) -> bytes:
    """A worker that is killed whenever it tries shard 1."""
    if task.index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return workers.play_apart(games, task, *network)


def play_one_and_die(games: workers.Games, todo: list[Task], replaced: set[Task]) -> None:
    """A process that is killed at its first try, after one shard."""
    marker = games.folder.parent / f"died-{todo[0].index}"
    if not marker.exists():
        workers.play(games, todo[:1])
        marker.write_text(str((games.folder / shard_name(todo[0].index)).stat().st_mtime_ns))
        os.kill(os.getpid(), signal.SIGKILL)
    workers.play(games, todo, replaced)
    kept = (games.folder / shard_name(todo[0].index)).stat().st_mtime_ns
    assert str(kept) == marker.read_text(), "a finished shard was played again"


def test_a_killed_process_here_costs_no_finished_shard(alone, flags, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "play", play_one_and_die)
    out = tmp_path / "games"
    assert selfplay.main([*flags, str(out), "--workers", "1"]) == 0
    assert (tmp_path / "died-0").exists()
    assert shard_hashes(out) == shard_hashes(alone)


def test_a_killed_worker_costs_its_shard(alone, flags, tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(workers, "play_apart", play_or_die)
    out = tmp_path / "games"
    assert selfplay.main([*flags, str(out), "--cluster", cluster.scheduler_address]) == 0
    assert (tmp_path / "died").exists()
    assert shard_hashes(out) == shard_hashes(alone)


def test_a_shard_that_kills_every_worker_is_named_and_all_others_are_made(
    alone, flags, tmp_path, cluster, monkeypatch, capsys
):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)  # to restart a worker takes seconds
    monkeypatch.setattr(workers, "play_apart", die)
    command = [*flags, str(tmp_path), "--cluster", cluster.scheduler_address]
    assert selfplay.main(command) == 1
    assert "shard-00001.parquet: worker processes died at every try of a task" in capsys.readouterr().err
    expected = shard_hashes(alone)
    del expected["shard-00001.parquet"]
    assert shard_hashes(tmp_path) == expected
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
def test_a_plan_is_made_by_measuring_the_cluster_and_followed_there(
    network, tmp_path, cluster, small_networks, eagerly, monkeypatch
):
    monkeypatch.setattr(plan, "MEASURED_SECONDS", 0.2)
    monkeypatch.setattr(run_files, "report", lambda *_: None)
    step = plan.Step(games=4, root="puct", simulations=4, noise_fraction=0.0, steps=2)
    small = plan.Plan(
        minutes=1, workers=2, teacher_games=4, measured={}, iterations=(step, step, step.replace(games=0))
    )
    made: list[plan.Plan] = []
    make = plan.make
    monkeypatch.setattr(plan, "make", lambda *given: made.append(make(*given)) or small)
    values = ("eval_boards=5", "shard_games=2", "batch_size=16", "precision=float32", "teacher_simulations=20")
    words = ["--preset", "hour", "--minutes", "6", "--init", str(network), *(f"--set={value}" for value in values)]
    assert selfplay.main([*words, "--cluster", cluster.scheduler_address, "--out", str(tmp_path / "there")]) == 0
    assert made[0].workers == 2
    assert min(vars(made[0].measured).values()) > 0
    assert selfplay.main([*words, "--workers", "1", "--out", str(tmp_path / "here")]) == 0
    assert games_of(tmp_path / "there") == games_of(tmp_path / "here") != []


def test_workers_with_another_backend_are_refused_before_anything_is_deleted(
    alone, flags, cluster, monkeypatch, capsys
):
    monkeypatch.setattr(workers.making.uct, "SEARCH_VERSION", -1)
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
    monkeypatch.setattr(search, "SHARED_SIMULATIONS", 100)
    shared: list[int] = []
    results = executors.results

    def counted(cluster: executors.Workers, work: Any, tasks: Any) -> Any:
        assert isinstance(cluster, cluster_module.Cluster)
        shared.append(len(tasks))
        return results(cluster, work, tasks)

    monkeypatch.setattr(executors, "results", counted)
    assert graded(tmp_path / "there", "--cluster", cluster.scheduler_address) == here
    assert max(shared) > 2

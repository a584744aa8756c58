"""A run that ends by the clock (`selfplay --minutes`), and one that repeats it (`--repeat`). Properties:

- it leaves what it promises when its minutes are over, and gives up the games in flight;
- its clock counts finished iterations, and games that end late once;
- a repetition gives the same games and weights, whether one worker plays or three, and where it was interrupted.
"""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import change_record
from network_helpers import killed_at
from selfplay_helpers import forget_last, games_of, metrics_of, read, repeat_of

from distill import selfplay
from distill.alphazero import grades, loop, run_files, workers
from distill.alphazero.workers import WorkerPlay
from distill.common import executors, run_folder
from distill.common.executors import Workers
from distill.games import reader
from distill.networks import finding, saved
from distill.networks.evaluator import weights_hash
from distill.training import checkpoint, history

SEARCHES = [
    {"start": 0, "root": "gumbel", "simulations": 4, "noise_fraction": 0.25},
    {"start": 0.5, "root": "puct", "simulations": 6, "noise_fraction": 0.0},
]
SET = ("eval_boards=5", "shard_games=2", "lanes=6", "batch_size=16", "precision=float32", "teacher_simulations=20")
FLAGS = ["--preset", "hour", *(f"--set={value}" for value in SET), f"--set=stages={json.dumps(SEARCHES)}"]
MINUTE = [*FLAGS, "--minutes", "1"]
COUNTS = [{"games": count, "steps": steps} for count, steps in ((6, 0), (6, 3), (6, 4), (0, 2))]


EVALUATORS: dict[Any, Any] = {}  # of all runs here: each takes the weights of a network, and is compiled once


class InThisProcess(Workers):
    """Workers that run their tasks at once in this process, where the tiny networks of the tests are known."""

    def __init__(self, number: int) -> None:
        self.number = number


class Clock:
    """A clock that goes on by a second whenever somebody looks at it."""

    time = 0.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


@pytest.fixture(autouse=True)
def quick(small_networks, eagerly, monkeypatch):
    monkeypatch.setattr(executors, "started", InThisProcess)
    monkeypatch.setattr(workers, "_EVALUATORS", EVALUATORS)
    monkeypatch.setattr(history, "write", lambda *_: None)


@pytest.fixture
def clock(monkeypatch):
    """The clock of the runs."""
    now = Clock()
    monkeypatch.setattr(loop, "run", functools.partial(loop.run, now=now))
    return now


def main(out: Path, *words: str) -> int:
    return selfplay.main([*words, "--out", str(out)])


def outcome(out: Path) -> tuple[Any, ...]:
    """Content hashes of all shards, and the weights that are kept."""
    return games_of(out), weights_hash(saved.load_core(out / finding.BEST))


def minutes_of(out: Path) -> float:
    return float(run_folder.result_of(out)["minutes"])


def test_a_run_by_the_clock_leaves_what_it_promises_and_is_repeated(tmp_path, clock, capsys, complaint, monkeypatch):
    out, again = tmp_path / "run", tmp_path / "again"
    finish, seconds_late = workers.finish, iter([20])

    def finish_late(games: Any) -> Any:
        clock.time += next(seconds_late, 0)
        return finish(games)

    monkeypatch.setattr(workers, "finish", finish_late)  # in the first iteration
    assert main(out, *MINUTE) == 0
    metrics = metrics_of(out)
    assert [row["iteration"] for row in metrics] == [1, 2, 3, 4]
    assert [row["games"] > 0 for row in metrics] == [True, True, True, False]
    assert [row["steps"] > 0 for row in metrics] == [False, True, True, True]
    assert minutes_of(out) == pytest.approx(1, abs=0.15)
    first = checkpoint.load(out)[1]["finished"][0]
    assert first["seconds"] > 20 > 10 > first["saving_seconds"]
    assert all({"optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"} <= {*row} for row in metrics)
    runs = [reader.open_run(folder).identity for folder in sorted(out.glob("iterations/*/games"))]
    assert ["network" in run for run in runs] == [False, False, True]
    assert len({run["seed"] for run in runs}) == 3
    assert runs[2]["simulations"] == metrics[2]["simulations"] == 6
    for folder in out.glob("iterations/*/games"):
        read(folder)

    looks = clock.time
    assert main(again, *FLAGS, "--repeat", str(out / run_folder.RECORD), "--workers", "3") == 0
    assert outcome(again) == outcome(out)
    assert run_folder.result_of(again)["counts"] == run_folder.result_of(out)["counts"]
    assert clock.time - looks < looks / 2, "only the seconds of each iteration are measured"
    inside = complaint(selfplay, *FLAGS, "--repeat", out / run_folder.RECORD, "--restart", "--out", out)
    assert "a run cannot be repeated in its own folder; name another --out" in inside
    assert outcome(again) == outcome(out), "nothing is deleted"

    capsys.readouterr()
    assert main(out, *MINUTE) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    assert "schedule.minutes 1.0 there, 2.0 here" in complaint(selfplay, *FLAGS, "--minutes", 2, "--out", out)
    forget_last(out)
    change_record(out, lambda record: record.update(result=None))
    shutil.rmtree(out / "iterations/0002/games")
    line = complaint(selfplay, *MINUTE, "--out", out)
    assert f"{out}/iterations/0002/games: missing, or not the games that this iteration played" in line


def test_games_in_flight_when_the_time_is_over_are_given_up(tmp_path, clock, monkeypatch):
    """In iteration 3 the third shard is given up, and another worker finishes the fourth one."""
    guided, given_up, out = workers.guided, [], tmp_path / "run"

    def late(config: Any, run: Any, todo: Any, seconds: float, network: Path) -> Any:
        if todo[0].index == 2:
            given_up.append(guided(config, run, todo, -1, network))
            return []
        return guided(config, run, todo, seconds, network)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "guided", late)
        assert main(out, *MINUTE, "--set", "lanes=2") == 0
    assert given_up == [[]]
    assert metrics_of(out)[2]["games"] == 4
    shards = {path.name for path in out.glob("iterations/0003/games/shard*")}
    assert shards == {"shard-00000.parquet", "shard-00001.parquet"}
    assert main(tmp_path / "again", *FLAGS, "--repeat", str(out / run_folder.RECORD)) == 0
    assert outcome(tmp_path / "again") == outcome(out)


def test_an_interrupted_run_has_the_minutes_that_are_left(tmp_path, clock):
    # After the shards of iteration 2 are played, after it has learned and saved, and between two iterations.
    for place, name, call in ((WorkerPlay, "_learn", 2), (grades, "grade", 2), (run_files, "publish", 2)):
        with killed_at(place, name, call):
            main(tmp_path, *MINUTE)
        clock.time += 1e6  # while no process runs
    played = run_folder.read(tmp_path / "iterations/0002/games").result["games"]
    assert main(tmp_path, *MINUTE) == 0
    assert metrics_of(tmp_path)[1]["games"] == played
    assert minutes_of(tmp_path) == pytest.approx(1, abs=0.15)


def test_a_repetition_gives_the_same_weights_however_it_is_run(tmp_path, complaint):
    words = repeat_of(COUNTS, tmp_path / "record.json", *FLAGS)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert main(whole, *words) == 0
    assert [{name: row[name] for name in ("games", "steps")} for row in metrics_of(whole)] == COUNTS
    # In iteration 2 before it learns, in iteration 2 after its games were played, and between iterations.
    for place, name, call in ((WorkerPlay, "_learn", 2), (workers, "finish", 1), (WorkerPlay, "iterate", 2)):
        with killed_at(place, name, call):
            main(stopped, *words, "--workers", "3")
    assert main(stopped, *words, "--workers", "3") == 0
    assert outcome(stopped) == outcome(whole)
    repeat_of(COUNTS[1:], tmp_path / "record.json", *FLAGS)
    assert "repeat" in complaint(selfplay, *words, "--out", stopped)


def test_the_average_plays_and_is_kept(tmp_path):
    """Not the weights that learn, which the checkpoint has."""
    out = tmp_path / "run"
    words = repeat_of(COUNTS, tmp_path / "record.json", *FLAGS, "--set", "ema=0.5")
    with killed_at(WorkerPlay, "iterate", 3):
        main(out, *words)
    kept = saved.load_core(out / finding.BEST)
    learning = checkpoint.load(out)[0][: len(kept.weights)]
    assert not {array.tobytes() for array in kept.get_weights()} & {array.tobytes() for array in learning}
    assert main(out, *words) == 0
    assert reader.open_run(out / "iterations/0003/games").identity["network"] == f"{weights_hash(kept)}-float32"

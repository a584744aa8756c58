"""A run that ends by the clock (`selfplay --minutes`), and one that repeats it (`--replay`). Properties:

- it leaves what it promises: games of the teacher, then of the network, and the metrics of every iteration;
- a finished run says so; other minutes, and missing games, are refused;
- it ends when its minutes are over, and gives up the games in flight;
- its clock counts finished iterations and what an interrupted one has learned;
- a replay gives the same games and weights, whether one worker plays or three, and where it was interrupted;
- later games are played by the averaged network of the iteration before;
- games that nothing learns from any more are deleted where they are not kept, which changes no weights.
"""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import change_record
from network_helpers import same
from selfplay_helpers import games_of, read

from distill import selfplay
from distill.alphazero import games, loop, run_files, workers
from distill.common import executors, run_folder
from distill.common.executors import Workers
from distill.games import reader
from distill.networks import saved
from distill.networks.evaluator import weights_hash
from distill.training import step

SET = ("eval_boards=5", "shard_games=2", "batch_size=16", "precision=float32", "teacher_simulations=20")
SEARCHES = [
    {"start": 0, "root": "gumbel", "simulations": 4, "noise_fraction": 0.25},
    {"start": 0.5, "root": "puct", "simulations": 6, "noise_fraction": 0.0},
]
FLAGS = [
    "--preset",
    "hour",
    "--set",
    "lanes=6",
    *(f"--set={value}" for value in SET),
    f"--set=stages={json.dumps(SEARCHES)}",
    "--out",
]
COUNTS = [{"games": count, "steps": steps} for count, steps in ((6, 0), (6, 3), (6, 4), (0, 2))]


class InThisProcess(Workers):
    """Workers that run their tasks at once in this process, where the tiny networks of the tests are known."""

    def __init__(self, number: int) -> None:
        self.number = number


class Clock:
    """A clock that goes on by some seconds whenever somebody looks at it."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.time = seconds, 0.0

    def __call__(self) -> float:
        self.time += self.seconds
        return self.time


class Stopped(BaseException):
    """Nothing catches it."""


@pytest.fixture(autouse=True)
def quick(small_networks, eagerly, monkeypatch):
    monkeypatch.setattr(executors, "started", InThisProcess)
    monkeypatch.setattr(workers, "_EVALUATORS", {})
    monkeypatch.setattr(run_files, "report", lambda *_: None)


@pytest.fixture
def clock(monkeypatch):
    """The clock of the runs."""
    now = Clock(1)
    monkeypatch.setattr(loop, "run", functools.partial(loop.run, now=now))
    return now


@pytest.fixture
def replay(tmp_path):
    """The flags of a replay of COUNTS."""
    (tmp_path / "other.json").write_text(json.dumps({"result": {"replay": COUNTS}}))
    return ["--replay", str(tmp_path / "other.json"), *FLAGS]


def outcome(out: Path) -> tuple[Any, ...]:
    """Content hashes of all shards, and the weights that are kept."""
    return games_of(out), weights_hash(saved.load_core(out / run_files.BEST))


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("iterations/*/metrics.json"))]


def interrupted(monkeypatch, module: Any, name: str, call: int, *words: str) -> None:
    """Run the command until the n-th call of a function, which ends the process in its place."""
    function, left = getattr(module, name), iter(range(call - 1))

    def called(*arguments: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise Stopped
        return function(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, called)
        with pytest.raises(Stopped):
            selfplay.main([*words])


def test_a_run_by_the_clock_leaves_what_it_promises_and_is_repeated(tmp_path, clock, capsys):
    out, again = tmp_path / "run", tmp_path / "again"
    assert selfplay.main(["--minutes", "1", *FLAGS, str(out)]) == 0
    found = metrics(out)
    assert [each["iteration"] for each in found] == [1, 2, 3, 4]
    assert [each["games"] > 0 for each in found] == [True, True, True, False]
    assert [each["steps"] > 0 for each in found] == [False, True, True, True]
    assert found[-1]["minutes"] == pytest.approx(1, abs=0.15)
    assert all({"optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"} <= {*each} for each in found)
    runs = [reader.open_run(folder).identity for folder in sorted(out.glob("iterations/*/games"))]
    assert ["network" in each for each in runs] == [False, False, True]
    assert len({each["seed"] for each in runs}) == 3
    assert runs[2]["simulations"] == found[2]["simulations"] == 6
    for folder in out.glob("iterations/*/games"):
        read(folder)

    looks = clock.time
    assert selfplay.main(["--replay", str(out / run_folder.RECORD), *FLAGS, str(again), "--workers", "3"]) == 0
    assert outcome(again) == outcome(out)
    assert run_folder.result_of(again)["replay"] == run_folder.result_of(out)["replay"]
    assert clock.time - looks < looks / 2, "only the seconds of each iteration are measured"

    capsys.readouterr()
    assert selfplay.main(["--minutes", "1", *FLAGS, str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    assert selfplay.main(["--minutes", "2", *FLAGS, str(out)]) == 1
    assert "schedule.minutes 1.0 there, 2.0 here" in capsys.readouterr().err
    shutil.move(out / "iterations/0004" / run_files.CANDIDATE, out / "iterations/0003")
    shutil.rmtree(out / "iterations/0004")  # about as it was before the last iteration
    change_record(out, lambda record: record.update(result=None))
    shutil.rmtree(out / "iterations/0002/games")
    assert selfplay.main(["--minutes", "1", *FLAGS, str(out)]) == 1
    assert f"{out}/iterations/0002/games: the games of this iteration are missing" in capsys.readouterr().err


def test_games_in_flight_when_the_time_is_over_are_given_up(tmp_path, clock, monkeypatch):
    """In iteration 3 the third shard is given up, and another worker finishes the fourth one."""
    play, given_up = games.play, []

    def late(
        player: games.Player, todo: Any, seconds: float, folder: Path | None, replaced: Any, *files: Path
    ) -> dict[str, bytes | None]:
        if files and todo[0].index == 2:
            given_up.append(play(player, todo, -1, folder, replaced, *files))
            return {}
        return play(player, todo, seconds, folder, replaced, *files)

    with monkeypatch.context() as patch:
        patch.setattr(games, "play", late)
        words = [word.replace("lanes=6", "lanes=2") for word in FLAGS]
        assert selfplay.main(["--minutes", "1", *words, str(tmp_path / "run")]) == 0
    assert given_up == [{}]
    assert metrics(tmp_path / "run")[2]["games"] == 4
    shards = {path.name for path in tmp_path.glob("run/iterations/0003/games/shard*")}
    assert shards == {"shard-00000.parquet", "shard-00001.parquet"}
    record = str(tmp_path / "run" / run_folder.RECORD)
    assert selfplay.main(["--replay", record, "--restart", *FLAGS, str(tmp_path / "run")]) == 1
    assert selfplay.main(["--replay", record, *FLAGS, str(tmp_path / "again")]) == 0
    assert outcome(tmp_path / "again") == outcome(tmp_path / "run")


def test_an_interrupted_run_has_the_minutes_that_are_left(tmp_path, clock, monkeypatch):
    words = ["--minutes", "1", *FLAGS, str(tmp_path / "run")]
    # After the shards of iteration 2 are played, after it has learned, and between two iterations.
    for module, name, call in ((loop, "learn", 2), (loop, "arena", 1), (run_files, "publish", 2)):
        interrupted(monkeypatch, module, name, call, *words)
        clock.time += 1e6  # while no process runs
    learned = run_folder.read(tmp_path / "run/iterations/0002/games").result["games"]
    assert selfplay.main(words) == 0
    found = metrics(tmp_path / "run")
    assert found[1]["games"] == learned
    assert found[-1]["minutes"] == pytest.approx(1, abs=0.15)


def test_a_replay_gives_the_same_weights_however_it_is_run(replay, tmp_path, monkeypatch, capsys):
    assert selfplay.main([*replay, str(tmp_path / "whole")]) == 0
    expected = outcome(tmp_path / "whole")
    assert [{name: each[name] for name in ("games", "steps")} for each in metrics(tmp_path / "whole")] == COUNTS
    stopped = [*replay, str(tmp_path / "stopped"), "--workers", "3"]
    # In iteration 2 before it learns, in iteration 2 after its games were played, and between iterations.
    for module, name, call in ((loop, "learn", 2), (games, "finish", 1), (loop, "iterate", 2)):
        interrupted(monkeypatch, module, name, call, *stopped)
    assert selfplay.main(stopped) == 0
    assert outcome(tmp_path / "stopped") == expected
    (tmp_path / "other.json").write_text(json.dumps({"result": {"replay": COUNTS[1:]}}))
    assert selfplay.main(stopped) == 1
    assert "replay" in capsys.readouterr().err


def test_games_that_nothing_learns_from_any_more_can_go(replay, tmp_path):
    window = ["--set", "replay.rows=10", "--set", "replay.share=none"]
    assert selfplay.main([*replay, str(tmp_path / "kept"), *window]) == 0
    assert selfplay.main([*replay, str(tmp_path / "gone"), *window, "--set", "keep_games=off"]) == 0
    kept, gone = (
        {path.parent.name for path in (tmp_path / run).glob("iterations/*/games")} for run in ("kept", "gone")
    )
    assert (kept, gone) == ({"0001", "0002", "0003"}, {"0003"})
    assert weights_hash(saved.load_core(tmp_path / "gone" / run_files.BEST)) == outcome(tmp_path / "kept")[1]


def test_the_average_plays_and_is_kept(replay, tmp_path, monkeypatch):
    given: list[tuple[bool, str]] = []
    give = step.copy_learned

    def watched(learner: step.TrainingModel, network: Any) -> None:
        give(learner, network)
        given.append((same(learner.core.get_weights(), network.get_weights()), weights_hash(network)))

    monkeypatch.setattr(step, "copy_learned", watched)
    assert selfplay.main([*replay, str(tmp_path / "run"), "--set", "ema=0.5"]) == 0
    assert [is_the_learner for is_the_learner, _ in given] == [False, False, False]
    network = reader.open_run(tmp_path / "run/iterations/0003/games").identity["network"]
    assert network == f"{given[0][1]}-float32"
    assert weights_hash(saved.load_core(tmp_path / "run" / run_files.BEST)) == given[-1][1]

"""An unattended run (`selfplay --preset hour`): the loop with a plan. Properties:

- it leaves what it promises: its plan, the teacher's games, the network's, metrics of every iteration;
- a finished run says so; another plan, and missing games, are refused;
- the same plan gives the same games and the same weights, whether one worker plays or three, and where the run was
  interrupted in or between iterations; its clock counts what an interrupted process has learned;
- the first games are the teacher's, later ones are played by the averaged network of the iteration before;
- games that nothing learns from any more are deleted where they are not kept, which changes no weights;
- without a stored plan, this machine is measured and the minutes become a plan.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import change_record
from network_helpers import same
from selfplay_helpers import games_of, read

from distill import selfplay
from distill.alphazero import loop, plan, run_files, workers
from distill.common import executors
from distill.common.executors import Workers
from distill.games import reader
from distill.networks import saved
from distill.networks.evaluator import weights_hash
from distill.training import continual, step

SEARCH: dict[str, Any] = {"root": "puct", "noise_fraction": 0.0}
STEPS = (
    plan.Step(games=6, root="gumbel", simulations=4, noise_fraction=0.25, steps=3),
    plan.Step(games=6, simulations=6, steps=4, **SEARCH),
)
PLAN = plan.Plan(
    minutes=1,
    workers=1,
    teacher_games=6,
    iterations=(*STEPS, plan.Step(games=0, simulations=6, steps=2, **SEARCH)),
    measured={},
)
SET = ("eval_boards=5", "lanes=6", "shard_games=2", "batch_size=16", "precision=float32", "teacher_simulations=20")
FLAGS = ["--preset", "hour", *(f"--set={value}" for value in SET)]


class InThisProcess(Workers):
    """Workers that run their tasks at once in this process, where the tiny networks of the tests are known."""

    def __init__(self, number: int) -> None:
        self.number = self.processes = number


@pytest.fixture(autouse=True)
def quick(small_networks, eagerly, monkeypatch):
    monkeypatch.setattr(executors, "started", InThisProcess)
    monkeypatch.setattr(workers, "_EVALUATORS", {})
    monkeypatch.setattr(run_files, "report", lambda *_: None)


@pytest.fixture
def flags(tmp_path):
    plan.write(tmp_path / "given.json", PLAN)
    return [*FLAGS, "--plan", str(tmp_path / "given.json"), "--out"]


def outcome(out: Path) -> tuple[Any, ...]:
    """Content hashes of all shards, and the weights that are kept."""
    return games_of(out), weights_hash(saved.load_core(out / run_files.BEST))


def metrics_of(out: Path) -> list[dict[str, Any]]:
    """The metrics of all iterations, of iteration 0 too."""
    return [json.loads(path.read_text()) for path in sorted(out.glob("iterations/*/metrics.json"))]


def test_a_run_leaves_what_it_promises_and_follows_one_plan(flags, tmp_path, capsys):
    out, other = tmp_path / "run", tmp_path / "other.json"
    assert selfplay.main([*flags, str(out)]) == 0
    said = capsys.readouterr().err
    assert "12 games of the teacher, then 6 of the network's search (gumbel 4, puct 6), 9 steps" in said
    assert "the teacher plays 6 games\n" in said
    assert plan.read(out / run_files.PLAN) == PLAN
    first, *found = metrics_of(out)
    assert [each["games"] for each in found] == [6, 6, 0]
    assert [each["steps"] for each in found] == [3, 4, 2]
    assert all({"optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"} <= {*each} for each in found)
    minutes = [each["minutes"] for each in (first, *found)]
    assert minutes == sorted(minutes)
    folders = sorted(out.glob("iterations/000[012]/games"))
    identities = [reader.open_run(folder).identity for folder in folders]
    assert ["network" in each for each in identities] == [False, False, True]
    assert identities[0]["seed"] != identities[1]["seed"]
    assert identities[2]["simulations"] == 6
    for folder in folders:
        read(folder)
    assert selfplay.main([*flags, str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    plan.write(other, PLAN.replace(teacher_games=8))
    assert selfplay.main([*flags[:-2], str(other), "--out", str(out)]) == 1
    assert f"{out}: follows another plan than {other}" in capsys.readouterr().err
    shutil.move(out / "iterations/0003" / run_files.CANDIDATE, out / "iterations/0002")
    shutil.rmtree(out / "iterations/0003")  # about as it was before the last iteration
    change_record(out, lambda record: record.update(result=None))
    for place in ("0000/games", "0001/games"):
        shutil.rmtree(out / "iterations" / place)
        assert selfplay.main([*flags, str(out)]) == 1
        assert f"{out}/iterations/{place}: the games of this iteration are missing" in capsys.readouterr().err


def test_the_same_plan_gives_the_same_weights_however_it_is_run(flags, tmp_path, monkeypatch):
    assert selfplay.main([*flags, str(tmp_path / "whole")]) == 0
    expected = outcome(tmp_path / "whole")
    assert selfplay.main([*flags, str(tmp_path / "three"), "--workers", "3"]) == 0
    assert outcome(tmp_path / "three") == expected

    stopped, late, learn, now = tmp_path / "stopped", [0.0], continual.learn, time.monotonic

    def slowly(*arguments: Any) -> dict[str, float]:
        late[0] += 600
        return learn(*arguments)

    monkeypatch.setattr(continual, "learn", slowly)
    monkeypatch.setattr(time, "monotonic", lambda: now() + late[0])
    # in iteration 2 before it learns, in iteration 1 after its games were played, and between iterations
    for module, where, call in ((loop, "learn", 2), (workers, "finish", 1), (loop, "iterate", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(module, where, _interrupted(getattr(module, where), call))
            with pytest.raises(Stopped):
                selfplay.main([*flags, str(stopped)])
    (tmp_path / "given.json").unlink()  # the run has its own
    assert selfplay.main([*flags, str(stopped)]) == 0
    assert outcome(stopped) == expected
    minutes = [each["minutes"] for each in metrics_of(stopped)]
    assert all(9.9 < minutes[number + 1] - minutes[number] < 11 for number in range(3)), "each learned ten minutes"


def test_games_that_nothing_learns_from_any_more_can_go(flags, tmp_path):
    window = ["--set", "replay.rows=10", "--set", "replay.share=none"]
    assert selfplay.main([*flags, str(tmp_path / "kept"), *window]) == 0
    assert selfplay.main([*flags, str(tmp_path / "gone"), *window, "--set", "keep_games=off"]) == 0
    kept, gone = (
        {path.parent.name for path in (tmp_path / run).glob("iterations/*/games")} for run in ("kept", "gone")
    )
    assert kept == {"0000", "0001", "0002"}
    assert {"0002"} <= gone <= kept - {"0000"}
    assert weights_hash(saved.load_core(tmp_path / "gone" / run_files.BEST)) == outcome(tmp_path / "kept")[1]


class Stopped(BaseException):
    """Nothing catches it."""


def _interrupted(function: Any, call: int) -> Any:
    """The function, whose n-th call ends the run in its place."""
    left = iter(range(call - 1))

    def called(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise Stopped
        return function(*arguments)

    return called


def test_the_average_plays_and_is_kept(flags, tmp_path, monkeypatch):
    given: list[tuple[bool, str]] = []
    give = step.copy_learned

    def watched(learner: step.TrainingModel, network: Any) -> None:
        give(learner, network)
        given.append((same(learner.core.get_weights(), network.get_weights()), weights_hash(network)))

    monkeypatch.setattr(step, "copy_learned", watched)
    assert selfplay.main([*flags, str(tmp_path / "run"), "--set", "ema=0.5"]) == 0
    assert [is_the_learner for is_the_learner, _ in given] == [False, False, False]
    network = reader.open_run(tmp_path / "run/iterations/0002/games").identity["network"]
    assert network == f"{given[0][1]}-float32"
    assert weights_hash(saved.load_core(tmp_path / "run" / run_files.BEST)) == given[-1][1]


def test_minutes_become_a_plan_by_measuring(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "MEASURED_SECONDS", 0.2)
    planned: list[plan.Plan] = []
    make = plan.make
    monkeypatch.setattr(plan, "make", lambda *given: planned.append(make(*given)) or PLAN)
    assert selfplay.main([*FLAGS, "--minutes", "6", "--out", str(tmp_path / "run")]) == 0
    assert planned[0].minutes == 6
    assert min(vars(planned[0].measured).values()) > 0
    assert len(planned[0].iterations) == 6

"""A run that needs no hand (`selfplay --preset hour`). Properties:

- it leaves what it promises: its plan, the teacher's games, the network's, metrics of every iteration with the time of
  its parts; a finished one says so;
- the same plan gives the same games and the same weights, also where a run was stopped between or amid iterations, and
  whether one process plays or three; the clock of a stopped run goes on with what was learned before;
- the first games are the teacher's, later ones are played by the average that the iteration before left;
- games that nothing learns from any more go where they are not kept, and that changes no weights;
- without a stored plan, this machine is measured and minutes become one.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from network_helpers import same
from selfplay_helpers import read

from distill import selfplay
from distill.alphazero import ahead, files, plan, unattended
from distill.games import schema
from distill.networks import saved
from distill.networks.evaluator import weights_hash
from distill.training import continual

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
FLAGS = ["--preset", "hour", "--eval-boards", "5", "--lanes", "6", "--shard-games", "2", "--batch-size", "16"]
FLAGS += ["--precision", "float32", "--teacher-simulations", "20"]


class InThisProcess(ahead.Players):
    """Players that are called at once, where the tiny networks of the tests are known."""

    def __init__(self, workers: int) -> None:
        self.pools = [None] * workers

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, work: Any, *arguments: Any, others: int = 0) -> list[Future[Any]]:
        futures: list[Future[Any]] = [Future() for _ in self.pools]
        for number, future in enumerate(futures):
            future.set_result(work(*arguments, (number, len(futures) + others)))
        return futures


@pytest.fixture(autouse=True)
def quick(small_networks: None, eagerly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "Players", InThisProcess)
    monkeypatch.setattr(ahead, "_KEPT", {})
    monkeypatch.setattr(files, "_report", lambda *_: None)


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    plan.write(tmp_path / "given.json", PLAN)
    return [*FLAGS, "--plan", str(tmp_path / "given.json"), "--out"]


def outcome(out: Path) -> tuple[Any, ...]:
    """Content hashes of all shards, and the weights that are kept."""
    manifests = [schema.read_manifest(path.parent) for path in sorted(out.glob("iterations/*/games/manifest.json"))]
    hashes = [shard["content_hash"] for manifest in manifests for shard in manifest["shards"]]
    return hashes, weights_hash(saved.load_core(out / files.BEST))


def test_a_run_leaves_what_it_promises(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    out, graphs, predict_with = tmp_path / "run", list[Any](), saved.predict_with
    monkeypatch.setattr(saved, "predict_with", lambda core: graphs.append(core) or predict_with(core))
    assert selfplay.main([*flags, str(out)]) == 0
    assert len(graphs) == 1, "the judge asks one graph in all iterations"
    said = capsys.readouterr().err
    assert "12 games of the teacher, then 6 of the network's search (gumbel:4, puct:6), 9 steps" in said
    assert "the teacher plays 6 games\n6/6 games · " in said
    assert plan.read(out / files.PLAN) == PLAN
    found = [json.loads(path.read_text()) for path in sorted(out.glob("iterations/*/metrics.json"))][1:]
    assert [each["games"] for each in found] == [6, 6, 0]
    assert [each["steps"] for each in found] == [3, 4, 2]
    assert all({*each["seconds"]} == {"learning", "judge", "waiting", "playing"} for each in found)
    assert all({"optimal", "outcome", "heldout_optimal", "heldout_outcome", "minutes"} <= {*each} for each in found)
    identities = [
        schema.read_manifest(path.parent)["identity"] for path in sorted(out.glob("iterations/*/games/manifest.json"))
    ]
    assert ["network" in each for each in identities] == [False, False, True]
    assert identities[0]["seed"] != identities[1]["seed"]
    assert identities[2]["simulations"] == 6
    for folder in sorted(out.glob("iterations/000[012]/games")):
        read(folder)
    minutes = [json.loads(path.read_text())["minutes"] for path in sorted(out.glob("iterations/*/metrics.json"))]
    assert minutes == sorted(minutes)  # the teacher's first games are the first of them
    assert len(minutes) == 4
    assert selfplay.main([*flags, str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    other = plan.Plan(**{**vars(PLAN), "teacher_games": 8})
    plan.write(tmp_path / "other.json", other)
    assert selfplay.main([*flags[:-2], str(tmp_path / "other.json"), "--out", str(out)]) == 1
    assert f"{out}: follows another plan than {tmp_path}/other.json" in capsys.readouterr().err
    missing = Path(shutil.copytree(out, tmp_path / "missing"))
    shutil.move(missing / "iterations/0003" / files.CANDIDATE, missing / "iterations/0002")
    shutil.rmtree(missing / "iterations/0003")  # about as before it
    for place in ("0001/games", "0000/games"):
        shutil.rmtree(missing / "iterations" / place)
        assert selfplay.main([*flags, str(missing)]) == 1
        error = capsys.readouterr().err
        assert f"{missing}/iterations/{place}: the games of this iteration are missing" in error
        shutil.copytree(out / "iterations" / place, missing / "iterations" / place)
    shutil.move(out / "iterations/0003/metrics.json", out)  # as where the result alone is kept
    shutil.rmtree(out / "iterations")
    kept = {path.name: path.read_bytes() for path in out.iterdir()}
    assert selfplay.main([*flags, str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept


def test_the_time_left_comes_from_the_plan_and_then_from_the_iterations() -> None:
    """The first of them waits for the teacher's games and for what is compiled once."""
    three = dataclasses.replace(PLAN, minutes=3)
    first, second = {"minutes": 2.0}, {"minutes": 2.5}
    assert unattended.seconds_left([first], three, teacher_share=0.25) == pytest.approx(60 * 3 * 0.75 * 2 / 3)
    assert unattended.seconds_left([first, second], three, teacher_share=0.25) == pytest.approx(30)


def test_the_same_plan_gives_the_same_weights_however_it_is_run(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
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
    for where, call in {"_learn": 2, "_declare": 1, "_iterate": 2}.items():  # before learning, after playing, between
        with monkeypatch.context() as patch:
            patch.setattr(unattended, where, _interrupted(getattr(unattended, where), call))
            with pytest.raises(Stopped):
                selfplay.main([*flags, str(stopped)])
    (tmp_path / "given.json").unlink()  # the run has its own
    assert selfplay.main([*flags, str(stopped)]) == 0
    assert outcome(stopped) == expected
    minutes = [json.loads(path.read_text())["minutes"] for path in sorted(stopped.glob("iterations/*/metrics.json"))]
    assert all(9.9 < minutes[number + 1] - minutes[number] < 11 for number in range(3)), "each learned ten minutes"


def test_games_that_nothing_learns_from_any_more_can_go(flags: list[str], tmp_path: Path):
    window = ["--replay-rows", "10", "--replay-share", "none"]
    assert selfplay.main([*flags, str(tmp_path / "kept"), *window]) == 0
    assert selfplay.main([*flags, str(tmp_path / "gone"), *window, "--no-keep-games"]) == 0
    kept, gone = (
        [path.parent.name for path in sorted((tmp_path / run).glob("iterations/*/games"))] for run in ("kept", "gone")
    )
    assert kept == ["0000", "0001", "0002", "0003"]
    assert "0000" not in gone
    assert "0002" in gone
    assert weights_hash(saved.load_core(tmp_path / "gone" / files.BEST)) == outcome(tmp_path / "kept")[1]


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


def test_the_average_plays_and_is_kept(flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    given: list[tuple[bool, str]] = []
    give = continual.Learner.give

    def watched(learner: continual.Learner, network: Any) -> None:
        give(learner, network)
        given.append((same(learner.core.get_weights(), network.get_weights()), weights_hash(network)))

    monkeypatch.setattr(continual.Learner, "give", watched)
    assert selfplay.main([*flags, str(tmp_path / "run"), "--ema", "0.5"]) == 0
    assert [is_the_learner for is_the_learner, _ in given] == [False, False, False]
    network = schema.read_manifest(tmp_path / "run/iterations/0002/games")["identity"]["network"]
    assert network == f"{given[0][1]}-float32"
    assert weights_hash(saved.load_core(tmp_path / "run" / files.BEST)) == given[-1][1]


def test_minutes_become_a_plan_by_measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "MEASURING", 0.2)
    planned: list[plan.Plan] = []
    make = plan.make
    monkeypatch.setattr(plan, "make", lambda *given: planned.append(make(*given)) or PLAN)
    assert selfplay.main([*FLAGS, "--minutes", "6", "--out", str(tmp_path / "run")]) == 0
    assert planned[0].minutes == 6
    assert min(planned[0].measured.values()) > 0
    assert len(planned[0].iterations) == 6

"""The loop of self-play, training and arena (`selfplay.py`, `loop/`). Properties:

- a run leaves what it promises; a finished one says so and can be extended to what it would have been;
- a rejected candidate changes nothing but itself and trains on; an accepted one takes over; the judge decides nothing;
- the loop resumes after kill -9 in self-play, in training and in the arena: same games, same metrics, none twice;
- flags and presets: learning-rate drops, the published numbers, what is wrong is named.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selfplay_helpers import read, tiny

from distill import selfplay
from distill.base import cli
from distill.learn import continual
from distill.loop import iteration
from distill.loop.presets import PRESETS
from distill.loop.settings import SelfPlayConfig
from distill.nets import saved
from distill.nets.evaluator import weights_hash
from distill.players import gate
from distill.rows import schema

SMOKE = ["--preset", "smoke", "--judge-boards", "5"]


def metrics_of(out: Path) -> list[dict[str, Any]]:
    """The metrics of all finished iterations, without what time they took."""
    found = [json.loads(path.read_text()) for path in sorted(out.glob("iterations/*/metrics.json"))]
    return [{name: value for name, value in each.items() if name != "seconds"} for each in found]


def games_of(out: Path) -> list[str]:
    """Content hashes of all shards."""
    manifests = [schema.read_manifest(path.parent) for path in sorted(out.glob("iterations/*/games/manifest.json"))]
    return [shard["content_hash"] for manifest in manifests for shard in manifest["shards"]]


def weights(path: Path) -> list[Any]:
    return list(saved.load_core(path).get_weights())


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_run_leaves_what_it_promises_and_can_be_extended(
    tmp_path: Path, small_networks: None, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "run"
    assert selfplay.main([*SMOKE, "--out", str(out)]) == 0
    assert "of 2 accepted" in capsys.readouterr().out
    for name in ("best.keras", "config.json", "run.json", "metrics.json", "history.csv", "curves.png"):
        assert (out / name).is_file(), name
    first = metrics_of(out)
    assert [each["iteration"] for each in first] == [1, 2]
    for each in first:
        assert each["games"] == 6
        assert 0 <= each["score"] <= 1
        assert each["accepted"] == (each["score"] >= 0.55)
        assert {"exact", "class", "blocked", "policy_loss", "value_error", "replay_boards"} <= set(each)
    for folder in sorted(out.glob("iterations/*/games")):
        read(folder)

    assert selfplay.main([*SMOKE, "--out", str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    assert selfplay.main([*SMOKE, "--out", str(out), "--lr", "0.5"]) == 1
    assert "lr: 0.001 → 0.5" in capsys.readouterr().err
    assert selfplay.main([*SMOKE, "--out", str(out), "--iterations", "3"]) == 0
    assert metrics_of(out)[:2] == first
    assert len(metrics_of(out)) == 3
    assert len(list(out.glob("iterations/*/checkpoint.npz"))) == 1  # what nothing will ask for is deleted

    whole = tmp_path / "whole"
    assert selfplay.main([*SMOKE, "--out", str(whole), "--iterations", "3"]) == 0
    assert metrics_of(whole) == metrics_of(out)
    assert games_of(whole) == games_of(out)
    assert same(weights(whole / "best.keras"), weights(out / "best.keras"))


@pytest.mark.parametrize("accepted", [True, False])
def test_the_gate_alone_decides_who_plays_next(
    accepted: bool, tmp_path: Path, small_networks: None, monkeypatch: pytest.MonkeyPatch
):
    score = {"score": 0.55 if accepted else 0.54, "distinct_games": 4}
    monkeypatch.setattr(gate, "meet", lambda *_, **__: score)
    monkeypatch.setattr(iteration, "_judged", lambda _: {"class": 0.0})  # the judge's word changes nothing
    assert selfplay.main([*SMOKE, "--out", str(tmp_path)]) == 0
    initial, best = weights(tmp_path / "initial.keras"), weights(tmp_path / "best.keras")
    assert same(initial, best) != accepted
    last = tmp_path / "iterations" / "0002"
    names = [schema.read_manifest(tmp_path / "iterations" / each / "games")["identity"]["network"] for each in
             ("0001", "0002")]  # fmt: skip
    assert (names[0] != names[1]) == accepted
    assert (last / "candidate.keras").exists() == accepted
    if accepted:
        assert same(weights(last / "candidate.keras"), best)


def test_a_rejected_learner_trains_on(tmp_path: Path, small_networks: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "meet", lambda *_, **__: {"score": 0.0, "distinct_games": 4})
    learned: list[str] = []
    learn = continual.learn

    def watched(learner: Any, *rest: Any) -> Any:
        learned.append(weights_hash(learner.core))
        result = learn(learner, *rest)
        learned.append(weights_hash(learner.core))
        return result

    monkeypatch.setattr(continual, "learn", watched)
    assert selfplay.main([*SMOKE, "--out", str(tmp_path)]) == 0
    assert learned[1] == learned[2] != learned[0]
    assert learned[3] != learned[2]


def test_without_a_gate_every_candidate_is_taken(tmp_path: Path, small_networks: None):
    assert selfplay.main([*SMOKE, "--gate", "none", "--extra-noise", "1", "--out", str(tmp_path)]) == 0
    assert [each["accepted"] for each in metrics_of(tmp_path)] == [True, True]
    assert [each["score"] for each in metrics_of(tmp_path)] == [None, None]
    noise = [schema.read_manifest(tmp_path / "iterations" / each / "games")["identity"]["noise_fraction"] for each in
             ("0001", "0002")]  # fmt: skip
    assert noise == [0.5, 0.25]


def test_games_only_plays_with_the_network_as_it_is(
    tmp_path: Path, small_networks: None, capsys: pytest.CaptureFixture[str]
):
    tiny().save(tmp_path / "some.keras")
    command = ["--preset", "smoke", "--games-only", "--init", str(tmp_path / "some.keras"), "--out"]
    assert selfplay.main([*command, str(tmp_path / "games")]) == 0
    assert "6 games" in capsys.readouterr().out
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 6
    assert not (tmp_path / "games" / "best.keras").exists()
    assert selfplay.main([*command, str(tmp_path / "games"), "--games", "9", "--lanes", "2"]) == 0
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 9


@pytest.mark.slow
def test_a_killed_loop_goes_on_in_every_phase(tmp_path: Path):
    """kill -9 of real processes in self-play, in training and in the arena; then the same games and metrics."""
    keep = [*SMOKE, "--arena-games", "44", "--games", "12", "--iterations", "1"]
    out, whole = tmp_path / "cut", tmp_path / "whole"
    folder = out / "iterations" / "0001"

    def killed_when(ready: Callable[[], bool]) -> None:
        command = [sys.executable, "-m", "distill.selfplay", *keep, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while not ready():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    killed_when(lambda: any(folder.glob("games/shard-*")))
    assert not (folder / "games" / "manifest.json").exists(), "it was to die in self-play"
    kept = {path: path.read_bytes() for path in folder.glob("games/shard-*")}
    killed_when((folder / "games" / "manifest.json").exists)
    assert not (folder / "checkpoint.npz").exists(), "it was to die in training"
    killed_when((folder / "candidate.keras").exists)
    assert not (folder / "metrics.json").exists(), "it was to die in the arena"
    assert selfplay.main([*keep, "--out", str(out)]) == 0
    assert selfplay.main([*keep, "--out", str(whole)]) == 0
    assert {path: path.read_bytes() for path in kept} == kept
    assert games_of(out) == games_of(whole)
    assert metrics_of(out) == metrics_of(whole)
    assert [row["game_id"] for row in read(folder / "games")] == [
        row["game_id"] for row in read(whole / "iterations" / "0001" / "games")
    ]


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_is_a_config(preset: str):
    config = cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS)
    assert config.rate(1) > 0
    assert config.recipe().lr == config.lr


@pytest.mark.parametrize("former", ["d", "e1", "e2"])
def test_a_preset_keeps_its_former_name_for_a_release(former: str, capsys: pytest.CaptureFixture[str]):
    name = str(PRESETS[former])
    now = cli.parse(SelfPlayConfig, ["--preset", name], PRESETS)
    assert cli.parse(SelfPlayConfig, ["--preset", former], PRESETS) == now
    assert f"--preset {former} is called {name} now" in capsys.readouterr().err


def test_the_presets_are_the_published_ones():
    names = ("connect-4-ai-1", "connect-4-ai-2", "connect4-zero")
    e1, e2, d = (cli.parse(SelfPlayConfig, ["--preset", name], PRESETS) for name in names)
    assert (e1.sampling_plies, e1.simulations, e1.games, e1.dirichlet_alpha, e1.noise_fraction) == (
        12,
        200,
        4,
        0.4,
        0.2,
    )
    assert (e1.epochs, e1.batch_size, e1.train_boards, e1.replay_games, e1.iterations) == (3, 32, 256, 16, 1080)
    assert (e2.sampling_plies, e2.simulations, e2.games, e2.dirichlet_alpha, e2.noise_fraction) == (
        10,
        110,
        16,
        0.3,
        0.25,
    )
    assert (e2.epochs, e2.batch_size, e2.train_boards, e2.replay_games, e2.extra_noise) == (20, 32, 480, 48, 100)
    assert [e2.rate(iteration) for iteration in (1, 49, 50, 150, 250, 2000)] == [0.2, 0.2, 2e-2, 2e-3, 2e-4, 2e-4]
    assert (d.exploration, d.sampling_plies, d.noise_fraction, d.dirichlet_alpha) == (1.5, 10, 0.25, 0.3)
    assert (d.arch, d.replay_rows, d.gate, d.arena_games) == ("resnet", 200_000, 0.55, 100)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--games", "0"], "--games 0 must be at least 1"),
        (["--games-only"], "--games-only needs --init"),
        (["--gate", "1"], "--gate 1.0 must be between 0 and 1, or none"),
        (["--arena-games", "3"], "--arena-games 3 must be an even number"),
        (["--arena-plies", "1"], "there are only about 4 openings"),
        (["--lr-drops", "soon"], "--lr-drops soon must be ITERATION:RATE"),
        (["--lr-drops", "5:-1"], "--lr-drops 5:-1 must be positive rates"),
        (["--replay-rows", "0"], "--replay-rows 0 must be at least 1, or none"),
        (["--epochs", "0"], "--epochs 0 must be positive"),
        (["--opening-moves", "3", "1"], "--opening-moves 3 1"),
        (["--simulations", "0"], "--simulations 0"),
    ],
)
def test_wrong_flags_are_named(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert selfplay.main(flags) == 2
    assert message in capsys.readouterr().err


def test_a_missing_network_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    gone = tmp_path / "gone"
    assert selfplay.main(["--init", str(gone), "--out", str(tmp_path / "run")]) == 1
    assert str(gone) in capsys.readouterr().err
    tiny(value_head=False).save(tmp_path / "mute.keras")
    assert selfplay.main([*SMOKE, "--init", str(tmp_path / "mute.keras"), "--out", str(tmp_path / "run")]) == 1
    assert "no value head; train one with --value-target blend" in capsys.readouterr().err
    tiny().save(tmp_path / "odd.keras")
    assert selfplay.main([*SMOKE, "--init", str(tmp_path / "odd.keras"), "--out", str(tmp_path / "odd")]) == 1
    assert "pillar: not a network this distill can train on" in capsys.readouterr().err

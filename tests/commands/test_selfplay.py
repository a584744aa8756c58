"""The command `selfplay`: self-play, training and arena in turn. Properties:

- a run leaves what it promises; a finished one says so and can be extended to what it would have been;
- the gate alone decides who plays next, and a rejected candidate trains on; grades decide nothing;
- a run with missing or changed parts is refused before it plays, and nothing is changed (kills: `test_kills`);
- every preset is a config, and the published network and learning rates are those of their sources.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import keras
import pytest
from helpers import change_record, state
from network_helpers import same
from selfplay_helpers import games_of, metrics_of, read, tiny
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from distill import networks, selfplay
from distill.alphazero import grades, iterations, workers
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, cli, run_folder
from distill.common.settings import build
from distill.games import reader
from distill.networks import backend, saved
from distill.networks.evaluator import weights_hash
from distill.training import continual, history, identity, step

SMOKE = ["--preset", "smoke", "--set", "eval_boards=5"]
GRADES = {f"{name}{metric}": 0.0 for name in ("", "heldout_") for metric in ("optimal", "outcome")}


def weights(path: Path) -> list[Any]:
    return list(saved.load_core(path).get_weights())


@pytest.fixture
def quick(small_networks, eagerly, monkeypatch):
    """Tiny networks, and no curves: to draw them takes longer than an iteration."""
    monkeypatch.setattr(history, "write", lambda *_: None)


@pytest.mark.usefixtures("small_networks", "eagerly", "undrawn")
def test_a_run_leaves_what_it_promises_and_can_be_extended(tmp_path, capsys, complaint):
    out, whole = tmp_path / "run", tmp_path / "whole"
    command = [*SMOKE, "--out", str(out), "--iterations"]
    assert selfplay.main([*command, "1"]) == 0
    assert "of 1 accepted" in capsys.readouterr().out
    for name in ("best.keras", "_run.json", "history.csv", "curves.png"):
        assert (out / name).is_file(), name
    first = metrics_of(out)
    assert selfplay.main([*command, "1"]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    network = (out / "best.keras").rename(tmp_path / "moved.keras")
    assert "best.keras: missing, though the run is finished" in complaint(selfplay, *command, "1")
    network.rename(out / "best.keras")
    assert "lr 0.001 there, 0.5 here" in complaint(selfplay, *command, "1", "--lr", "0.5")
    assert selfplay.main([*command, "2", "--log", "tensorboard"]) == 0
    both = metrics_of(out)
    events = EventAccumulator(str(out / "tensorboard")).Reload()
    losses = {event.step: event.tensor_proto.float_val[0] for event in events.Tensors("training_loss")}
    assert losses == {2: pytest.approx(both[1]["training_loss"])}
    assert both[:1] == first
    assert [each["iteration"] for each in both] == [1, 2]
    (out / "history.csv").unlink()  # killed before it was brought up to date
    change_record(out, lambda record: record.update(result=None))
    assert selfplay.main([*command, "2"]) == 0
    assert run_folder.result_of(out)["iteration"] == 2
    assert "counts" not in run_folder.result_of(out), "only a run by the clock is repeated"
    assert (out / "history.csv").is_file()
    for each in both:
        assert each["games"] == 6
        assert 0 <= each["score"] <= 1
        assert each["accepted"] == (each["score"] >= 0.55)
        assert {"optimal", "outcome", "blocked", "training_loss", "replay_boards"} <= set(each)
    for folder in sorted(out.glob("iterations/*/games")):
        read(folder)

    assert selfplay.main([*SMOKE, "--out", str(whole)]) == 0
    assert metrics_of(whole) == both
    assert games_of(whole) == games_of(out)
    assert same(weights(whole / "best.keras"), weights(out / "best.keras"))
    assert "threads" in complaint(selfplay, *SMOKE, "--workers", "1", "--out", out)


@pytest.mark.parametrize("accepted", [True, False])
def test_the_gate_alone_decides_who_plays_next_and_a_rejected_learner_trains_on(accepted, tmp_path, quick, monkeypatch):
    monkeypatch.setattr(workers, "arena", lambda *_: 0.55 if accepted else 0.54)
    monkeypatch.setattr(grades, "grade", lambda *_: GRADES)  # grades change nothing
    learned: list[str] = []
    learn = continual.learn

    def watched(learner: Any, *rest: Any) -> Any:
        learned.append(weights_hash(learner.core))
        result = learn(learner, *rest)
        learned.append(weights_hash(learner.core))
        return result

    monkeypatch.setattr(continual, "learn", watched)
    assert selfplay.main([*SMOKE, "--out", str(tmp_path)]) == 0
    best = saved.load_core(tmp_path / "best.keras")
    assert learned[1] == learned[2] != learned[0]
    assert learned[3] != learned[2]
    first, second = (identity["network"] for identity in identities(tmp_path))
    assert (first != second) == (first != f"{weights_hash(best)}-float32") == accepted
    assert not [*tmp_path.rglob("candidate.keras")]


def identities(out: Path) -> list[dict[str, Any]]:
    """What the games of each iteration were made with."""
    return [reader.open_run(folder).identity for folder in sorted(out.glob("iterations/*/games"))]


def test_without_a_gate_every_candidate_is_taken(tmp_path, quick):
    settings = ["--set", "gate=none", "--set", "double_noise_iterations=1"]
    command = [*SMOKE, *settings, "--out", str(tmp_path), "--iterations"]
    assert selfplay.main([*command, "1"]) == 0
    assert selfplay.main([*command, "2"]) == 0
    assert [(each["accepted"], each["score"]) for each in metrics_of(tmp_path)] == [(True, None)] * 2
    assert [identity["noise_fraction"] for identity in identities(tmp_path)] == [0.5, 0.25]


def other(**values: Any) -> Any:
    """A change of these values in the result of a folder."""
    return lambda folder: change_record(folder, lambda record: record["result"].update(values))


def test_a_run_with_missing_or_other_parts_is_refused_before_it_plays(tmp_path, quick, monkeypatch, complaint):
    whole = tmp_path / "whole"
    assert selfplay.main([*SMOKE, "--set", "gate=none", "--out", str(whole), "--iterations", "2"]) == 0
    monkeypatch.setattr(networks, "start_backend", lambda **_: pytest.fail("it has started Keras"))
    first, changed = "iterations/0001", "not the games that this iteration played; the run cannot be resumed"
    shard = f"{first}/games/shard-00000.parquet"
    cases: list[tuple[str, Any, str]] = [
        (f"{first}/games", shutil.rmtree, "missing, or not the games"),
        (f"{first}/games", other(run="7" * 32), changed),
        (f"{first}/games", other(games=3), changed),
        (shard, lambda file: file.write_bytes(file.read_bytes() + b"\0"), "not the file that the record describes"),
        (shard, Path.unlink, "(missing, damaged or changed); the run cannot be resumed"),
        (first, shutil.rmtree, "missing, or not the games"),
        ("checkpoint.npz", Path.unlink, "checkpoint.npz: missing, though the run has finished iterations"),
        ("checkpoint.npz", lambda file: file.write_bytes(b"PK"), "checkpoint.npz: damaged"),
        ("_run.json", lambda file: file.write_text("{"), "_run.json: damaged"),
    ]
    for place, harm, expected in cases:
        out = Path(shutil.copytree(whole, tmp_path / "harmed"))
        harm(out / place)
        before = state(out)
        error = complaint(selfplay, *SMOKE, "--set", "gate=none", "--out", out, "--iterations", "3")
        assert error.startswith(f"distill selfplay: {out}/")
        assert expected in error
        assert "distill.generate" not in error
        assert state(out) == before
        shutil.rmtree(out)


@pytest.mark.parametrize("only", [(), ("--games-only",)])
def test_an_arch_that_the_initial_network_does_not_have_is_refused(only, tmp_path, complaint):
    line = complaint(selfplay, *only, "--arch", "cnn", "--init", "pillar", "--out", tmp_path / "out")
    assert "--init pillar is a network pillar; --arch cnn asks for another" in line
    assert not (tmp_path / "out").exists()


def test_games_of_another_backend_are_other_games(tmp_path, monkeypatch):
    tiny().save(tmp_path / "some.keras")
    here = workers.network_player(SelfPlayConfig(), tmp_path / "some.keras").identity["network"]
    monkeypatch.setattr(networks, "start_backend", lambda: None)
    monkeypatch.setattr(backend, "backend_name", lambda: "jax")
    assert workers.network_player(SelfPlayConfig(), tmp_path / "some.keras").identity["network"] == f"{here}-jax"


def test_an_initial_network_makes_python_import_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foreign_module.py").write_text("raise SystemExit(3)\n")
    core = tiny()
    saved.save_network(keras.Model(core.inputs[0], core.output, name="foreign_module>build"), tmp_path / "some.keras")
    config = identity.with_arch(SelfPlayConfig(init="some.keras"), "pillar-plain")
    assert config.arch.name == "foreign_module:build"
    assert "arch source" not in identity.identity(config, ())
    workers.network_player(config, tmp_path / "some.keras")
    assert "foreign_module" not in sys.modules


def test_a_continued_network_keeps_the_arguments_it_was_built_with(tmp_path):
    saved.save_network(networks.build("cnn", True, dropout=0.3), tmp_path / "some.keras")
    arch = networks.Architecture(name="cnn")
    kept = step.initial_network(arch, str(tmp_path / "some.keras"), True, 0, None)
    assert {layer.rate for layer in kept.layers if hasattr(layer, "rate")} == {0.3}
    asked = networks.Architecture(name="cnn", dropout=0.2)
    with pytest.raises(UserError, match="was replaced after the command began"):
        step.initial_network(arch, str(tmp_path / "some.keras"), True, 0, "0" * 64)
    built = step.initial_network(asked, str(tmp_path / "some.keras"), True, 0, None)
    assert {layer.rate for layer in built.layers if hasattr(layer, "rate")} == {0.2}
    assert same(kept.get_weights(), built.get_weights())


def test_arguments_that_the_initial_network_does_not_have_are_refused(tmp_path, complaint):
    line = complaint(selfplay, "--init", "pillar", "--set", "arch.features=4", "--out", tmp_path)
    assert "pillar: of another shape than --arch and arch.* build" in line
    assert {path.name for path in tmp_path.iterdir()} == {".lock"}


def test_a_setting_that_stages_replace_is_refused(tmp_path, complaint):
    line = complaint(selfplay, "--preset", "hour", "--simulations", "400", "--out", tmp_path / "out")
    assert "no effect beside schedule.stages, which set it: simulations" in line
    assert not (tmp_path / "out").exists()


def test_games_on_a_device_need_keras_on_jax(tmp_path, complaint, monkeypatch):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    line = complaint(selfplay, "--minutes", "1", "--set", "device_lanes=16", "--out", tmp_path)
    assert "games on a device need Keras on JAX: set KERAS_BACKEND=jax" in line


def test_what_a_device_does_not_read_has_one_value_there(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    device = ["--set", "device_lanes=16", "--preset"]
    hour, minutes = (cli.parse(SelfPlayConfig, [*device, name], PRESETS) for name in ("hour", "minutes"))
    config = selfplay._with_device(hour)
    line = "on a device: learning.count_weights is count, schedule.teacher_share is 0.0\n"
    assert capsys.readouterr().err == line
    assert (config.learning.count_weights, config.schedule.teacher_share) == ("count", 0)
    assert config.schedule.stages == hour.schedule.stages
    assert selfplay._with_device(minutes) == minutes


def test_games_only_plays_with_the_network_as_it_is(tmp_path, small_networks, monkeypatch, capsys):
    tiny().save(tmp_path / "some.keras")
    command = ["--preset", "smoke", "--games-only", "--init", str(tmp_path / "some.keras"), "--workers", "1", "--out"]
    assert selfplay.main([*command, str(tmp_path / "games")]) == 0
    assert "6 games" in capsys.readouterr().out
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 6
    assert not (tmp_path / "games" / "best.keras").exists()
    record = tmp_path / "games" / run_folder.RECORD
    assert json.loads(record.read_text())["settings"]["arch"]["name"] == tiny().name
    of_six = record.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(workers, "start", Mock(side_effect=UserError("/dev/shm: no space")))
        assert selfplay.main([*command, str(tmp_path / "games"), "--games", "9"]) == 1
    assert record.read_bytes() == of_six
    assert selfplay.main([*command, str(tmp_path / "games"), "--games", "9", "--set", "lanes=2"]) == 0
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 9


def test_a_run_is_the_same_whatever_processes_play_it(tmp_path, quick):
    for number in ("1", "2"):
        assert selfplay.main([*SMOKE, "--workers", number, "--out", str(tmp_path / number)]) == 0
    one, two = tmp_path / "1", tmp_path / "2"
    assert games_of(one) == games_of(two)
    assert len(games_of(one)) == 4
    assert metrics_of(one) == metrics_of(two)
    assert same(weights(one / "best.keras"), weights(two / "best.keras"))


def test_connect_4_ai_has_the_network_of_the_repository_that_it_names():
    arch = build(SelfPlayConfig, PRESETS["connect-4-ai-2"].values).arch
    core = networks.build(arch.name, **arch.arguments)
    assert core.count_params() == 907_385, "the numbers in the source's file of weights"
    assert core.inputs[0].shape == (None, 6, 7, 2)
    other = build(SelfPlayConfig, PRESETS["connect-4-ai-2"].values, {"arch": "mk4"}).arch
    assert (other.name, other.arguments) == ("mk4", {}), "another network drops the arguments of this one"
    both = build(SelfPlayConfig, PRESETS["connect-4-ai-2-text"].values)
    assert (both.search.rule, both.leaves, both.arch) == ("printed", "playout", arch)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_config(preset):
    config = cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS)
    if preset == "connect-4-ai-2":
        rates = [iterations.learning_rate(config, iteration, 0.0) for iteration in (1, 49, 50, 150, 250, 2000)]
        assert rates == [0.2, 0.2, 2e-2, 2e-3, 2e-4, 2e-4]

"""The command `reinforce`: the files of a run, its initial network, and an end that was cut off."""

import shutil

import numpy as np
import pytest
from helpers import change_record
from network_helpers import same

from distill import networks
from distill.common import run_folder
from distill.exporters import publish
from distill.networks import finding, predict, saved
from distill.training import history
from experiments.reinforce import __main__ as reinforce
from experiments.reinforce import run as policy_gradient

pytestmark = pytest.mark.usefixtures("small_shapes")

SMOKE = ["--arch", "resnet", "--baseline", "value", "--preset", "smoke", "--eval-games", "4", "--final-games", "4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_shapes, checked_here):
    """A finished run of `experiments.reinforce`."""
    out = tmp_path_factory.mktemp("models") / "resnet-reinforce"
    assert reinforce.main([*SMOKE, "--out", str(out)]) == 0
    return out


def test_a_run_leaves_every_file_it_promises(run):
    files = {".lock", "_run.json", "best.keras", "checkpoint.npz", "curves.png", "history.csv"}
    assert {path.name for path in run.iterdir()} == files | {"saved_model"}
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG")
    metrics = run_folder.result_of(run)
    assert [row["step"] for row in metrics["curve"]] == [0, 2, 4]
    assert [row["games"] for row in metrics["curve"]] == [0, 16, 32]
    assert metrics["training_games"] == 32
    for player in ("punisher", "punisher_greedy", "random", "random_greedy"):
        won = metrics[player]["won"]
        assert 0 <= won["low"] <= won["mean"] <= won["high"] <= 1
        assert metrics[player]["games"] == 4
    board = np.zeros((1, 6, 7), np.int8)
    served = predict.load(run, fast=False)(board)
    assert set(served) == {"logits", "policy", "move", "value"}
    expected = saved.predict_with(saved.load_core(run / finding.BEST))(board)
    np.testing.assert_allclose(served["policy"], expected["policy"], atol=1e-5)


def test_a_run_starts_from_the_given_network(run, tmp_path, monkeypatch, eagerly, complaint):
    monkeypatch.setattr(history, "write", lambda *_, **__: None)
    monkeypatch.setattr(publish, "publish", lambda *_, **__: 0.0)
    out = tmp_path / "more"
    words = ["--preset", "smoke", "--steps", "1", "--eval-games", "2", "--final-games", "2"]
    assert reinforce.main([*words, "--init", str(run), "--lr", "1e-9", "--entropy", "0", "0", "--out", str(out)]) == 0
    begun, ended = (saved.load_core(folder / finding.BEST).get_weights() for folder in (run, out))
    for before, after in zip(begun, ended, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-7)
    saved.save_network(networks.build("pillar"), tmp_path / "other.keras")
    again = [*words, "--init", tmp_path / "other.keras", "--out", out, "--baseline", "mean"]
    assert "holds REINFORCE run with other settings (" in complaint(reinforce, *again)


def test_a_run_killed_in_its_final_evaluation_does_not_train_again(run, tmp_path, capsys, monkeypatch):
    out = shutil.copytree(run, tmp_path / "cut")
    metrics = run_folder.result_of(out)
    change_record(out, lambda record: record.update(result=None))
    monkeypatch.setattr(publish, "publish", lambda *_, **__: 0.0)
    monkeypatch.setattr(policy_gradient, "learner", pytest.fail)
    assert reinforce.main([*SMOKE, "--out", str(out)]) == 0
    assert "compiling" not in capsys.readouterr().err
    assert run_folder.result_of(out) == metrics
    assert same(*(saved.load_core(folder / finding.BEST).get_weights() for folder in (run, out)))


def test_a_wrong_initial_network_is_named(tmp_path, complaint):
    out = ["--out", tmp_path / "out"]
    assert f"{tmp_path}: no model in this folder" in complaint(reinforce, "--init", tmp_path, *out)
    saved.save_network(networks.build("cnn"), tmp_path / "cnn.keras")
    line = complaint(reinforce, "--init", tmp_path / "cnn.keras", "--baseline", "value", *out)
    assert "no value head; train one" in line
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".lock"}


def test_every_opponent_plays(complaint):
    line = complaint(reinforce, "--games", "4", "--set", "opponents.number=3", code=2)
    assert "opponents.number 3 must be at most half of --games 4" in line

"""Export. Properties:

- the SavedModel loads in a process of TensorFlow alone and gives the network's outputs on 256 boards, full columns
  and the full board among them, within 1e-5;
- a SavedModel that differs, or does not load alone, is refused: what was there stays, and no hidden folder is left;
- exporting twice works, also after an export that was killed;
- examples hold what the model answers, the sums fit the files, the card says what the model is;
- a missing model exits with 1 and one line, a missing argument with 2.
"""

from __future__ import annotations

import hashlib
import json

import keras
import numpy as np
import pytest

from distill import export, nets
from distill.cli import UserError
from distill.nets import publish, saved
from tests.test_nets import with_random_weights


@pytest.fixture(scope="module")
def core():
    keras.utils.set_random_seed(4)
    return with_random_weights(nets.build("column", value_head=True))


@pytest.fixture(scope="module")
def exported(core, tmp_path_factory):
    """A run's folder after `python -m distill.export`, twice, the first one after a killed one."""
    folder = tmp_path_factory.mktemp("run")
    core.save(folder / saved.BEST)
    (folder / "config.json").write_text(json.dumps({"arch": "column", "target": "visits", "minutes": None}))
    (folder / ".saved_model.killed").mkdir()
    assert export.main([str(folder)]) == 0
    first = (folder / "saved_model").stat().st_ino
    assert export.main([str(folder)]) == 0
    assert (folder / "saved_model").stat().st_ino != first
    return folder


def test_an_export_leaves_the_model_its_examples_card_and_sums_and_nothing_else(exported):
    assert sorted(p.name for p in exported.iterdir()) == ["best.keras", "config.json", "saved_model"]
    found = sorted(p.name for p in (exported / "saved_model").iterdir())
    assert found == ["1", "README.md", "SHA256SUMS", "examples.json"]


def test_the_sums_fit_every_file(exported):
    folder = exported / "saved_model"
    lines = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS"}
    assert lines == {name: hashlib.sha256(p.read_bytes()).hexdigest() for name, p in files.items()}


def test_a_client_gets_the_outputs_of_the_examples(exported):
    examples = json.loads((exported / "saved_model" / "examples.json").read_text())
    boards = np.array([example["board"] for example in examples], np.int8)
    outputs = saved.load(exported)(boards)
    for name in ("logits", "policy", "move", "value"):
        np.testing.assert_allclose(outputs[name], [example[name] for example in examples], atol=1e-5)
    assert not boards[0].any()
    assert boards[-1].all()
    assert examples[-1]["move"] == -1
    assert sum(examples[-1]["policy"]) == 0


def test_the_card_says_what_the_model_is(exported):
    card = (exported / "saved_model" / "README.md").read_text()
    for line in ("| network | column |", "| target | visits |", "`value` float32"):
        assert line in card


def test_half_of_the_checked_boards_have_a_full_column():
    boards = publish.check_boards()
    assert boards.shape == (256, 6, 7)
    assert (boards[:, 0] != 0).any(axis=1).sum() == 128
    assert len(np.unique(boards.reshape(256, -1), axis=0)) > 240


@pytest.mark.parametrize("output", ["logits", "policy", "value", "move"])
def test_a_saved_model_that_differs_is_refused_and_the_old_one_stays(core, tmp_path, monkeypatch, output):
    old = tmp_path / "saved_model"
    old.mkdir()
    (old / "marker").touch()
    honest = saved.predict_with(core)(publish.check_boards())
    altered = {**honest, output: honest[output].copy()}
    altered[output].flat[-1] += 1 if output == "move" else 2e-5 if output != "logits" else 200
    monkeypatch.setattr(publish, "_outputs_in_clean_process", lambda *_: altered)
    monkeypatch.setattr(saved, "write", lambda _core, folder: folder.mkdir(parents=True))
    with pytest.raises(UserError, match="differs from the network by"):
        publish.publish(core, tmp_path, {})
    assert (old / "marker").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["saved_model"]


def test_a_saved_model_that_does_not_load_alone_is_refused(core, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "write", lambda _core, folder: folder.mkdir(parents=True))
    with pytest.raises(UserError, match="does not load without the project"):
        publish.publish(core, tmp_path, {})
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_missing_or_not_a_number_is_no_agreement():
    one = {"policy": np.ones((2, 7), np.float32)}
    assert publish.largest_difference(one, one) == 0
    assert publish.largest_difference(one, {}) == np.inf
    assert not publish.largest_difference(one, {"policy": one["policy"] * np.nan}) <= publish.TOLERANCE


def test_a_missing_model_is_one_line_and_exit_1(tmp_path, capsys):
    assert export.main([str(tmp_path / "none.keras")]) == 1
    error = capsys.readouterr().err
    assert "none.keras: no such .keras file" in error
    assert error.count("\n") == 1


def test_a_wrong_command_line_exits_with_2(capsys):
    assert export.main([]) == 2
    assert "needs a model" in capsys.readouterr().err

"""Networks ready to be asked (`nets/predict.py`, `load_pretrained`). Properties:

- the ONNX file that ships with each network gives its SavedModel's outputs up to rounding, for one board and for many;
- with it a network is loaded without TensorFlow and Keras; where there is no such file, or nothing to run it with, the
  SavedModel answers;
- the folder of links that a model hub makes of `saved_model/` is a network, too, and an ONNX file by itself;
- a damaged file, another model and an unknown name are told in one line;
- the command `models` lists every network with what its card says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from helpers import REFERENCE, SHIPPED, state
from network_helpers import played_boards

import distill
from distill import models, nets
from distill.base import UserError, file_hash
from distill.game import encoding
from distill.nets import finding, predict, saved
from distill.players import players
from distill.ship import publish


@pytest.mark.parametrize("name", SHIPPED)
def test_the_file_that_ships_gives_the_outputs_of_the_saved_model(name):
    assert predict.is_quick(REFERENCE / name)
    quick, slow = predict.load(REFERENCE / name), saved.load(REFERENCE / name)
    boards = played_boards(300)
    found, expected = quick(boards), slow(boards)
    assert sorted(found) == sorted(expected)
    for output in ("policy", *({"value"} & set(expected))):
        np.testing.assert_allclose(found[output], expected[output], atol=2e-5)
    assert {array.dtype for array in (found["move"], expected["move"])} == {np.dtype(np.int32)}
    clear = np.sort(expected["policy"])[:, -1] - np.sort(expected["policy"])[:, -2] > 1e-4
    assert clear.sum() > 250
    np.testing.assert_array_equal(found["move"][clear], expected["move"][clear])
    np.testing.assert_allclose(quick(boards[7])["policy"], found["policy"][7], atol=2e-5)


def test_a_network_is_loaded_and_searched_with_without_tensorflow():
    lines = """
import sys, distill, numpy as np
answer = distill.load_pretrained("pillar")(np.zeros((6, 7), np.int8))
assert answer["move"] == 3 and abs(answer["policy"].sum() - 1) < 1e-5 and -1 <= answer["value"] <= 1
from distill.players import players
player = players.make("pillar@puct:20", quick=True)
choices = player.play(*(np.zeros(2, np.uint64) for _ in range(3)))
assert choices.moves.tolist() == [3, 3] and choices.policy.shape == (2, 7)
assert not {"tensorflow", "keras"} & set(sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(REFERENCE.parents[1])}
    done = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_saved_model_answers_where_there_is_nothing_quicker(tmp_path, monkeypatch):
    boards = played_boards(20)
    expected = saved.load(REFERENCE / "cnn")(boards)["logits"]
    monkeypatch.setattr(predict.importlib.util, "find_spec", lambda _: None)
    assert not predict.is_quick(REFERENCE / "cnn")
    np.testing.assert_array_equal(distill.load_pretrained(str(REFERENCE / "cnn"))(boards)["logits"], expected)


def test_a_model_hubs_folder_of_links_is_loaded_and_left_as_it_is(tmp_path):
    """As huggingface_hub lays it out: files are links to blobs that nobody may write, `saved_model/` is the top."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0a1b2c"
    blobs.mkdir()
    for file in (REFERENCE / "cnn" / "saved_model").rglob("*"):
        if file.is_file():
            blob = blobs / file_hash(file)
            shutil.copyfile(file, blob)
            blob.chmod(0o444)
            place = snapshot / file.relative_to(REFERENCE / "cnn" / "saved_model")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(os.path.relpath(blob, place.parent))
    before, boards = state(tmp_path), played_boards(20)
    expected = predict.load(REFERENCE / "cnn")(boards)["logits"]
    for path in (snapshot, snapshot / "model.onnx"):
        assert predict.is_quick(path)
        np.testing.assert_array_equal(distill.load_pretrained(path)(boards)["logits"], expected)
    np.testing.assert_allclose(saved.load(snapshot)(boards)["logits"], expected, atol=1e-3)
    shutil.move(snapshot, tmp_path / "snapshots" / "saved_model")
    with pytest.raises(UserError, match=r"a link, which a new saved_model would replace"):
        publish.check_place(tmp_path / "snapshots")
    shutil.move(tmp_path / "snapshots" / "saved_model", snapshot)
    assert state(tmp_path) == before


def test_the_search_of_a_quick_network_is_that_of_the_network():
    boards = played_boards(12)
    current, mask = (np.ascontiguousarray(array) for array in encoding.bitboards(boards))
    seeds = np.zeros(len(current), np.uint64)
    found, expected = (
        players.make("pillar@puct:30", quick=quick).play(current, mask, seeds) for quick in (True, False)
    )
    np.testing.assert_array_equal(found.moves, expected.moves)
    np.testing.assert_allclose(found.policy, expected.policy, atol=0.07)  # two visits of thirty
    np.testing.assert_allclose(found.value, expected.value, atol=0.02)


def test_what_cannot_be_loaded_is_told_in_one_line(tmp_path):
    file = tmp_path / predict.ONNX
    file.parent.mkdir()
    file.write_bytes((REFERENCE / "cnn" / predict.ONNX).read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"model\.onnx: not a readable ONNX model") as caught:
        predict.load(tmp_path)
    assert "\n" not in str(caught.value)
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    other = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([node], "other", [value], [other])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), file)
    with pytest.raises(UserError, match=r"not a model of distill \(outputs \['y'\]\)"):
        predict.load(tmp_path)
    with pytest.raises(UserError, match=r"nobody: no such network; networks by name are .*reference/pillar"):
        distill.load_pretrained("nobody")


def test_every_network_is_listed_with_what_its_card_says(tmp_path, capsys):
    (tmp_path / "bare" / "saved_model" / "1").mkdir(parents=True)
    (tmp_path / "bare" / finding.EXPORTED).touch()
    assert models.main(["--models", str(tmp_path)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert lines["bare"].split()[1:] == ["–", "–", "–", "–", "–", "0", "KB", "–", "–", "–", "–"]
    assert lines["name"].split("  ")[-1] == "ONNX int8"
    assert models.main(["--models", str(tmp_path / "typo")]) == 1
    assert "typo: no such folder" in capsys.readouterr().err
    (tmp_path / "trained").mkdir()
    shutil.copy(REFERENCE / "cnn" / "best.keras", tmp_path / "trained")  # --no-export: known by its name all the same
    assert models.main(["--models", str(tmp_path)]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.split("\n\n")[0].splitlines()[1:]}
    assert listed == {*finding.networks(finding.places(tmp_path))} >= {"bare", "trained", "reference/cnn"}
    for name in SHIPPED:
        core = saved.load_core(REFERENCE / name / "best.keras")
        assert lines[f"reference/{name}"].split()[1:3] == [nets.arch_of(core), f"{core.count_params():,}"]
        files = [REFERENCE / name / file for file in models.FILES]
        assert lines[f"reference/{name}"].count(" KB") == len(files) == 6
        assert all(f" {finding.size(file)}" in lines[f"reference/{name}"] for file in files)
        assert lines[f"reference/{name}"].count("%") == 2, "its grades"

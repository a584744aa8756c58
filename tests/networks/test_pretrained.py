"""Networks loaded by the fastest runtime (`networks/predict.py`, `load_pretrained`): without TensorFlow, and from
a model hub's folder of links.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from helpers import REFERENCE, bits, state
from network_helpers import played_boards

import distill
from distill.common import UserError, file_hash
from distill.game import encoding, rules
from distill.networks import finding, predict


@pytest.mark.parametrize("onnx_runtime", [True, False])
def test_what_is_no_board_is_refused_and_what_the_examples_hold_is_not(onnx_runtime, monkeypatch):
    if not onnx_runtime:
        monkeypatch.setattr(finding.importlib.util, "find_spec", lambda _: None)
    assert (finding.evaluated_in(REFERENCE / "cnn").suffix == ".onnx") == onnx_runtime
    network = distill.load_pretrained(str(REFERENCE / "cnn"))
    for wrong, line in ((np.full((6, 7), 2), "boards hold 2; "), (np.zeros((7, 6)), r"shape \(7, 6\)")):
        with pytest.raises(ValueError, match=line):
            network(wrong)
    for example in json.loads((REFERENCE / "cnn" / "saved_model" / "examples.json").read_text()):
        outputs = network(example["board"])
        np.testing.assert_allclose(outputs["policy"], example["policy"], atol=2e-5)
        assert type(outputs["move"]) is int  # Kaggle's runner refuses a NumPy integer
    assert outputs["move"] == -1, "the last is full"
    won = encoding.boards(*bits(rules.from_moves("1212121")))
    assert network(won)["policy"].sum() == pytest.approx(1)
    assert network(won[:0])["policy"].shape == (0, 7)


SCRIPT = """
import sys
import numpy as np
import distill
from distill.players import names

predict, board = distill.load_pretrained("pillar"), np.zeros((2, 6, 7))
outputs = predict(board)
assert outputs["move"].tolist() == [3, 3] and abs(outputs["policy"][0].sum() - 1) < 1e-5
choices = names.make("pillar@puct:20", fast=True).choose(*(np.zeros(2, np.uint64) for _ in range(3)))
assert choices.moves.tolist() == [3, 3] and choices.policy.shape == (2, 7)
assert not {"tensorflow", "keras"} & set(sys.modules)
sys.modules["tensorflow"] = None  # as where it is not installed
assert distill.load_pretrained("pillar-large")(board)["move"].tolist() == [3, 3]
"""


def test_it_answers_and_guides_a_search_without_tensorflow():
    environment = {**os.environ, "PYTHONPATH": str(REFERENCE.parents[1])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_tensorflow_in_a_forked_process_is_an_error_instead_of_a_hang(monkeypatch):
    monkeypatch.setattr(finding.importlib.util, "find_spec", lambda _: None)
    network = distill.load_pretrained("cnn")
    reading, writing = os.pipe()
    if not (child := os.fork()):
        signal.alarm(60)
        try:
            network(np.zeros((6, 7)))
        except UserError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as said:
        assert 'start processes with multiprocessing.get_context("spawn")' in said.read()
    assert os.waitpid(child, 0)[1] == 0


def test_the_conversions_in_the_documents_lead_to_the_board():
    page = (REFERENCE.parents[1] / "docs" / "networks.md").read_text()
    code = textwrap.dedent(re.search(r"## In Python\n.*?To make a board:\n\n(    .*?)\n\n(?!    )", page, re.DOTALL)[1])
    board = encoding.boards(*bits(rules.from_moves("4453")))[0]
    observation = types.SimpleNamespace(board=np.where(board < 0, 2, board).ravel().tolist(), mark=1)
    namespace = {"np": np, "distill": distill, "observation": observation, "upside_down": board[::-1]}
    converted_boards = []
    for line in code.splitlines():
        exec(line, namespace)
        if line.startswith("board = "):
            converted_boards.append(namespace["board"])
    assert len(converted_boards) == 3
    for converted in converted_boards:
        np.testing.assert_array_equal(converted, board)


def test_a_model_hubs_folder_of_links_is_loaded_and_left_as_it_is(tmp_path):
    """As huggingface_hub lays it out: files are links to read-only blobs, and `saved_model/` is the top folder."""
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
        assert finding.evaluated_in(path).suffix == ".onnx"
        np.testing.assert_array_equal(distill.load_pretrained(path)(boards)["logits"], expected)
    np.testing.assert_allclose(predict.load(snapshot, fast=False)(boards)["logits"], expected, atol=1e-3)
    assert state(tmp_path) == before

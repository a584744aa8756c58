"""A saved model as a plain function: a `.keras` file, a SavedModel and the network in memory give the same outputs, and
what cannot be loaded is one line that names the path.
"""

import gc
import shutil

import keras
import numpy as np
import pytest
from helpers import no_file_larger_than
from network_helpers import played_boards, tiny_network, with_random_weights

from distill import networks
from distill.common import UserError
from distill.exporters import card, formats, publish
from distill.networks import predict, saved
from distill.networks.finding import BEST


@pytest.fixture(scope="module")
def core(small_shapes):
    keras.utils.set_random_seed(4)
    return with_random_weights(networks.build("pillar", value_head=True))


@pytest.fixture(scope="module")
def run_folder(core, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "new").mkdir()
    for place in (folder, folder / "new"):  # the second is not exported
        core.save(place / BEST)
    formats.write_saved_model(core, folder / "saved_model" / "1")
    return folder


@pytest.mark.parametrize("place", ["best.keras", "saved_model/1", "saved_model", ".", "new"])
def test_every_path_to_a_network_gives_its_outputs(core, run_folder, place):
    boards = played_boards(20)
    expected, outputs = saved.predict_with(core)(boards), predict.load(run_folder / place, fast=False)(boards)
    assert {name: (a.shape, a.dtype) for name, a in outputs.items()} == {
        "logits": ((20, 7), np.float32),
        "policy": ((20, 7), np.float32),
        "move": ((20,), np.int32),
        "value": ((20,), np.float32),
    }
    for name in expected:
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-5)


def test_a_network_that_does_not_fit_on_the_disk_leaves_the_one_before(core, tmp_path):
    saved.save_network(core, tmp_path / BEST)
    before = (tmp_path / BEST).read_bytes()
    with no_file_larger_than(len(before) // 2), pytest.raises(OSError, match="File too large"):
        saved.save_network(core, tmp_path / BEST)
    assert [path.name for path in tmp_path.iterdir()] == [BEST]
    assert (tmp_path / BEST).read_bytes() == before


def test_an_export_of_another_network_does_not_answer_for_a_run(core, run_folder, checked_here, tmp_path, capsys):
    newer = keras.models.clone_model(core)
    newer.set_weights([weights + 0.1 for weights in core.get_weights()])
    publish.publish(run_folder / BEST, tmp_path, card.results(None), ["onnx"])
    boards, old, new = (played_boards(20), *(saved.predict_with(network) for network in (core, newer)))
    shutil.copy(run_folder / BEST, tmp_path)
    for expected in (old, new):
        for fast in (False, True):
            np.testing.assert_allclose(
                predict.load(tmp_path, fast=fast)(boards)["policy"], expected(boards)["policy"], atol=1e-5
            )
        newer.save(tmp_path / BEST)
    assert "is not of" in capsys.readouterr().err
    exported = predict.load(tmp_path / "saved_model", fast=False)
    np.testing.assert_allclose(exported(boards)["policy"], old(boards)["policy"], atol=1e-5)


@pytest.mark.parametrize("place", ["best.keras", "saved_model/1"])
def test_any_number_of_boards_is_answered_as_one_by_one(run_folder, place, monkeypatch):
    monkeypatch.setattr(predict, "CHUNK", 4)
    ask = predict.load(run_folder / place, fast=False)
    gc.collect()  # it keeps its model alive
    boards = played_boards(9)
    together = ask(boards)
    for number, board in enumerate(boards):
        alone = ask(board[None])
        assert (alone["policy"].shape, alone["value"].shape) == ((1, 7), (1,))
        np.testing.assert_allclose(alone["policy"][0], together["policy"][number], atol=1e-5)
    shapes = {name: array.shape for name, array in ask(boards[:0]).items()}
    assert shapes == {"logits": (0, 7), "policy": (0, 7), "move": (0,), "value": (0,)}


def test_what_cannot_be_loaded_is_one_line(run_folder, tmp_path):
    whole = (run_folder / BEST).read_bytes()
    files = {"empty.keras": b"", "zip.keras": b"PK\x03\x04 not a zip", "half.keras": whole[: len(whole) // 2]}
    wrong = {"nowhere": "no such path", "model.tflite": r"not a \.keras file", ".": "no model in this folder"}
    wrong |= {"other.keras": "not a network of distill", "other": "not a readable SavedModel"}
    (tmp_path / "model.tflite").touch()
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])  # of another program
    other.save(tmp_path / "other.keras")
    other.export(tmp_path / "other", verbose=False)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name, line in (wrong | dict.fromkeys(files, "not a readable Keras model")).items():
        with pytest.raises(UserError, match=line) as caught:
            predict.load(tmp_path / name, fast=False)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("factor", "line"),
    [(np.nan, "some of its weights are NaN or infinite"), (3e38, "returned a logit that is NaN or infinite on 2 of 2")],
)
def test_a_network_that_returns_no_numbers_is_named(tmp_path, factor, line):
    core = with_random_weights(tiny_network(value_head=True))
    core.set_weights([factor * np.sign(weight) for weight in core.get_weights()])
    core.save(tmp_path / "other.keras")
    with pytest.raises(UserError, match=rf"other\.keras: .*{line}"):
        predict.load_pretrained(tmp_path / "other.keras")(played_boards(2))

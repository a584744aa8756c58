"""Networks in 8 bits: every file that ships loses what its card says, below one point; a file that loses more, or whose
move is not the best of its logits, is refused.
"""

import dataclasses
import functools
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import REFERENCE, shipping
from network_helpers import tiny_network

from distill.common import UserError
from distill.datasets.benchmark import HEADLINES, GradedBoards
from distill.evaluation import grading
from distill.exporters import conversion, formats, quantized
from distill.networks import predict, saved
from distill.players.player import as_player

IN_8_BITS = [name for name in formats.FORMATS if formats.FORMATS[name].int8]


def file_of(network: str, name: str) -> Path:
    return REFERENCE / network / "saved_model" / formats.FORMATS[name].file


@pytest.mark.parametrize(("network", "name"), shipping(*IN_8_BITS))
def test_a_file_that_ships_keeps_the_contract(network, name):
    file, boards = file_of(network, name), conversion.check_boards()
    core = saved.load_core(REFERENCE / network / "best.keras")
    floating = file_of(network, name.removesuffix("-int8"))
    whole = floating.stat().st_size if floating.exists() else 4 * core.count_params()
    assert file.stat().st_size < 0.7 * whole
    answer = formats.FORMATS[name].load(str(file))
    outputs, expected = answer(boards), saved.predict_with(core)(boards)
    assert {key: (array.dtype, array.shape) for key, array in outputs.items()} == {
        key: (array.dtype, array.shape) for key, array in expected.items()
    }
    assert np.isfinite(conversion.largest_difference(expected, outputs))
    assert 0 < np.abs(outputs["policy"] - expected["policy"]).max() < 0.5
    exponentials = np.exp(outputs["logits"][:-1], dtype=np.float64)  # the last board is full
    policy = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(outputs["policy"][:-1], policy, atol=1e-5)
    np.testing.assert_allclose(answer(boards[100:101])["policy"], outputs["policy"][100:101], atol=1e-5)


@functools.cache
def graded(network: str) -> tuple[GradedBoards, np.ndarray, np.ndarray]:
    """A part of the graded boards, the same with mirror images as arrays, and the network's moves on them."""
    boards = quantized.graded_boards()
    boards = boards[np.arange(0, len(boards), 16)]
    both = quantized.with_mirrors(boards)
    return boards, both, predict.load(REFERENCE / network)(both)["move"]


@pytest.mark.parametrize(("network", "name"), shipping(*IN_8_BITS))
def test_a_file_loses_what_its_card_says_and_less_than_a_point(network, name):
    """On a part of the boards, so within the sum of both intervals."""
    file = file_of(network, name)
    boards, both, expected = graded(network)
    lost = quantized.losses(boards, expected, formats.FORMATS[name].load(str(file))(both)["move"])
    stated = json.loads((file.parent / "export.json").read_text())["files"][file.name]["losses"]
    assert list(stated) == list(lost) == list(HEADLINES)
    card = (file.parent / "README.md").read_text()
    for set_name, loss in stated.items():
        points = quantized.points(loss, "optimal")
        assert re.search(rf"^\| `{file.name}` \| `{set_name}` \|.*% \| {points} \|", card, re.MULTILINE)
        assert loss["optimal"] < quantized.MOST_LOST
        here = lost[set_name]
        assert abs(here["optimal"] - loss["optimal"]) <= here["optimal_margin"] + loss["optimal_margin"] + 0.001
        assert 0.85 < here["same"] <= 1


@pytest.mark.parametrize(("network", "name"), shipping("onnx-int8"))
def test_weights_in_onnx_use_all_8_bits(network, name):
    graph = onnx.load(file_of(network, name)).graph
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {key: array for key, array in tensors.items() if array.dtype == np.int8}
    assert len(weights) >= 3
    for key, array in weights.items():
        shape = tensors[key.replace("_int8", "_scale")].shape
        others = tuple(axis for axis, size in enumerate(shape) if size == 1)
        assert np.isin(np.abs(array.astype(int)).max(others), (0, 127)).all()
    large = [array.dtype for array in tensors.values() if array.size >= quantized.SMALL]
    assert {*large} <= {np.dtype(np.int8), np.dtype(np.float16)}


@pytest.mark.parametrize(("network", "is_rounded"), [("pillar-large", True), ("pillar", False)])
def test_a_network_whose_weights_are_rounded_is_the_same_in_its_8_bit_file(network, is_rounded):
    boards = conversion.check_boards()
    expected = saved.predict_with(saved.load_core(REFERENCE / network / "best.keras"))(boards)
    logits = predict.load(file_of(network, "onnx-int8"))(boards)["logits"]
    assert np.allclose(logits, expected["logits"], atol=1e-4) == is_rounded


def test_losses_are_differences_of_the_graders_grades():
    boards = quantized.graded_boards()
    boards = boards[np.arange(0, len(boards), 20)]
    dice = np.random.default_rng(0)
    legal = quantized.with_mirrors(boards)[:, 0] == 0
    moves = [np.where(legal, dice.random(legal.shape), -1).argmax(1) for _ in range(2)]

    def graded_moves(name: str, columns: np.ndarray) -> grading.Graded:
        sides = iter(np.split(columns, 2))
        return grading.grade(as_player(lambda boards, seeds: next(sides), name), boards, 0)

    one, other = (graded_moves(name, columns) for name, columns in zip("ab", moves, strict=True))
    expected = grading.compare(boards, one, other)
    lost = quantized.losses(boards, *moves)
    assert list(lost) == list(expected)
    for name, loss in lost.items():
        optimal, outcome = expected[name]["optimal"], expected[name]["outcome"]
        assert loss["boards"] == optimal.units
        assert (loss["optimal"], loss["outcome"]) == (pytest.approx(optimal.mean), pytest.approx(outcome.mean))
        assert loss["optimal_margin"] == pytest.approx(optimal.high - optimal.mean, rel=1e-3)
        assert loss["outcome_margin"] == pytest.approx(outcome.high - outcome.mean, rel=1e-3)
    assert quantized.losses(boards, moves[0], moves[0])["midgame"]["same"] == 1


@pytest.fixture
def writing(tmp_path, monkeypatch, few_graded_boards):
    """Convert to a file whose outputs are a function of the right ones; returns the error."""
    core = tiny_network(value_head=True)

    def complaint(change) -> str:
        def outputs(_format, _path, boards):
            return change({name: array.copy() for name, array in saved.predict_with(core)(boards).items()})

        changed = dataclasses.replace(
            formats.FORMATS["onnx-int8"],
            write=lambda _core, file: file.write_text("new"),
        )
        monkeypatch.setattr(formats, "FORMATS", {"onnx-int8": changed})
        monkeypatch.setattr(conversion, "run_alone", outputs)
        with pytest.raises(UserError) as error:
            conversion.convert("onnx-int8", core, tmp_path / "model")
        return str(error.value)

    return complaint


def test_a_file_that_loses_a_point_is_refused(writing, monkeypatch):
    loss = {"optimal": 0.01, "optimal_margin": 0.002}
    monkeypatch.setattr(quantized, "losses", lambda *_: {"midgame": loss})
    said = writing(lambda honest: honest)
    assert said == (
        "ONNX int8: the written file loses 1.0 ±0.2 on midgame, in points of optimal; allowed: less than 1 on each set"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda right: right | {"move": 6 - right["move"]},
        lambda right: {name: array for name, array in right.items() if name != "value"},
    ],
)
def test_a_file_whose_move_is_not_the_best_of_its_logits_or_that_lacks_an_output_is_refused(writing, wrong):
    assert "the written file does not compute what the network does" in writing(wrong)

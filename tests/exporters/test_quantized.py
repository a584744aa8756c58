"""Networks in 8 bits. Properties:

- of every network that ships, both files ship, smaller than the float ones beside them, and answer any number of boards
  with outputs of the contract's names, types and rules, each board as it is answered alone;
- what a card says that they lose is what they lose, and is less than a point of exact on every set;
- nearly all their weights have 8 bits, of ONNX seven of the eight, which no processor overflows;
- outputs that do not fit each other are seen, each kind;
- losses are those of grades by the judge, and a file that loses a point is refused and leaves the old one;
- a file whose outputs do not fit each other, or are of other names, is refused.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import REFERENCE, SHIPPED
from network_helpers import tiny_network

from distill.common import UserError
from distill.datasets.benchmark import GradedBoards
from distill.evaluation import grading
from distill.exporters import comparison, formats, quantized
from distill.networks import finding, heads, predict
from distill.players.player import Choices

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="the extra litert is not installed")

IN_8_BITS = [name for name in formats.FORMATS if formats.FORMATS[name].int8]


def file_of(network: str, name: str) -> Path:
    return REFERENCE / network / "saved_model" / finding.FILES[name].name


def answer(file: Path, boards: np.ndarray) -> dict[str, np.ndarray]:
    """A file's outputs, whichever runtime reads it."""
    if file.suffix == ".onnx":
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, {"board": boards}), strict=True))
    runner = interpreter.Interpreter(str(file)).get_signature_runner("serving_default")
    return {name: array.copy() for name, array in runner(board=boards).items()}


@pytest.mark.parametrize("name", IN_8_BITS)
@pytest.mark.parametrize("network", SHIPPED)
def test_a_file_that_ships_keeps_the_contract(network, name):
    file, boards = file_of(network, name), comparison.check_boards()
    floating = file_of(network, name.removesuffix("-int8"))
    assert file.stat().st_size < 0.7 * floating.stat().st_size
    found, expected = answer(file, boards), answer(floating, boards)
    assert {key: (array.dtype, array.shape) for key, array in found.items()} == {
        key: (array.dtype, array.shape) for key, array in expected.items()
    }
    assert comparison.contradictions(found) == []
    assert found["move"][-1] == -1
    assert 0 < np.abs(found["policy"] - expected["policy"]).max() < 0.5
    for alone in (boards[:1], boards[100:101]):
        place = int((boards == alone).all((1, 2)).argmax())
        np.testing.assert_allclose(answer(file, alone)["policy"][0], found["policy"][place], atol=1e-5)


@functools.cache
def asked(network: str) -> tuple[GradedBoards, np.ndarray, np.ndarray]:
    """A quarter of the graded boards, their questions, and the moves with which the network answers them."""
    _, boards = quantized.graded_boards()
    boards = boards[np.arange(0, len(boards), 4)]
    questions = quantized.questions(boards)
    return boards, questions, predict.load(REFERENCE / network)(questions)["move"]


@pytest.mark.parametrize("name", IN_8_BITS)
@pytest.mark.parametrize("network", SHIPPED)
def test_a_file_loses_what_its_card_says_and_less_than_a_point(network, name):
    """On a quarter of the boards, so within the sum of both intervals."""
    file = file_of(network, name)
    boards, questions, expected = asked(network)
    found = quantized.losses(boards, expected, answer(file, questions)["move"])
    card = (file.parent / "README.md").read_text()
    rows = re.findall(rf"^\| `{file.name}` \| `(\w+)` \|.*% \| (-?[\d.]+) ±([\d.]+) \| .*$", card, re.MULTILINE)
    assert [row[0] for row in rows] == list(found)
    for set_name, lost, margin in rows:
        assert float(lost) < 100 * quantized.MOST_LOST
        here = found[set_name]
        assert abs(100 * here.optimal - float(lost)) <= 100 * here.optimal_margin + float(margin)
        assert 0.85 < here.same < 1


@pytest.mark.parametrize("network", SHIPPED)
def test_weights_have_8_bits_and_of_onnx_seven(network):
    model = onnx.load(file_of(network, "onnx-int8"))
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    weights = [array for array in arrays if array.dtype == np.int8 and array.ndim > 1]
    assert len(weights) >= 6
    assert all(np.abs(array.astype(int)).max() <= 64 for array in weights)
    assert sum(array.size for array in weights) > 0.8 * sum(array.size for array in arrays)
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx"}
    details = interpreter.Interpreter(str(file_of(network, "litert-int8"))).get_tensor_details()
    sizes = [
        int(np.prod(tensor["shape"])) for tensor in details if tensor["dtype"] == np.int8 and len(tensor["shape"]) > 1
    ]
    assert sum(sizes) > 0.9 * sum(array.size for array in weights)


def outputs() -> dict[str, np.ndarray]:
    logits = np.array([[1, 2, 3, 3, 0, 0, 0], [heads.FULL_COLUMN_LOGIT, 1, 0, 0, 0, 0, 0], [-1e9] * 7], np.float32)
    powers = np.where(logits < -1e8, 0, np.exp(logits))
    policy = powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)
    moves = np.array([3, 1, -1], np.int32)
    return {"logits": logits, "policy": policy.astype(np.float32), "move": moves, "value": np.zeros(3, np.float32)}


@pytest.mark.parametrize(
    ("name", "place", "wrong"),
    [
        ("policy", (0, 0), 0.5),
        ("policy", (1, 0), 1e-9),
        ("policy", (2, 3), 1e-9),
        ("move", (0,), 2),
        ("move", (2,), 3),
        ("value", (1,), 1.5),
        ("value", (1,), np.nan),
        ("logits", (1, 0), -9e8),
        ("logits", (0, 4), np.nan),
    ],
)
def test_outputs_that_do_not_fit_each_other_are_seen(name, place, wrong):
    assert comparison.contradictions(outputs()) == []
    found = outputs()
    found[name][place] = wrong
    assert name in comparison.contradictions(found)


def test_losses_are_those_of_the_judges_grades():
    _, boards = quantized.graded_boards()
    boards = boards[np.arange(0, len(boards), 20)]
    dice = np.random.default_rng(0)
    legal = quantized.questions(boards)[:, 0] == 0
    moves = [np.where(legal, dice.random(legal.shape), -1).argmax(1) for _ in range(2)]

    class Answering:
        def __init__(self, name: str, given: np.ndarray) -> None:
            self.name, self.sides = name, iter(np.split(given, 2))

        def play(self, *_) -> Choices:
            return Choices(moves=next(self.sides), policy=None, value=None)

    one, other = (grading.grade(Answering(name, given), boards, 0) for name, given in zip("ab", moves, strict=True))
    expected = grading.compare(boards, one, other)
    found = quantized.losses(boards, *moves)
    assert list(found) == list(expected)
    for name, loss in found.items():
        optimal, right_class = expected[name]["optimal"], expected[name]["outcome"]
        assert (loss.boards, loss.optimal, loss.right_class) == (
            optimal.units,
            pytest.approx(optimal.mean),
            pytest.approx(right_class.mean),
        )
        assert loss.optimal_margin == pytest.approx(optimal.high - optimal.mean, rel=1e-3)
        assert loss.class_margin == pytest.approx(right_class.high - right_class.mean, rel=1e-3)
    assert quantized.losses(boards, moves[0], moves[0])["midgame"].same == 1


@pytest.fixture
def writing(tmp_path, monkeypatch):
    """Write a file whose outputs a function of the honest ones makes up; gives the complaint."""
    core = tiny_network(value_head=True)
    few = [boards[np.arange(0, len(boards), 50)] for boards in quantized.graded_boards()]
    monkeypatch.setattr(quantized, "graded_boards", lambda: few)
    (tmp_path / "model").write_text("old")
    from distill.networks import saved

    def complaint(change) -> str:
        def outputs(_file, _client, _unwanted, _place, boards):
            honest = {name: array.copy() for name, array in saved.predict_with(core)(boards).items()}
            return change(honest)

        fields = {**vars(formats.FORMATS["onnx-int8"]), "convert": lambda _core, file: file.write_text("new")}
        fields["sign"] = lambda _file, _about: None  # it is no ONNX file
        monkeypatch.setattr(formats, "FORMATS", {"onnx-int8": formats.Format(**fields)})
        monkeypatch.setattr(comparison, "outputs_in_clean_process", outputs)
        with pytest.raises(UserError) as error:
            formats.write("onnx-int8", core, tmp_path / "model")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
        return str(error.value)

    return complaint


def test_a_file_that_loses_a_point_is_refused(writing, monkeypatch):
    loss = quantized.Loss(boards=9, same=0.9, optimal=0.01, optimal_margin=0.002, right_class=0, class_margin=0)
    monkeypatch.setattr(quantized, "losses", lambda *_: {"midgame": loss})
    said = writing(lambda honest: honest)
    assert said == (
        "ONNX int8: the written file loses 1.0 ±0.2 on midgame, in points of optimal; allowed: less than 1 on each set"
    )


def test_a_file_whose_outputs_do_not_fit_is_refused(writing):
    assert "do not fit each other (policy)" in writing(lambda honest: honest | {"policy": honest["policy"] * 2})
    without = lambda honest: {name: array for name, array in honest.items() if name != "value"}  # noqa: E731
    assert "do not fit each other (value)" in writing(without)

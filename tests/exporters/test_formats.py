"""The network for other runtimes. Properties:

- an export of a network that ships leaves all it promises, in place of an older one and of one that was killed, and
  each file tells the version, the commit and the network that it is of;
- the ONNX and LiteRT files that ship give the outputs of their network, by the same names and types, for any number of
  boards, full columns and the full board among them;
- written again, they do so in a process without TensorFlow, Keras and this project;
- every network can be converted, and only plain operations of ONNX are in the file (browsers run it);
- what differs by rounding is accepted, however large the logits are; what differs by more, in any output, is refused;
- a converter that reports success and leaves a file that is invalid, cannot be loaded or answers otherwise is found
  out: the old file stays, and nothing else is left;
- a missing extra is one line with the command that installs it, before anything is written;
- moves may differ where two logits are equal up to rounding, and only there: each is the best of the logits beside it.

`pytest -m slow tests/exporters/test_formats.py` converts every network that can be built.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
import zipfile

import keras
import numpy as np
import pytest
from helpers import REFERENCE, SHIPPED
from network_helpers import answering

import distill
from distill import networks
from distill.common import UserError, file_hash, provenance
from distill.exporters import comparison, formats, quantized
from distill.networks import heads, saved

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="the extra litert is not installed")


@pytest.fixture(scope="module", params=SHIPPED)
def shipped(request):
    return request.param


@pytest.fixture(scope="module")
def core(shipped):
    return saved.load_core(REFERENCE / shipped / "best.keras")


@pytest.fixture(scope="module")
def expected(core):
    return saved.predict_with(core)(comparison.check_boards())


@pytest.fixture(scope="module")
def files(shipped):
    return REFERENCE / shipped / "saved_model"


def test_an_export_leaves_the_model_its_examples_card_and_sums_and_nothing_else(exported):
    assert sorted(p.name for p in exported.iterdir()) == [".lock", "best.keras", "config.json", "saved_model"]
    found = sorted(p.name for p in (exported / "saved_model").iterdir())
    assert found == ["1", "README.md", "SHA256SUMS", "examples.json", "export.json", "model.onnx", "model.tflite"]


def test_every_exported_file_tells_version_commit_and_network(exported):
    folder = exported / "saved_model"
    about = json.loads((folder / "export.json").read_text())
    assert about["distill_version"] == distill.__version__
    assert about["commit"] == provenance.commit()
    assert (about["network"], about["arch"], about["seed"]) == ("pillar", "pillar-lines", "0")
    assert about["network_sha256"] == file_hash(exported / "best.keras")
    assert json.loads((folder / "1" / "assets.extra" / "export.json").read_text()) == about
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        assert json.loads(archive.read("export.json")) == about
    model = onnx.load(folder / "model.onnx")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata.pop("converter").startswith("tf2onnx 1.")
    assert metadata == about
    read = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"]).get_modelmeta()
    assert (read.producer_name, read.version) == ("distill", 1)
    assert read.custom_metadata_map["commit"] == provenance.commit()


@pytest.mark.parametrize("name", ["onnx", "litert"])
@pytest.mark.parametrize("shipped", [name for name in SHIPPED if name != "pillar"], indirect=True)
def test_so_are_the_other_networks_that_ship_written_again(core, expected, name, tmp_path):
    assert formats.write(name, core, tmp_path / "model", expected).difference <= comparison.TOLERANCE


@pytest.mark.parametrize("shipped", [name for name in SHIPPED if name != "pillar"], indirect=True)
def test_and_as_saved_models(core, expected, tmp_path):
    saved.write(core, tmp_path / "1")
    weights = (tmp_path / "1" / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert weights < 1.1 * 4 * core.count_params()  # each is written once
    found = saved.load(tmp_path / "1")(comparison.check_boards())
    assert comparison.largest_difference(expected, found) <= comparison.TOLERANCE


def onnx_answer(file, boards):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"board": boards}), strict=True))


def litert_answer(file, boards):
    runner = interpreter.Interpreter(model_path=str(file)).get_signature_runner("serving_default")
    return {name: array.copy() for name, array in runner(board=boards).items()}


@pytest.mark.parametrize(("file", "answer"), [("model.onnx", onnx_answer), ("model.tflite", litert_answer)])
def test_a_file_answers_any_number_of_boards_as_the_network(files, expected, file, answer):
    for number in (1, 3, 256):
        boards = comparison.check_boards()[-number:]
        found = answer(files / file, boards)
        assert set(found) == set(expected)
        for name, array in found.items():
            assert array.dtype == (np.int32 if name == "move" else np.float32)
        last = {name: array[-number:] for name, array in expected.items()}
        assert comparison.largest_difference(last, found) <= comparison.TOLERANCE
        full = boards[:, 0] != 0
        assert (found["logits"][full] == np.float32(heads.FULL_COLUMN_LOGIT)).all()
        assert (found["policy"][full] == 0).all()
        assert found["move"][-1] == -1


def test_the_onnx_file_says_what_it_takes_and_has_plain_operations_only(files):
    model = onnx.load(files / "model.onnx")
    (board,) = model.graph.input
    shape = board.type.tensor_type.shape.dim
    assert (board.name, board.type.tensor_type.elem_type) == ("board", onnx.TensorProto.INT8)
    assert (shape[0].dim_param, shape[1].dim_value, shape[2].dim_value) == ("batch", 6, 7)
    assert [(entry.domain, entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")] == [
        ("", formats.ONNX_OPSET)
    ]
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx"}
    assert not {node.op_type for node in model.graph.node} & {"If", "Loop", "Scan"}


def test_ties_go_to_the_centre_and_then_the_lower_column_in_every_format(tmp_path):
    """Also between 0 and -0, which some runtimes tell apart."""
    model, board = answering([-1.0, 0.0, -0.0, -1.0, 0.0, -1.0, 0.0]), np.zeros((2, 6, 7), np.int8)
    for format, answer in (("onnx", onnx_answer), ("litert", litert_answer)):
        file = tmp_path / formats.FORMATS[format].file
        options = {"opset_version": formats.ONNX_OPSET} if format == "onnx" else {}
        with warnings.catch_warnings(action="ignore"):
            model.export(file, format=format, input_signature=[saved.board_signature()], verbose=False, **options)
        assert answer(file, board)["move"].tolist() == [2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("arch", networks.ARCHS)
@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_network_can_be_converted(tmp_path, monkeypatch, arch, name):
    keras.utils.set_random_seed(1)
    core = networks.build(arch, value_head=True)
    if formats.FORMATS[name].int8:  # what an untrained network loses means nothing
        monkeypatch.setattr(quantized, "check", lambda *_: None)
        assert formats.write(name, core, tmp_path / "model").losses
    else:
        assert formats.write(name, core, tmp_path / "model").difference <= comparison.TOLERANCE


one_network = pytest.mark.parametrize("shipped", SHIPPED[:1], indirect=True)
"""For what does not depend on the network."""


def converting_to(monkeypatch, name, convert):
    fields = {**vars(formats.FORMATS[name]), "convert": convert}
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS, name: formats.Format(**fields)})


def refused(tmp_path, core, expected, name="onnx") -> str:
    """The complaint of a refused writing, which leaves what was there and nothing else."""
    file = tmp_path / "model"
    file.write_text("old")
    with pytest.raises(UserError) as error:
        formats.write(name, core, file, expected)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    return str(error.value)


@pytest.mark.parametrize("name", formats.FORMATS)
@one_network
def test_a_file_that_cannot_be_loaded_is_refused(tmp_path, core, expected, monkeypatch, name):
    converting_to(monkeypatch, name, lambda _core, file: file.write_bytes(b"not a model"))
    assert "the written file does not work without the project" in refused(tmp_path, core, expected, name)


@one_network
def test_a_file_of_another_network_is_refused(tmp_path, core, expected, monkeypatch, files):
    converting_to(monkeypatch, "onnx", lambda _core, file: file.write_bytes((files / "model.onnx").read_bytes()))
    other = {**expected, "policy": expected["policy"] + np.float32(2e-5)}
    assert "ONNX: the written file differs from the network (policy by 2." in refused(tmp_path, core, other)


@one_network
def test_a_file_for_one_board_alone_is_refused(tmp_path, core, expected, monkeypatch, files):
    def convert(_core, file):
        model = onnx.load(files / "model.onnx")
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(model, file)

    converting_to(monkeypatch, "onnx", convert)
    assert "does not work" in refused(tmp_path, core, expected)


@one_network
def test_an_invalid_file_of_a_converter_that_reports_success_is_refused(tmp_path, core, expected, monkeypatch, files):
    """What tf2onnx does with an operation it does not know: it says nothing and writes it under its own name."""

    def export(_model, file, **_options):
        model = onnx.load(files / "model.onnx")
        model.graph.node[0].op_type = "BitwiseBitcast"
        onnx.save(model, file)

    monkeypatch.setattr(keras.Model, "export", export)
    assert "ONNX: the file is not valid" in refused(tmp_path, core, expected)


@one_network
@pytest.mark.parametrize(
    ("name", "module"), [("onnx", "tf2onnx"), ("onnx", "onnxruntime"), ("litert", "ai_edge_litert")]
)
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(
    tmp_path, core, expected, monkeypatch, name, module
):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: None if wanted == module else find(wanted))
    line = f"the format {name} needs {module}; to install it: {provenance.install_line(name)}"
    assert refused(tmp_path, core, expected, name) == line


LARGE = 47.6
"""The largest logit of the network that ships, on which float32 differs by 2e-5 between runtimes and machines."""


def outputs() -> dict[str, np.ndarray]:
    """Of a network with large logits, one with small ones and a full column, and on a full board."""
    logits = np.array([[LARGE, 1, 2, 3, 4, 5, 6], [-1e9, 0.1, 0.3, 0.2, 0.1, 0, 0], [-1e9] * 7], np.float32)
    policy = np.array([[1, 0, 0, 0, 0, 0, 0], [0, 0.1, 0.3, 0.2, 0.2, 0.1, 0.1], [0] * 7], np.float32)
    return {
        "logits": logits,
        "policy": policy,
        "value": np.array([1, 0.2, 0], np.float32),
        "move": np.array([0, 2, -1], np.int32),
    }


def changed(name: str, place: tuple[int, ...], by: float) -> dict[str, np.ndarray]:
    found = outputs()
    found[name][place] += np.asarray(by, found[name].dtype)
    return found


@pytest.mark.parametrize(
    ("name", "place", "by"),
    [
        ("logits", (0, 0), 1.9e-5),  # the shipped network on a Zen 4: once refused, because 1e-5 was the limit
        ("logits", (0, 1), 4e-4),  # a smaller logit of the same board is summed from terms as large
        ("logits", (1, 2), 9e-6),
        ("policy", (1, 2), 9e-6),
        ("value", (0,), -9e-6),
    ],
)
def test_a_difference_by_rounding_is_accepted(name, place, by):
    assert comparison.largest_difference(outputs(), changed(name, place, by)) <= comparison.TOLERANCE


@pytest.mark.parametrize(
    ("name", "place", "by"),
    [
        ("logits", (0, 0), 1e-3),
        ("logits", (1, 2), 1.9e-5),  # of 0.3: no rounding
        ("logits", (1, 0), 64),  # the next float32 to -1e9: a full column's is that or nothing
        ("logits", (2, 6), 1e9),
        ("logits", (0, 2), np.nan),
        ("policy", (1, 2), 1.9e-5),
        ("value", (0,), -1.9e-5),
        ("value", (1,), np.nan),
        ("move", (0,), 1),
        ("move", (1,), -1),
        ("move", (2,), 4),
    ],
)
def test_a_difference_by_more_is_refused(name, place, by):
    found = changed(name, place, by)
    assert comparison.differences(outputs(), outputs()) == {"logits": 0, "move": 0, "policy": 0, "value": 0}
    assert not comparison.largest_difference(outputs(), found) <= comparison.TOLERANCE
    wrong = {output for output, difference in comparison.differences(outputs(), found).items() if difference != 0}
    assert name in wrong <= {name, "move"}  # a logit that is not a number is no best one either


def test_an_output_that_is_missing_or_of_another_shape_is_refused():
    without = {name: array for name, array in outputs().items() if name != "value"}
    for found in ({}, without, outputs() | {"value": np.zeros((3, 1), np.float32)}):
        assert comparison.largest_difference(outputs(), found) == np.inf
    assert comparison.largest_difference(without, outputs()) == np.inf


def test_a_move_is_the_best_of_the_logits_beside_it_and_may_differ_by_rounding_and_only_so():
    logits = np.array([[0, 3, 2, 0, 0, 0, 0], [0, 3, 3, 0, 0, 0, 0], [-1e9] * 7])
    expected = {"logits": logits, "move": np.array([1, 2, -1])}
    rounded = logits.copy()
    rounded[1, 1] += 4e-6

    def difference(logits: np.ndarray, *moves: int) -> float:
        return comparison.largest_difference(expected, {"logits": logits, "move": np.array(moves)})

    assert difference(logits, 1, 2, -1) == 0
    assert difference(rounded, 1, 1, -1) == pytest.approx(4e-6 / 3)
    for wrong in ((rounded, 1, 2, -1), (logits, 1, 1, -1), (logits, 2, 2, -1), (logits, 1, 2, 3), (logits, -1, 2, -1)):
        assert difference(*wrong) == np.inf

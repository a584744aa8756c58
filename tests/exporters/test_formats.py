"""The export formats. Properties:

- an export leaves all it promises, in place of an older and a killed one; each file holds version, commit and network;
- the files that ship give the outputs of their network; slow: every network and architecture exports to every format;
- a format from outside the package is one write function, one load function and one line;
- the ONNX file has standard operations only (browsers run it), and none that onnx2torch does not know;
- rounding errors are accepted, larger differences refused; a file that is invalid, cannot be loaded or differs leaves
  the old one, and so does a missing extra, in one line.
"""

import dataclasses
import importlib.util
import json
import warnings
import zipfile
from unittest.mock import Mock

import keras
import numpy as np
import pytest
from helpers import FORMATS_SHIPPED, REFERENCE, SHIPPED, shipping
from network_helpers import answering, tiny_network

import distill
from distill import networks
from distill.common import UserError, file_hash, provenance
from distill.exporters import conversion, formats, quantized
from distill.networks import heads, saved

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
pytest.importorskip("ai_edge_litert.interpreter", reason="the extra litert is not installed")

MODEL = REFERENCE / SHIPPED[0] / "saved_model"


@pytest.fixture(scope="module")
def core():
    """For tests that do not depend on the network."""
    return tiny_network(value_head=True)


@pytest.fixture
def few_graded_boards(monkeypatch):
    """Formats in 8 bits are converted as ever, but graded on few boards, on which a loss means nothing."""
    few = [boards[np.arange(0, len(boards), 50)] for boards in quantized.graded_boards()]
    monkeypatch.setattr(quantized, "graded_boards", lambda: few)
    monkeypatch.setattr(quantized, "check", lambda *_: None)


def test_an_export_leaves_the_model_its_examples_card_and_sums_and_each_file_holds_its_facts(exported):
    folder = exported / "saved_model"
    assert {p.name for p in exported.iterdir()} == {".lock", "_run.json", "best.keras", "saved_model"}
    found = {p.name for p in folder.iterdir()}
    assert found == {"1", "README.md", "SHA256SUMS", "examples.json", "export.json", "model.onnx", "model.tflite"}
    facts = json.loads((folder / "1" / "assets.extra" / "export.json").read_text())
    assert facts["distill_version"] == distill.__version__
    assert facts["commit"] == provenance.commit()
    assert (facts["network"], facts["arch"], facts["seed"]) == ("pillar", "pillar", 0)
    assert (facts["parameters"], facts["value_head"]) == (192_424, True)
    assert facts["network_sha256"] == file_hash(exported / "best.keras")
    beside = json.loads((folder / "export.json").read_text())
    assert facts.items() <= beside.items()
    assert beside["files"].keys() == {"1", "model.tflite", "model.onnx"}
    assert max(found["difference"] for found in beside["files"].values()) <= 1e-5
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        assert json.loads(archive.read("export.json")) == facts
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    read = session.get_modelmeta()
    assert (read.producer_name, read.version) == ("distill", 1)
    texts = read.custom_metadata_map
    assert texts.pop("converter").startswith("tf2onnx 1.")
    assert texts == {name: str(value) for name, value in facts.items()}


QUICK = {("reference/pillar", "onnx-int8"), ("reference/pillar", "litert-int8"), ("reference/transformer", "onnx")}
"""Not exported by the fixture `exported`."""
CORES = [*(f"reference/{name}" for name in SHIPPED), *networks.ARCHS]
CASES = [
    pytest.param(network, name, marks=[] if (network, name) in QUICK else [pytest.mark.slow])
    for network in CORES
    for name in formats.FORMATS
]


@pytest.mark.parametrize(("network", "name"), CASES)
def test_every_network_can_be_exported_to_every_format(tmp_path, network, name, few_graded_boards):
    keras.utils.set_random_seed(1)
    file = REFERENCE.parent / network / "best.keras"
    core = saved.load_core(file) if file.exists() else networks.build(network, value_head=True)
    if name.startswith("kaggle") and networks.arch_of(core) in ("pillar-large", "mk4", "resnet"):
        with pytest.raises(UserError, match="Kaggle: "):
            conversion.convert(name, core, tmp_path / "model")
        return
    found = conversion.convert(name, core, tmp_path / "model")
    assert found.losses if formats.FORMATS[name].int8 else found.difference <= conversion.TOLERANCE
    if name == "savedmodel":
        weights = (tmp_path / "model" / "variables" / "variables.data-00000-of-00001").stat().st_size
        assert weights < 1.1 * 4 * core.count_params(), "each is written once"


def write_keras(core, path):
    heads.served(core).save(path)


def load_keras(path):
    import keras

    return keras.models.load_model(path)


def test_a_format_from_outside_the_package_is_two_functions_and_a_line(tmp_path, monkeypatch, core):
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS})
    needs = ("keras", "tensorflow")
    mine = formats.Format(file="model.keras", title="Keras", write=write_keras, load=load_keras, needs=needs)
    formats.register("keras", mine)
    assert conversion.convert("keras", core, tmp_path / "model.keras").difference <= conversion.TOLERANCE
    with pytest.raises(ValueError, match="must be a new name"):
        formats.register("keras", mine)
    formats.FORMATS["keras"] = dataclasses.replace(mine, needs=())
    with pytest.raises(UserError, match="it needs"):
        conversion.convert("keras", core, tmp_path / "model.keras")


def test_each_network_ships_in_the_formats_that_the_documents_name():
    for network in SHIPPED:
        folder = REFERENCE / network / "saved_model"
        found = {name for name, each in formats.FORMATS.items() if (folder / each.file).exists()}
        assert found == FORMATS_SHIPPED[network]


@pytest.mark.parametrize(("network", "name"), shipping("onnx", "litert"))
def test_a_file_that_ships_answers_any_number_of_boards_as_the_network(network, name):
    answer = formats.FORMATS[name].load(str(REFERENCE / network / "saved_model" / formats.FORMATS[name].file))
    expected = saved.predict_with(saved.load_core(REFERENCE / network / "best.keras"))(conversion.check_boards())
    for number in (1, 3, 256):
        boards = conversion.check_boards()[-number:]
        found = answer(boards)
        assert {key: array.dtype for key, array in found.items()} == {
            key: np.int32 if key == "move" else np.float32 for key in expected
        }
        last = {key: array[-number:] for key, array in expected.items()}
        assert conversion.largest_difference(last, found) <= conversion.TOLERANCE
        full = boards[:, 0] != 0
        assert (found["logits"][full] == np.float32(heads.FULL_COLUMN_LOGIT)).all()
        assert (found["policy"][full] == 0).all()
        assert found["move"][-1] == -1


@pytest.mark.parametrize(("network", "name"), shipping("onnx", "onnx-int8"))
def test_an_onnx_file_names_its_input_and_has_standard_operations_only(network, name):
    model = onnx.load(REFERENCE / network / "saved_model" / formats.FORMATS[name].file)
    (board,) = model.graph.input
    shape = board.type.tensor_type.shape.dim
    assert (board.name, board.type.tensor_type.elem_type) == ("board", onnx.TensorProto.INT8)
    assert (shape[0].dim_param, shape[1].dim_value, shape[2].dim_value) == ("batch", 6, 7)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", formats.ONNX_OPSET)]
    assert {node.domain for node in model.graph.node} == {""}
    assert not {node.op_type for node in model.graph.node} & {"If", "Loop", "OneHot", "ReverseSequence", "Scan"}


def test_ties_go_to_the_centre_and_then_the_lower_column_in_every_format(tmp_path):
    """Also between 0 and -0, which some runtimes distinguish."""
    model, board = answering([-1.0, 0.0, -0.0, -1.0, 0.0, -1.0, 0.0]), np.zeros((2, 6, 7), np.int8)
    for name, options in (("onnx", {"opset_version": formats.ONNX_OPSET}), ("litert", {})):
        file = tmp_path / formats.FORMATS[name].file
        with warnings.catch_warnings(action="ignore"):
            model.export(file, format=name, input_signature=[saved.board_signature()], verbose=False, **options)
        assert formats.FORMATS[name].load(str(file))(board)["move"].tolist() == [2, 2]


def refused(tmp_path, core, name="onnx", **given) -> str:
    """The error of a refused conversion, which leaves what was there and nothing else."""
    file = tmp_path / "model"
    file.write_text("old")
    with pytest.raises(UserError) as error:
        conversion.convert(name, core, file, **given)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    return str(error.value)


def writing(monkeypatch, name, write):
    changed = dataclasses.replace(formats.FORMATS[name], write=write)
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS, name: changed})


@pytest.mark.parametrize("name", [name for name in formats.FORMATS if name != "savedmodel"])
def test_a_file_that_cannot_be_loaded_is_refused(tmp_path, core, monkeypatch, name):
    writing(monkeypatch, name, lambda _core, file: file.write_bytes(b"not a model"))
    # ONNX files are read here, to embed facts; the others by the process without the project alone.
    problem = "cannot be written" if name.startswith("onnx") else "the written file does not work without the project"
    assert problem in refused(tmp_path, core, name)
    writing(monkeypatch, name, Mock(side_effect=ValueError("no such operation\n  in layer 3")))
    assert refused(tmp_path, core, name).endswith(": cannot be written (no such operation)")


def test_a_file_of_another_network_is_refused(tmp_path, monkeypatch):
    core = saved.load_core(MODEL.parent / "best.keras")
    expected = saved.predict_with(core)(conversion.check_boards())
    writing(monkeypatch, "onnx", lambda _core, file: file.write_bytes((MODEL / "model.onnx").read_bytes()))
    other = {**expected, "policy": expected["policy"] + np.float32(2e-5)}
    error = refused(tmp_path, core, predict=lambda _boards: other)
    assert "ONNX: the written file differs from the network (policy by 2." in error


def test_an_invalid_file_of_a_converter_that_reports_success_is_refused(tmp_path, core, monkeypatch):
    """tf2onnx writes an operation it does not know under its own name, without an error."""

    def export(_model, file, **_options):
        model = onnx.load(MODEL / "model.onnx")
        model.graph.node[0].op_type = "BitwiseBitcast"
        onnx.save(model, file)

    monkeypatch.setattr(keras.Model, "export", export)
    assert "ONNX: the file is not valid" in refused(tmp_path, core)


@pytest.mark.parametrize(
    ("name", "module"), [("onnx", "tf2onnx"), ("onnx", "onnxruntime"), ("litert", "ai_edge_litert")]
)
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(tmp_path, core, monkeypatch, name, module):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: None if wanted == module else find(wanted))
    line = f"the format {name} needs {module}; to install it: {provenance.install_line(name)}"
    assert refused(tmp_path, core, name) == line


LARGE = 47.6
"""The largest logit of the network that ships, on which float32 differs by 2e-5 between runtimes and machines."""


def outputs() -> dict[str, np.ndarray]:
    """Outputs of a network with large logits, one with small ones and a full column, and on a full board."""
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
        ("logits", (0, 0), 1.9e-5),  # the shipped network on a Zen 4
        ("logits", (0, 1), 4e-4),  # a smaller logit of the same board is a sum of terms as large
        ("policy", (1, 2), 9e-6),
        ("value", (0,), -9e-6),
    ],
)
def test_a_rounding_error_is_accepted(name, place, by):
    assert conversion.largest_difference(outputs(), changed(name, place, by)) <= conversion.TOLERANCE


@pytest.mark.parametrize(
    ("name", "place", "by"),
    [
        ("logits", (0, 0), 1e-3),
        ("logits", (1, 2), 1.9e-5),  # of 0.3: no rounding error
        ("logits", (1, 0), 64),  # the next float32 to -1e9: a full column has exactly that
        ("logits", (0, 2), np.nan),
        ("policy", (1, 2), 1.9e-5),
        ("value", (0,), -1.9e-5),
        ("move", (0,), 1),
    ],
)
def test_a_larger_difference_is_refused(name, place, by):
    found = changed(name, place, by)
    assert conversion.differences(outputs(), outputs()) == {"logits": 0, "move": 0, "policy": 0, "value": 0}
    assert not conversion.largest_difference(outputs(), found) <= conversion.TOLERANCE
    assert conversion.largest_difference(outputs(), outputs() | {name: found[name][..., None]}) == np.inf, "its shape"
    assert conversion.largest_difference(outputs(), {key: found[key] for key in found if key != name}) == np.inf
    wrong = {output for output, difference in conversion.differences(outputs(), found).items() if difference != 0}
    assert name in wrong <= {name, "move"}  # a NaN logit has no best column either
    with pytest.raises(UserError, match=f"A: the written file differs from the network .*{name}"):
        conversion.check("A", outputs(), found)


def test_a_move_is_the_best_of_its_own_logits_and_may_differ_by_their_rounding_only():
    logits = np.array([[0, 3, 2, 0, 0, 0, 0], [0, 3, 3, 0, 0, 0, 0], [-1e9] * 7])
    expected = {"logits": logits, "move": np.array([1, 2, -1])}
    rounded = logits.copy()
    rounded[1, 1] += 4e-6

    def difference(logits: np.ndarray, *moves: int) -> float:
        return conversion.largest_difference(expected, {"logits": logits, "move": np.array(moves)})

    assert difference(logits, 1, 2, -1) == 0
    assert difference(rounded, 1, 1, -1) == pytest.approx(4e-6 / 3)
    for wrong in ((rounded, 1, 2, -1), (logits, 1, 1, -1), (logits, 2, 2, -1), (logits, 1, 2, 3), (logits, -1, 2, -1)):
        assert difference(*wrong) == np.inf

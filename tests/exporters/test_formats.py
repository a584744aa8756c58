"""The export formats: the files that ship give the outputs of their network; rounding errors are accepted; a file that
is invalid, cannot be loaded or differs is refused in one line. Slow: every network and architecture exports to every
format.
"""

import dataclasses
import warnings
from unittest.mock import Mock

import keras
import numpy as np
import onnx
import pytest
from helpers import FORMATS_SHIPPED, REFERENCE, SHIPPED, shipping
from network_helpers import answering, tiny_network

from distill import networks
from distill.common import UserError, file_hash, provenance, read_object
from distill.exporters import conversion, formats, quantized
from distill.networks import heads, saved

MODEL = REFERENCE / SHIPPED[0] / "saved_model"


@pytest.fixture(scope="module")
def core():
    """For tests that do not depend on the network."""
    return tiny_network(value_head=True)


def test_an_export_leaves_the_model_its_facts_examples_card_and_sums(exported):
    folder = exported / "saved_model"
    assert {p.name for p in exported.iterdir()} == {".lock", "_run.json", "best.keras", "saved_model"}
    names = {"1", "README.md", "SHA256SUMS", "examples.json", "export.json", "model.onnx", "model.tflite"}
    assert {p.name for p in folder.iterdir()} == names | {".lock", "_run.json"}
    facts = read_object(folder / "export.json")
    expected = {
        "commit": provenance.commit(),
        "network": "pillar",
        "arch": "pillar",
        "parameters": 192_424,
        "value_head": True,
        "network_sha256": file_hash(exported / "best.keras"),
    }
    assert expected.items() <= facts.items()
    assert facts["files"].keys() == {"1", "model.tflite", "model.onnx"}
    assert max(file["difference"] for file in facts["files"].values()) <= 1e-5


QUICK = {("reference/pillar", "onnx-int8"), ("reference/pillar", "litert-int8"), ("reference/transformer", "onnx")}
"""Not exported by the fixture `exported`."""
CORES = [*(f"reference/{name}" for name in SHIPPED), *networks.ARCHS]
CASES = [
    pytest.param(network, name, marks=[] if (network, name) in QUICK else [pytest.mark.slow])
    for network in CORES
    for name in formats.FORMATS
]


@pytest.mark.parametrize(("network", "name"), CASES)
def test_every_network_can_be_exported_to_every_format(tmp_path, network, name, few_graded_boards, monkeypatch):
    monkeypatch.setattr(quantized, "check", lambda *_: None)  # on few boards a loss means nothing
    keras.utils.set_random_seed(1)
    trained = REFERENCE.parent / network / "best.keras"
    core = saved.load_core(trained) if trained.exists() else networks.build(network, value_head=True)
    if name.startswith("kaggle") and networks.arch_of(core) in ("pillar-large", "mk4", "resnet"):
        with pytest.raises(UserError, match="Kaggle: "):
            conversion.convert(name, core, tmp_path / "model")
        return
    file = tmp_path / formats.FORMATS[name].file
    converted = conversion.convert(name, core, file)
    assert [*tmp_path.iterdir()] == [file]
    assert converted.losses if formats.FORMATS[name].int8 else converted.difference <= conversion.TOLERANCE
    if name == "savedmodel":
        weights = (file / "variables" / "variables.data-00000-of-00001").stat().st_size
        assert weights < 1.1 * 4 * core.count_params(), "each is written once"


def write_keras(core, path):
    heads.served(core).save(path)


def load_keras(path):
    import keras

    return keras.models.load_model(path)


def test_a_format_from_outside_the_package_is_two_functions_and_a_line(tmp_path, monkeypatch, core):
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS})
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # of the loader; it starts faster (TensorFlow: `test_documented_code`)
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
        shipped = {name for name, format in formats.FORMATS.items() if (folder / format.file).exists()}
        assert shipped == FORMATS_SHIPPED[network]


@pytest.mark.parametrize(("network", "name"), shipping("onnx", "litert"))
def test_a_file_that_ships_answers_any_number_of_boards_as_the_network(network, name):
    answer = formats.FORMATS[name].load(str(REFERENCE / network / "saved_model" / formats.FORMATS[name].file))
    expected = saved.predict_with(saved.load_core(REFERENCE / network / "best.keras"))(conversion.check_boards())
    for number in (1, 3, 256):
        boards = conversion.check_boards()[-number:]
        outputs = answer(boards)
        assert {key: array.dtype for key, array in outputs.items()} == {
            key: np.int32 if key == "move" else np.float32 for key in expected
        }
        last = {key: array[-number:] for key, array in expected.items()}
        assert conversion.largest_difference(last, outputs) <= conversion.TOLERANCE
        assert outputs["move"][-1] == -1


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


def refused(tmp_path, core, name="onnx", **options) -> str:
    """The error of a refused conversion."""
    with pytest.raises(UserError) as error:
        conversion.convert(name, core, tmp_path / formats.FORMATS[name].file, **options)
    return str(error.value)


def writing(monkeypatch, name, write):
    changed = dataclasses.replace(formats.FORMATS[name], write=write)
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS, name: changed})


@pytest.mark.parametrize("name", [name for name in formats.FORMATS if name != "savedmodel"])
def test_a_file_that_cannot_be_loaded_is_refused(tmp_path, core, monkeypatch, name):
    writing(monkeypatch, name, lambda _core, file: file.write_bytes(b"not a model"))
    assert "the written file does not work without the project" in refused(tmp_path, core, name)
    writing(monkeypatch, name, Mock(side_effect=ValueError("no such operation\n  in layer 3")))
    assert refused(tmp_path, core, name).endswith(": cannot be written (no such operation)")


def test_a_file_of_another_network_is_refused(tmp_path, monkeypatch):
    core = saved.load_core(MODEL.parent / "best.keras")
    expected = saved.predict_with(core)(conversion.check_boards())
    writing(monkeypatch, "onnx", lambda _core, file: file.write_bytes((MODEL / "model.onnx").read_bytes()))
    other = {**expected, "policy": expected["policy"] + np.float32(2e-5)}
    error = refused(tmp_path, core, predict=lambda _boards: other)
    assert "ONNX: the written file differs from the network by 2." in error


def test_an_invalid_file_of_a_converter_that_reports_success_is_refused(tmp_path, core, monkeypatch):
    """tf2onnx writes an operation it does not know under its own name, without an error."""

    def export(_model, file, **_options):
        model = onnx.load(MODEL / "model.onnx")
        model.graph.node[0].op_type = "BitwiseBitcast"
        onnx.save(model, file)

    monkeypatch.setattr(keras.Model, "export", export)
    assert "ONNX: cannot be written (No Op registered for BitwiseBitcast" in refused(tmp_path, core)


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


@pytest.mark.parametrize(
    ("name", "place", "by", "is_rounding"),
    [
        ("logits", (0, 0), 1.9e-5, True),  # the shipped network on a Zen 4
        ("logits", (0, 1), 4e-4, True),  # a smaller logit of the same board is a sum of terms as large
        ("policy", (1, 2), 9e-6, True),
        ("value", (0,), -9e-6, True),
        ("logits", (0, 0), 1e-3, False),
        ("logits", (1, 2), 1.9e-5, False),  # of 0.3: no rounding error
        ("logits", (1, 0), 64, False),  # the next float32 to -1e9: a full column has exactly that
        ("logits", (0, 2), np.nan, False),
        ("policy", (1, 2), 1.9e-5, False),
        ("policy", (1, 0), 1e-9, False),  # of a full column
        ("value", (0,), -1.9e-5, False),
        ("move", (0,), 1, False),  # not the best of its own logits
        ("move", (2,), 4, False),  # of a full board
    ],
)
def test_a_rounding_error_is_accepted_and_a_larger_difference_refused(name, place, by, is_rounding):
    changed = outputs()
    changed[name][place] += np.asarray(by, changed[name].dtype)
    assert conversion.largest_difference(outputs(), outputs()) == 0
    assert (conversion.largest_difference(outputs(), changed) <= conversion.TOLERANCE) == is_rounding
    if not is_rounding:
        with pytest.raises(UserError, match=r"A: the written file d(iffers from the network by|oes not compute what)"):
            conversion.check("A", outputs(), changed)
    for shape in (outputs() | {name: changed[name][..., None]}, {key: changed[key] for key in changed if key != name}):
        assert conversion.largest_difference(outputs(), shape) == np.inf


def test_a_move_may_differ_by_the_rounding_of_its_own_logits():
    logits = np.array([[0, 3, 3, 0, 0, 0, 0]], np.float64)
    rounded = logits + 4e-6 * (np.arange(7) == 1)

    def difference(logits: np.ndarray, move: int) -> float:
        return conversion.largest_difference(expected, expected | {"logits": logits, "move": np.array([move])})

    expected = {"logits": logits, "policy": logits / 6, "move": np.array([2])}
    assert difference(rounded, 1) <= conversion.TOLERANCE
    assert {difference(*wrong) for wrong in ((rounded, 2), (logits, 1), (logits, -1))} == {np.inf}

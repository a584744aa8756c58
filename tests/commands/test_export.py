"""Export. Properties:

- the SavedModel of every network that ships, the one in the repository and one written here, gives the network's
  outputs on 256 boards, full columns and the full board among them, in a process of TensorFlow alone too;
- a SavedModel that differs, or does not load alone, is refused: what was there stays, and no hidden folder is left;
- examples hold what the model answers, the sums fit the files, every other format asked for among them;
- the card says what the model is, how to load it, what it was trained on, how well it plays where that is recorded
  for this very network, and what it overlooks; its Python lines run; the page reads it;
- the warm-up requests are what TensorFlow Serving reads, and the signature answers them;
- it begins with front matter as the Hugging Face Hub reads it, whose figures are the card's own; so do the cards in the
  repository, which tell the sizes of the files beside them;
- a `.keras` file that holds code is refused;
- a missing model, or a missing extra, exits with 1 and one line; a wrong value with 2.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import yaml
from helpers import REFERENCE, SHIPPED
from network_helpers import same, tiny_network

from distill import export, networks
from distill.common import UserError, file_hash, provenance
from distill.exporters import comparison, formats, publish, quantized, run_facts, warmup, weaknesses
from distill.game import encoding, rules
from distill.networks import finding, saved
from distill.web.opponents import Opponents


@pytest.fixture(scope="module")
def core():
    """For what does not depend on the network."""
    return tiny_network(value_head=True)


def shipped_network(name):
    """Its outputs in Keras on the checked boards."""
    return saved.predict_with(saved.load_core(REFERENCE / name / "best.keras"))(comparison.check_boards())


@pytest.mark.parametrize("name", SHIPPED)
def test_the_saved_model_in_the_repository_answers_as_the_network_beside_it(name):
    found = saved.load(REFERENCE / name)(comparison.check_boards())
    assert comparison.largest_difference(shipped_network(name), found) <= comparison.TOLERANCE


@pytest.fixture(params=[*SHIPPED, "exported"])
def any_export(request):
    """The folder of each network that ships, and of one that was exported here."""
    return request.getfixturevalue("exported") if request.param == "exported" else REFERENCE / request.param


def test_the_sums_fit_every_file(any_export):
    folder = any_export / "saved_model"
    lines = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS"}
    assert lines == {name: hashlib.sha256(p.read_bytes()).hexdigest() for name, p in files.items()}


def test_a_client_gets_the_outputs_of_the_examples(any_export):
    examples = json.loads((any_export / "saved_model" / "examples.json").read_text())
    boards = np.array([example["board"] for example in examples], np.int8)
    outputs = saved.load(any_export)(boards)
    expected = {name: np.array([example[name] for example in examples], array.dtype) for name, array in outputs.items()}
    assert comparison.largest_difference(expected, outputs) <= comparison.TOLERANCE
    assert not boards[0].any()
    assert boards[-1].all()
    assert examples[-1]["move"] == -1
    assert sum(examples[-1]["policy"]) == 0


def arch_of(folder: Path) -> str:
    """The arch of a folder's network."""
    return networks.arch_of(saved.load_core(folder / "best.keras"))


def test_the_card_says_what_the_model_is(exported):
    card = (exported / "saved_model" / "README.md").read_text()
    for line in (
        f"# Connect 4 network `{arch_of(exported)}`",
        "parameters. Written at commit",
        f"| `model.onnx` | ONNX | {finding.size(exported / 'saved_model' / 'model.onnx')} |",
        "| value_target | blend |",
        "`value` float32",
        "a win in one move: taken in ",
        "## Figures\n\nNone recorded",
        "Apache-2.0",
    ):
        assert line in card
    assert "| None |" not in card  # of settings that were not used
    assert max(len(line) for line in card.splitlines() if not line.startswith("|")) <= 120


def front_matter(card):
    """What the Hub reads of a card, by its rules: YAML between the first line and the next of three dashes."""
    first, matter, rest = card.split("---\n", 2)
    assert first == ""
    assert rest.startswith("\n# Connect 4 network `")
    return yaml.safe_load(matter)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_front_matter_of_a_card_that_ships_has_its_figures(name):
    model = REFERENCE / name / "saved_model"
    text = (model / "README.md").read_text()
    found, card = front_matter(text), finding.read_card(model)
    assert (f"its name is `{name}`" in text) == (name != arch_of(REFERENCE / name))
    assert found["license"] == "apache-2.0"
    assert (found["library_name"], found["pipeline_tag"]) == ("onnx", "reinforcement-learning")
    assert found["tags"] == ["connect-4", "board-games", "distillation", "tflite", "onnx"]
    (index,) = found["model-index"]
    assert index["name"] == name
    assert [result["dataset"]["name"] for result in index["results"]] == ["midgame, test half", "heldout, test half"]
    for result in index["results"]:
        assert result["task"]["type"] == "reinforcement-learning"
        assert result["dataset"]["type"]
        assert [(metric["type"], type(metric["value"])) for metric in result["metrics"]] == [
            ("optimal", float),
            ("outcome", float),
        ]
    assert [f"{metric['value']}%" for metric in index["results"][0]["metrics"]] == [card.optimal, card.right_class]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_card_that_ships_tells_the_sizes_of_the_files_beside_it_and_what_8_bits_lose(name):
    model = REFERENCE / name / "saved_model"
    card = (model / "README.md").read_text()
    for file in finding.FILES.values():
        assert f"{file.title} | {finding.size(model / file.name)} | " in card
        if "int8" in file.title:
            rows = re.findall(rf"^\| `{file.name}` \| `(\w+)` \|.*% \| (-?[\d.]+) ±", card, re.MULTILINE)
            assert [set_name for set_name, _ in rows] == list(quantized.SETS)
            assert max(float(lost) for _, lost in rows) < 100 * quantized.MOST_LOST


def test_the_front_matter_of_a_network_without_grades_names_none(core):
    nothing = weaknesses.Tally(asked=0, found=0, missed=[])
    found = weaknesses.Weaknesses(wins=nothing, blocks=nothing, mirrored=nothing)
    matter = front_matter(publish.card.write(core, {}, [], found))
    assert "model-index" not in matter
    assert (matter["library_name"], matter["tags"][-1]) == ("tensorflow", "distillation")


def test_the_page_introduces_a_model_by_its_card(exported):
    found = {card.name: card.note for card in Opponents([exported.parent], 1000, 1).catalogue().players}
    parameters = saved.load_core(exported / "best.keras").count_params()
    assert found[exported.name] == f"{arch_of(exported)}, {parameters:,} parameters"


def test_the_lines_of_the_card_run_where_it_lies(exported, monkeypatch, capfd):
    monkeypatch.chdir(exported / "saved_model")
    programs = re.findall("```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    (move,) = saved.load(exported)(np.zeros((1, 6, 7), np.int8))["move"]
    assert len(programs) == 3
    for program in programs:
        assert len(program.strip().splitlines()) == 5
        exec(program, {})
        assert capfd.readouterr().out == f"{move}\n"


def test_the_warm_up_requests_are_what_tensorflow_serving_reads(exported):
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2

    file = exported / "saved_model" / "1" / "assets.extra" / "tf_serving_warmup_requests"
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(file))]
    loaded = tf.saved_model.load(str(exported / "saved_model" / "1"))
    assert len(records) == len(warmup.BATCHES)
    for record, batch in zip(records, warmup.BATCHES, strict=True):
        request = fields_of(fields_of(fields_of(record)[6])[1])
        spec, entry = fields_of(request[1]), fields_of(request[2])
        assert spec == {1: arch_of(exported).encode(), 3: b"serving_default"}
        assert entry.keys() == {1, 2}
        assert entry[1] == b"board"
        tensor = tf.make_ndarray(tensor_pb2.TensorProto.FromString(entry[2]))
        np.testing.assert_array_equal(tensor, comparison.check_boards()[:batch])
        assert tensor.dtype == np.int8
        answer = loaded.signatures[spec[3].decode()](board=tf.constant(tensor))
        assert answer["move"].shape == (batch,)


def fields_of(message: bytes) -> dict[int, bytes]:
    """By number, the fields of a protocol buffer whose fields are text or messages, as Google's own reader finds them.

    The numbers are those of TensorFlow Serving's apis/prediction_log.proto, predict.proto and model.proto: 6 the log,
    1 its request, in which 1 is the model (1 its name, 3 its signature) and 2 an input (1 its name, 2 its tensor).
    """
    from google.protobuf import empty_pb2, unknown_fields

    return {
        field.field_number: field.data for field in unknown_fields.UnknownFieldSet(empty_pb2.Empty.FromString(message))
    }


def run_folder(folder, games="run of the games"):
    """The files that `train` and `evaluate` leave around a network."""
    prepared, data = folder / "prepared", folder / "games"
    for place in (folder / "evaluation", prepared / "abc", data):
        place.mkdir(parents=True)
    (folder / "best.keras").touch()
    settings = {"arch": "cnn", "data": [str(data)], "prepared": str(prepared)}
    made = {"simulations": 10_000, "votes": 3, "rollout": "heuristic", "seed": 0}
    share = {"mean": 0.5, "low": 0.4, "high": 0.6, "units": 5000}
    sets = {name: {"optimal": share, "outcome": {**share, "mean": 0.55}} for name in ("midgame", "heldout", "trap-set")}
    mistake = {"current": 0b11, "mask": 0b1111, "played": 6, "score": -3, "best": [2, 3], "best_score": 0}
    graded = {"sets": sets, "mistakes": [mistake]}
    player = {"benchmark": {"half": "test"}, "players": {"uct:1": {}, str(folder): graded}}
    for file, content in {
        folder / "config.json": settings,
        folder / "metrics.json": {
            "top1_all": 0.529,
            "top1_unseen": None,
            "top1_first_19": 0.529,
            "rows_all": 10,
            "rows_first_19": 10,
            "validation_rows_from": "the validation split of data/boards",
        },
        folder / "run.json": {"identity": {"prepared data": "abc"}},
        prepared / "abc" / "manifest.json": {"inputs": [{"run": "run of the games", "games": 5000, "rows": 143_002}]},
        data / "manifest.json": {"run": games, "identity": made, "games": 6000},
        folder / "evaluation" / "metrics.json": player,
    }.items():
        file.write_text(json.dumps(content))
    return folder


def test_the_card_tells_the_games_and_the_grades_of_this_very_network(core, tmp_path):
    facts = run_facts.facts_of_run(run_folder(tmp_path))
    assert "5,000 games, 143,002 positions, each labelled by 3 searches of 10,000" in facts[run_facts.TEACHER]
    assert list(facts[run_facts.GRADES]["sets"]) == ["midgame", "heldout"]
    nothing = weaknesses.Tally(asked=0, found=0, missed=[])
    found = weaknesses.Weaknesses(wins=nothing, blocks=nothing, mirrored=nothing)
    text = publish.card.write(core, facts, [], found)
    assert "- 52.9% top-1 accuracy against the teacher's labels, on the validation split of data/boards" in text
    assert "first 19" not in text, "each packed board is a game of its own"
    assert text.count("50.0% (40.0% to 60.0%) of its moves are best, 55.0%") == 2
    assert f"python -m distill.evaluate {tmp_path}" in text
    assert "X is to move, chose column 7 of 7 and loses; column 3 or 4 draws\n\n    . . ." in text
    assert "unseen" not in text


def test_the_card_of_a_planned_run_tells_its_games_and_not_those_of_its_last_iteration(tmp_path):
    for file in ("config.json", "metrics.json", "plan.json"):
        shutil.copy(REFERENCE.parent / "long" / "hour" / file, tmp_path)
    facts = run_facts.facts_of_run(tmp_path)
    assert facts[run_facts.TEACHER].startswith("134,144 games of the teacher, each position labelled by a search")
    assert "125,248 games of the network's own search of 16 to 64 simulations" in facts[run_facts.TEACHER]
    assert "49,480 steps of 256 boards, by a plan for 60 minutes of 20 iterations" in facts[run_facts.TEACHER]
    assert facts["iterations"] == 20
    assert not {"games", "simulations", "steps", "optimal"} & set(facts)
    for done, own in (
        (1, "then 0 games of the network's own search; meanwhile 2,474 steps"),
        (2, "10,240 games of the"),
    ):
        (tmp_path / "metrics.json").write_text(json.dumps({"iteration": done}))
        assert own in run_facts.facts_of_run(tmp_path)[run_facts.TEACHER], "of a run that goes on, what it has done"


def test_facts_of_other_games_and_of_an_older_network_are_left_out(tmp_path):
    folder = run_folder(tmp_path, games="another run")
    os.utime(folder / "evaluation" / "metrics.json", (0, 0))
    facts = run_facts.facts_of_run(folder)
    assert run_facts.TEACHER not in facts
    assert run_facts.GRADES not in facts
    assert facts["arch"] == "cnn"
    assert run_facts.facts_of_run(tmp_path / "nothing") == {}


def test_grades_of_another_network_are_left_out_whatever_the_times_of_the_files(tmp_path):
    folder = run_folder(tmp_path)
    report = folder / "evaluation" / "metrics.json"
    content = json.loads(report.read_text())
    for told, known in ((file_hash(folder / "best.keras"), True), ("0" * 64, False)):
        report.write_text(json.dumps(content | {"networks": {str(folder): told}}))
        os.utime(report, (0, 0) if known else None)
        assert (run_facts.GRADES in run_facts.facts_of_run(folder)) == known


def test_damaged_files_around_a_network_are_no_facts(tmp_path):
    (tmp_path / "config.json").write_text("[1]")
    (tmp_path / "metrics.json").write_text("{")
    assert run_facts.facts_of_run(tmp_path) == {}


def test_weaknesses_are_counted_on_what_the_network_plays():
    """One that takes every win and stops every threat, found by the rules, has none; one that plays left has some."""

    def winner(boards):
        return {"move": np.array([tactical_column(board) for board in boards])}

    def lefty(boards):
        return {"move": (boards[:, 0] == 0).argmax(1)}

    perfect, weak = weaknesses.measure(winner, games=20), weaknesses.measure(lefty, games=20)
    assert perfect.wins.asked == perfect.wins.found == weak.wins.asked > 10
    assert perfect.blocks.asked == perfect.blocks.found == weak.blocks.asked > 10
    assert not perfect.wins.missed
    assert weak.wins.found < weak.wins.asked
    position, move = weak.wins.missed[0]
    assert not rules.is_won(rules.play(position, move))
    assert any(rules.is_won(rules.play(position, column)) for column in rules.legal_columns(position))
    assert weak.mirrored.found < weak.mirrored.asked


def tactical_column(board):
    position = rules.Position(*(int(bits) for bits in encoding.bitboards(board)))
    legal = rules.legal_columns(position)
    swapped = rules.Position(position.opponent, position.mask)
    for side in (position, swapped):
        for column in legal:
            if rules.is_won(rules.play(side, column)):
                return column
    return legal[0]


def test_a_network_that_holds_code_is_refused(tmp_path, capsys):
    planes = keras.Input((6, 7, 2))
    logits = keras.layers.Lambda(lambda x: x[:, 0, :, 0], output_shape=(7,))(planes)
    keras.Model(planes, {"logits": logits}).save(tmp_path / "code.keras")
    assert export.main([str(tmp_path / "code.keras")]) == 1
    error = capsys.readouterr().err
    assert "code.keras: not a readable Keras model" in error
    assert error.count("\n") == 1


def test_a_missing_extra_is_one_line_and_exit_1_before_anything_is_written(exported, capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else find(name))
    card = (exported / "saved_model" / "README.md").stat()
    assert export.main([str(exported), "--formats", "savedmodel,onnx"]) == 1
    error = capsys.readouterr().err
    assert error == (f"distill export: the format onnx needs onnx; to install it: {provenance.install_line('onnx')}\n")
    assert (exported / "saved_model" / "README.md").stat() == card


@pytest.fixture
def older(tmp_path, monkeypatch):
    """A folder with an older export; to write a SavedModel is left out."""
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / publish.SUMS).touch()
    monkeypatch.setattr(saved, "write", lambda _core, folder: folder.mkdir(parents=True))
    yield tmp_path
    assert (tmp_path / "saved_model" / publish.SUMS).exists(), "what was there stays"
    assert [p.name for p in tmp_path.iterdir()] == ["saved_model"]


def test_a_format_that_fails_leaves_the_old_files(core, older, monkeypatch):
    def fail(*_):
        raise UserError("ONNX: the written file differs")

    monkeypatch.setattr(comparison, "compare", lambda *_: 0.0)
    monkeypatch.setattr(formats, "write", fail)
    with pytest.raises(UserError, match="ONNX"):
        publish.publish(core, older, {}, ["onnx"])


def test_half_of_the_checked_boards_have_a_full_column():
    boards = comparison.check_boards()
    assert boards.shape == (256, 6, 7)
    assert (boards[:, 0] != 0).any(axis=1).sum() == 128
    assert len(np.unique(boards.reshape(256, -1), axis=0)) > 240


@pytest.mark.parametrize("output", ["logits", "policy", "value", "move"])
def test_a_saved_model_that_differs_is_refused_and_the_old_one_stays(core, older, monkeypatch, output):
    honest = saved.predict_with(core)(comparison.check_boards())
    altered = {**honest, output: honest[output].copy()}
    altered[output].flat[-1] += 1 if output == "move" else 2e-5 if output != "logits" else 200
    monkeypatch.setattr(comparison, "outputs_in_clean_process", lambda *_: altered)
    with pytest.raises(UserError, match=rf"differs from the network \(.*{output}"):
        publish.publish(core, older, {})


def test_a_saved_model_that_does_not_load_alone_is_refused(core, tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "_LOAD", "import distill\nanswer = lambda boards: {'move': boards}")
    with pytest.raises(UserError, match="does not work without the project"):
        publish.publish(core, tmp_path, {})
    assert not list(tmp_path.iterdir())


def test_a_network_that_ships_is_found_by_its_name_and_never_exported_into(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert export.main(["pillar"]) == 1
    error = capsys.readouterr().err
    assert error == "distill export: pillar ships with distill and stays as it is; --out says where its export goes\n"
    assert export.main(["reference/mk4", "--out", "here"]) == 1
    error = capsys.readouterr().err
    assert "no such path, and no network of that name; networks by name are " in error
    assert "reference/cnn" in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
    asked, written = [], {"savedmodel": formats.Found(difference=1e-6)}
    monkeypatch.setattr(publish, "publish", lambda *given: asked.append(given) or written)
    assert export.main(["pillar", "--out", "here"]) == 0
    [(core, folder, *_)] = asked
    assert str(folder) == "here"
    assert same(core.get_weights(), saved.load_core(REFERENCE / "pillar" / "best.keras").get_weights())
    assert "here/saved_model: savedmodel; largest difference from the network 1.0e-06" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "needs a model"),
        (["a", "b", "--out", "c"], "--out c must be left out where several models are given"),
        (["a", "--web", "c", "--out", "d"], "--out d must be left out beside --web"),
        (["a", "--formats", "onyx"], "--formats onyx must be of savedmodel, litert, onnx, litert-int8, onnx-int8"),
        (["a", "--formats", ""], "--formats  must be of savedmodel"),
    ],
)
def test_a_wrong_command_line_exits_with_2(capsys, arguments, complaint):
    assert export.main(arguments) == 2
    assert complaint in capsys.readouterr().err


def test_formats_are_named_with_commas():
    for text, others in (("savedmodel", ()), ("onnx,litert,onnx", ("litert", "onnx")), ("savedmodel,onnx", ("onnx",))):
        assert export.ExportConfig(models=("a",), formats=text).others == others

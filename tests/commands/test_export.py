"""Export. Properties:

- the SavedModel of every network that ships, and of one exported here, gives the network's outputs on 256 boards;
- where a format fails, what was there stays, and no hidden folder is left;
- examples hold the model's outputs, and the sums fit the files of every format;
- the card is a template over `export.json`, with grades only where they are those of this very network; its lines run;
- a `.keras` file that holds code is refused.
"""

import json
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import yaml
from helpers import REFERENCE, SHIPPED, change_record, state

from distill import export
from distill.common import UserError, file_hash, run_folder
from distill.exporters import card, conversion, publish
from distill.exporters.conversion import Converted
from distill.networks import finding, predict, saved


@pytest.fixture(params=[*SHIPPED, "exported"])
def any_export(request):
    """The folder of each network that ships, and of one that was exported here."""
    return request.getfixturevalue("exported") if request.param == "exported" else REFERENCE / request.param


def test_the_sums_and_the_examples_fit_the_files(any_export):
    folder = any_export / "saved_model"
    lines = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert lines == {name: file_hash(files[name]) for name in files.keys() - {"SHA256SUMS", "_run.json", ".lock"}}
    examples = json.loads((folder / "examples.json").read_text())
    model, boards = predict.load(folder, fast=False), np.array([example["board"] for example in examples], np.int8)
    outputs = model(boards)
    expected = {name: np.array([example[name] for example in examples], array.dtype) for name, array in outputs.items()}
    assert conversion.largest_difference(expected, outputs) <= conversion.TOLERANCE
    assert (boards[0].any(), boards[-1].all()) == (False, True)
    assert (examples[-1]["move"], sum(examples[-1]["policy"])) == (-1, 0)
    network = saved.predict_with(saved.load_core(any_export / "best.keras"))
    boards = conversion.check_boards()
    assert conversion.largest_difference(network(boards), model(boards)) <= conversion.TOLERANCE


def test_the_card_is_a_template_over_the_facts_of_this_network(any_export):
    folder, network = any_export / "saved_model", any_export / "best.keras"
    text, facts = (folder / "README.md").read_text(), finding.facts(folder)
    assert card.write(facts, folder) == text
    assert (facts["network"], facts["network_sha256"]) == (any_export.name, file_hash(network))
    front_matter = yaml.safe_load(text.split("---\n")[1])  # as the Hub reads it
    assert front_matter["library_name"] == ("onnx" if (folder / "model.onnx").exists() else "tensorflow")


def card_of(results, value_head=False):
    """The card of a network with these results, without files."""
    about = {"network": "cnn", "arch": "cnn", "parameters": 1, "value_head": value_head, "versions": {}, "files": {}}
    about |= {"commit": "unknown"}
    return card.write({**about, **results}, Path())


def test_the_lines_of_the_card_run_where_it_lies(exported, monkeypatch, capfd):
    monkeypatch.chdir(exported / "saved_model")
    programs = re.findall("```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    (move,) = predict.load(exported, fast=False)(np.zeros((1, 6, 7), np.int8))["move"]
    assert len(programs) == 3
    for program in programs:
        assert len(program.strip().splitlines()) == 6
        exec(program, {})
        assert capfd.readouterr().out == f"{move}\n"


@pytest.fixture
def trained(tmp_path):
    """A folder with the files that `train` and `evaluate` leave around a network."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "best.keras").touch()
    share = {"mean": 0.5, "low": 0.4, "high": 0.6, "units": 5000}
    sets = {name: {"optimal": share, "outcome": {**share, "mean": 0.55}} for name in ("midgame", "heldout", "trap-set")}
    grades = {"benchmark": {"half": "test"}, "players": {"uct:1": {}, str(tmp_path): {"sets": sets}}}
    network = {"network_sha256": file_hash(tmp_path / "best.keras"), "precision": "float32"}
    games = {"games": 5000, "rows": 143_002, "settings": {"simulations": 10_000, "votes": 3}}
    result = {"top1_all": 0.529, "top1_unseen": None, "top1_first_19": 0.529, "training_games": [games]}
    result |= {"validation_rows_from": "the validation split of data/boards"}
    for place, kind, content in (
        (tmp_path, "training run", result),
        (tmp_path / "evaluation", "evaluation", grades | {"networks": {str(tmp_path): network}}),
    ):
        with run_folder.opened(place, kind, {"seed": 1}, settings={"arch": "cnn"}, files=()) as run:
            run.begin()
            run.finish(content)
    return tmp_path


def test_the_card_has_the_games_and_the_grades_of_this_very_network(trained):
    results = card.results(trained)
    assert list(results["grades"]["sets"]) == ["midgame", "heldout"]
    text = card_of(results)
    assert ("`value`" in text, "`value`" in card_of(results, value_head=True)) == (False, True)
    assert '"rows": 143002,' in text
    assert "- 52.9% top-1 accuracy against the teacher's labels, on the validation split of data/boards" in text
    assert text.count("50.0% (40.0% to 60.0%) of its moves are best, 55.0%") == 2
    assert f"python -m distill.evaluate {trained}" in text
    assert "unseen" not in text
    (trained / "best.keras").write_bytes(b"trained again")
    results = card.results(trained)
    assert "grades" not in results
    assert results["training"]["arch"] == "cnn"
    assert card.results(trained / "nothing") == card.results(None)
    change_record(trained, lambda record: record.update(result=None))
    assert card.results(trained)["training"] == {"arch": "cnn", "finished": "no, this is the best network so far"}


@pytest.mark.parametrize("name", ["pillar@puct:5", "starter"])
def test_the_card_has_no_grades_of_a_search_or_a_level_with_this_network(trained, name):
    def rename(record):
        for part in ("players", "networks"):
            record["result"][part] = {name: record["result"][part][str(trained)]}

    change_record(trained / "evaluation", rename)
    assert "grades" not in card.results(trained)


def test_only_a_network_that_ships_has_the_licence_and_story_of_one(tmp_path):
    for file in ("best.keras", "_run.json"):
        shutil.copy(REFERENCE / "pillar" / file, tmp_path)
    assert card.results(tmp_path)["ships"]
    (tmp_path / "best.keras").write_bytes(b"of a run with --out models/reference/pillar elsewhere")
    results = card.results(tmp_path)
    assert not results["ships"]
    assert "commands" not in results["training"]


def test_the_facts_of_a_self_play_run_are_those_of_the_whole_run(tmp_path):
    shutil.copy(REFERENCE.parent / "long" / "hour" / "_run.json", tmp_path)
    facts = card.results(tmp_path)["training"]
    assert (facts["iterations"], facts["schedule.teacher_share"]) == (20, 0.04)
    assert not {"steps", "optimal"} & set(facts)


def test_a_network_that_holds_code_is_refused(tmp_path, complaint):
    planes = keras.Input((6, 7, 2))
    logits = keras.layers.Lambda(lambda x: x[:, 0, :, 0], output_shape=(7,))(planes)
    keras.Model(planes, {"logits": logits}).save(tmp_path / "code.keras")
    assert "code.keras: not a readable Keras model" in complaint(export, tmp_path / "code.keras")


def test_a_format_that_fails_leaves_the_old_files(tmp_path, monkeypatch):
    with run_folder.replaced(tmp_path / "saved_model", publish.KIND, ["export.json"]) as new:
        (new / "export.json").touch()
    before = state(tmp_path)

    def fail(name, *_, **__):
        if name == "onnx":
            raise UserError("ONNX: the written file differs")
        return Converted(difference=0.0)

    monkeypatch.setattr(conversion, "convert", fail)
    with pytest.raises(UserError, match="ONNX"):
        publish.publish(REFERENCE / "cnn" / "best.keras", tmp_path, card.results(None), ["onnx"])
    assert state(tmp_path) == before


def test_the_formats_of_an_earlier_export_are_written_again(tmp_path, monkeypatch):
    shutil.copy(REFERENCE / "cnn" / "best.keras", tmp_path)
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "export.json").write_text('{"files": {"saved_model.pb": {}, "model.onnx": {}}}')
    written = []

    def watched(network, folder, results, others):
        written.extend(others)
        return {"savedmodel": Converted(difference=0.0)}

    monkeypatch.setattr(publish, "publish", watched)
    assert export.main([str(tmp_path), "--formats", "litert"]) == 0
    assert {*written} == {"litert", "onnx"}


def test_nothing_is_exported_into_a_network_that_ships(tmp_path, monkeypatch, complaint):
    monkeypatch.chdir(tmp_path)
    assert "pillar ships with distill and is not overwritten; --out says where" in complaint(export, "pillar")
    assert "no such path, and no network of that name; " in complaint(export, "reference/mk4", "--out", "here")
    assert not list(tmp_path.iterdir())


def test_a_network_of_the_page_is_not_called_like_another_player(tmp_path, complaint):
    (tmp_path / "random").mkdir()
    (tmp_path / "random" / "best.keras").symlink_to(REFERENCE / "pillar" / "best.keras")
    line = complaint(export, REFERENCE / "pillar", tmp_path / "random", "--web", tmp_path / "site")
    assert "the page has another player called random" in line
    assert not (tmp_path / "site").exists()

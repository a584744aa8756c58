"""How a user names a network: in `models/` of the working directory, then among the networks that ship; a word with a
slash is a path where there is one, and a `Path` always.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import REFERENCE

import distill
from distill import evaluate, export, train
from distill.common import UserError, cli, file_hash, provenance, run_folder
from distill.datasets.validation import VALIDATION_SET
from distill.networks import finding
from distill.players import names, player


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with `models/`, besides the networks that ship."""
    for file in ("mine/best.keras", "exported/saved_model/1/saved_model.pb", "evaluation/report.md"):
        (tmp_path / "models" / file).parent.mkdir(parents=True)
        (tmp_path / "models" / file).touch()
    monkeypatch.chdir(tmp_path)
    finding.say_once.cache_clear()
    return tmp_path


def test_a_name_is_looked_for_here_and_then_among_what_ships(here):
    assert finding.find("mine") == Path("models/mine")
    assert finding.find("exported/") == Path("models/exported")
    for name in ("pillar", "reference/pillar", "pillar/", "reference/pillar/"):
        assert finding.find(name) == REFERENCE / "pillar"
    (here / "models" / "pillar").mkdir()
    assert finding.find("pillar") == REFERENCE / "pillar"  # nothing is in the one here
    (here / "models" / "pillar" / "best.keras").touch()
    assert finding.find("pillar") == Path("models/pillar")
    assert finding.find("reference/pillar") == REFERENCE / "pillar"


@pytest.mark.parametrize("kind", ["run", "games"])
def test_a_name_goes_before_what_lies_in_the_working_directory(kind, here, capsys):
    players = ("random", "uct:100", "club", "solver")
    for name in ("pillar", "mine", "reference/pillar", *players):
        (here / name).mkdir(parents=True)
        if kind == "run":
            (here / name / finding.BEST).write_text("mine")
        else:
            shutil.copy(provenance.shipped(VALIDATION_SET) / run_folder.RECORD, here / name)
    assert finding.network_file("pillar") == REFERENCE / "pillar" / "best.keras"
    assert "pillar means " in capsys.readouterr().err
    assert finding.find("mine") == Path("models/mine")
    assert finding.find("reference/pillar") == Path("reference/pillar")  # it has a slash
    assert evaluate._is_data("reference/pillar") == evaluate._is_data("./random") == (kind == "games")
    assert not any(evaluate._is_data(word) for word in ("pillar", "mine", *players))
    assert distill.load_pretrained("pillar")(np.zeros((6, 7), np.int8))["move"] == 3
    assert names.make("club", fast=True).name == "club"
    assert isinstance(names.make("random"), player.RandomPlayer)
    for config in (
        cli.parse(train.TrainConfig, ["--init", "./pillar"]),
        train.TrainConfig(init=Path("pillar")),
    ):  # as it was written
        assert finding.find(config.init) == Path("pillar")
    written = cli.parse(export.ExportConfig, ["./pillar", "pillar", "--web", "site"]).models
    assert [finding.find(word) for word in written] == [Path("pillar"), REFERENCE / "pillar"]
    if kind == "run":
        assert finding.network_file("./pillar") == finding.network_file(Path("./pillar")) == Path("pillar/best.keras")
        with pytest.raises(UserError, match=r"^pillar/best\.keras: not a readable Keras model"):
            names.make("./pillar@puct:2")  # not the network that ships, looked for once more
    else:
        with pytest.raises(UserError, match=r"^pillar: no "):
            finding.network_file("./pillar")


def test_a_path_is_a_path_where_no_network_has_the_name(here):
    for name in ("runs", "models/other", "best.keras"):
        (here / name).mkdir()
        assert finding.find(name) == Path(name)
    assert finding.find(str(here / "models" / "mine")) == here / "models" / "mine"
    assert (finding.find(Path("models/mine")), finding.find(Path("mine"))) == (Path("models/mine"), None)
    with pytest.raises(UserError, match=r"^pillar: no such path"):
        distill.load_pretrained(Path("./pillar"))


@pytest.mark.parametrize("word", ["nobody", "evaluation", "", "../pillar", "a\0b"])
def test_a_name_that_nobody_has_is_refused_with_those_there_are(word, here):
    assert finding.find(word) is None
    with pytest.raises(UserError) as caught:
        finding.network_file(word)
    refused, _, names = str(caught.value).partition("; networks by name are ")
    assert refused.endswith("no such path, and no network of that name")
    # a checkout may hold more, which its owner trained
    assert {"exported", "mine", "reference/cnn", "reference/pillar", "reference/transformer"} <= {*names.split(", ")}


def test_an_export_that_was_killed_while_it_was_replaced_is_not_used(tmp_path):
    """Its facts were deleted, perhaps before an old file; those of a killed one are moved in after all were deleted."""
    best, file = tmp_path / finding.BEST, tmp_path / finding.ONNX
    assert finding.is_current(file, best)
    best.write_bytes(b"network")
    assert not finding.is_current(file, best)
    (tmp_path / finding.FACTS).write_text(json.dumps({"network_sha256": file_hash(best)}))
    file.write_bytes(b"exported")
    assert not finding.is_current(file, best)
    (tmp_path / finding.SUMS).write_text(f"{file_hash(file)}  {finding.ONNX}\n")
    assert finding.is_current(file, best)
    file.write_bytes(b"of another export")
    assert not finding.is_current(file, best)

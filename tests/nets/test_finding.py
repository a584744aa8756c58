"""How a user names a network. Properties:

- a word that is a path is that path, whatever else has the name;
- else a name is looked for in `models/` of the working directory, then among the networks that ship, which need not say
  `reference/`; a slash at its end, as shells complete it, changes nothing;
- a folder counts where it holds a network, exported or not;
- a name cannot lead out of these folders, and one that nobody has is refused with the names there are.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import REFERENCE

from distill.base import UserError
from distill.learn import run_folder
from distill.loop import files
from distill.nets import finding


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `models/`, besides the networks that ship."""
    for file in ("mine/best.keras", "exported/saved_model/1/saved_model.pb", "evaluation/report.md"):
        (tmp_path / "models" / file).parent.mkdir(parents=True)
        (tmp_path / "models" / file).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_is_looked_for_here_and_then_among_what_ships(here: Path) -> None:
    assert finding.find("mine") == Path("models/mine")
    assert finding.find("exported/") == Path("models/exported")
    for name in ("pillar", "reference/pillar", "pillar/", "reference/pillar/"):
        assert finding.find(name) == REFERENCE / "pillar"
    (here / "models" / "pillar").mkdir()
    assert finding.find("pillar") == REFERENCE / "pillar"  # nothing is in the one here
    (here / "models" / "pillar" / "best.keras").touch()
    assert finding.find("pillar") == Path("models/pillar")
    assert finding.find("reference/pillar") == REFERENCE / "pillar"


def test_a_network_is_found_by_its_former_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("column", "reference/column"):
        assert finding.find(name) == finding.find(name) == REFERENCE / "pillar"
    said = capsys.readouterr().err
    assert said.count("column is called pillar now") == 2, "once for each word"
    (here / "models" / "column").mkdir()
    (here / "models" / "column" / "best.keras").touch()
    assert finding.find("column") == Path("models/column")
    assert finding.find(REFERENCE / "column") == REFERENCE / "pillar"


def test_a_path_goes_before_a_name(here: Path) -> None:
    (here / "pillar").mkdir()
    assert finding.find("pillar") == Path("pillar")
    with pytest.raises(UserError, match=r"^pillar: no model in this folder$"):
        finding.network_file("pillar")
    assert finding.find(str(here / "models" / "mine")) == here / "models" / "mine"


@pytest.mark.parametrize(
    "word", ["nobody", "evaluation", "", ".hidden", "reference/mine", "../pillar", "x" * 5000, "a\0b"]
)
def test_a_name_that_nobody_has_is_refused_with_those_there_are(word: str, here: Path) -> None:
    assert finding.find(word) is None
    with pytest.raises(UserError) as caught:
        finding.network_file(word)
    refused, _, names = str(caught.value).partition("; networks by name are ")
    assert refused.endswith("no such path, and no network of that name")
    # a checkout may hold more, which its owner trained
    assert {"exported", "mine", "reference/cnn", "reference/pillar", "reference/transformer"} <= {*names.split(", ")}
    assert len(refused) < 200


@pytest.mark.parametrize("content", ['{"loss": ', "[]", "{}", "\x00"])
def test_metrics_that_cannot_be_read_are_named(tmp_path: Path, content: str) -> None:
    assert run_folder.finished(tmp_path, str) is None
    (tmp_path / "metrics.json").write_text('{"loss": 1.5}')
    assert run_folder.finished(tmp_path, lambda metrics: f"loss {metrics['loss']}") == (
        "loss 1.5 (finished before, nothing to do; --restart begins anew)"
    )
    (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(UserError, match=r"metrics\.json: cannot be read; --restart begins anew"):
        run_folder.finished(tmp_path, lambda metrics: f"loss {metrics['loss']}")
    folder = files.iteration_folder(tmp_path, 1)
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text('{"iteration": ')
    with pytest.raises(UserError, match=r"0001.metrics\.json: cannot be read; delete it"):
        files.finished_iterations(tmp_path)

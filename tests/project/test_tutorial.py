"""The tutorial. Properties:

- it is a valid notebook, small enough for a browser; its commands, flags and links exist;
- it was run from top to bottom without an error, and the output of each cell is stored.

`pytest -m slow tests/project/test_tutorial.py` runs it twice in a copy of the checkout, for minutes: it writes only
its two folders and shows the stored output.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.project.test_docs import dead_links

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"
SILENT = ("import os\n",)
"""Starts of cells without output."""


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any) -> set[tuple[str, ...]]:
    """The kinds of a cell's outputs, without progress and warnings, which depend on the machine."""
    outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return {(output.output_type, *sorted(output.get("data", {}))) for output in outputs}


def said_before_games(notebook: Any) -> list[str]:
    """What the cells before the first command printed: rules and searches, equal in every run."""
    cells = itertools.takewhile(lambda cell: not cell.source.startswith("%%bash"), code(notebook))
    return [output.text for cell in cells for output in cell.outputs if output.get("name") == "stdout"]


def commands(notebook: Any) -> list[list[str]]:
    """The words after `python` of every command in a shell cell."""
    lines = [line for cell in code(notebook) if cell.source.startswith("%%bash\n")
             for line in cell.source.replace("\\\n", "").splitlines()[1:]]  # fmt: skip
    assert all("python " in line for line in lines)
    return [shlex.split(line.partition("python ")[2]) for line in lines]


@pytest.fixture(scope="module")
def kept() -> Any:
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_every_cell_ran_in_order_and_its_output_is_stored(kept):
    cells = code(kept)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert bool(shown(cell)) != cell.source.startswith(SILENT), cell.source
        assert not any(output.output_type == "error" for output in cell.outputs), cell.source
        assert "Traceback" not in str(cell.outputs), cell.source
    assert TUTORIAL.stat().st_size < 600_000


def test_its_commands_and_their_flags_exist(kept, tmp_path, monkeypatch, capsys):
    (tmp_path / "models" / "tutorial" / "pillar").mkdir(parents=True)  # as made by training
    monkeypatch.chdir(tmp_path)
    known = []
    for words in commands(kept):
        module = importlib.import_module(words[1])
        code = dataclasses.replace(module.main, run=lambda config: "not run")(words[2:])
        assert code == 0, (words, capsys.readouterr())
        known.append(words[1].removeprefix("distill."))
    assert known == ["generate", "prepare", "train", "evaluate", "play", "export"]


def test_its_links_lead_somewhere(kept):
    text = "\n".join(cell.source for cell in kept.cells if cell.cell_type == "markdown")
    assert "](" in text
    assert dead_links(text, TUTORIAL.relative_to(ROOT)) == []


@pytest.mark.slow
def test_it_runs_from_top_to_bottom_and_again(kept, tmp_path, monkeypatch):
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    before = {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the notebook shows pictures
    for _ in range(2):
        notebook = nbformat.read(tmp_path / "docs" / "tutorial.ipynb", as_version=4)
        NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(tmp_path / "docs")}}).execute()
        assert [shown(cell) for cell in code(notebook)] == [shown(cell) for cell in code(kept)]
        assert said_before_games(notebook) == said_before_games(kept)
    made = {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts} - before
    ours = {tmp_path / "data" / "tutorial", tmp_path / "models" / "tutorial"}
    assert {path for path in made if not ours & {path, *path.parents}} == set()

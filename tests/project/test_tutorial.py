"""The tutorial, and the cells of a real kernel, as in Colab. Slow: the tutorial runs from top to bottom, twice."""

import dataclasses
import importlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import distill
from tests.project.test_docs import dead_links

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


CELLS = [
    "import asyncio, os, sys\nassert asyncio.get_running_loop().is_running()\nprint(os.environ['MPLBACKEND'])",
    "!{sys.executable} -m distill.train --data nowhere --out other",
    "import distill\nprint(distill.generate_games('games', games=4, simulations=50, shard_games=2, workers=2))",
    "distill.train_network('mk4', data='games', prepared='tables', out='net', epochs=1, batch_size=32, "
    "validation_fraction=0.5, export=False)",
    "print(distill.evaluate_players(['net', 'random'], sets=['midgame'], boards=4)['net']['midgame']['optimal'].mean)",
    "try: distill.train_network('cnn', data=['nowhere'], out='other')\n"
    "except distill.UserError as error: print('UserError:', error)",
]


def test_commands_and_the_api_run_in_cells_and_mistakes_are_one_line(tmp_path, monkeypatch):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel's own
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert "inline" in said[0]
    assert "Traceback" not in said[1]
    assert sum("nowhere" in line for line in said[1].splitlines()) == 1
    assert "top-1 accuracy against the teacher" in said[3]
    assert 0 <= float(said[4].split()[-1]) <= 1
    assert said[5].splitlines()[-1].startswith("UserError: nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "net", "tables"]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any) -> set[tuple[str, ...]]:
    """The kinds of a cell's outputs, without progress and warnings, which depend on the machine."""
    outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return {(output.output_type, *sorted(output.get("data", {}))) for output in outputs}


def printed_before_games(notebook: Any) -> list[str]:
    """What the cells before the first games printed: rules and searches, equal in every run."""
    cells = code(notebook)
    first = next(i for i, cell in enumerate(cells) if "generate_games" in cell.source)
    return [output.text for cell in cells[:first] for output in cell.outputs if output.get("name") == "stdout"]


@pytest.fixture(scope="module")
def stored() -> Any:
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_every_cell_ran_in_order_and_its_links_commands_and_names_exist(stored, tmp_path, monkeypatch, capsys):
    cells = code(stored)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [cell for cell in cells if not shown(cell)] == cells[:1]
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    assert TUTORIAL.stat().st_size < 600_000
    text = "\n".join(cell.source for cell in stored.cells if cell.cell_type == "markdown")
    assert "](" in text
    assert dead_links(text, TUTORIAL.relative_to(ROOT)) == []
    (tmp_path / "models" / "tutorial" / "pillar").mkdir(parents=True)  # as made by training
    monkeypatch.chdir(tmp_path)
    source = "\n".join(cell.source for cell in cells)
    commands = re.findall(r"^python -m (distill\S+) (.*)", source, re.MULTILINE)
    assert len(commands) == 2
    for module, flags in commands:
        main = dataclasses.replace(importlib.import_module(module).main, run=lambda config: "not run")
        assert main(shlex.split(flags)) == 0, capsys.readouterr()
    used = set(re.findall(r"\bdistill\.([a-z]\w*)\(", source))
    assert {"generate_games", "train_network", "evaluate_players"} <= used <= set(distill.PUBLIC)


@pytest.mark.slow
def test_it_runs_from_top_to_bottom_and_again(stored, tmp_path, monkeypatch):
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
        assert [shown(cell) for cell in code(notebook)] == [shown(cell) for cell in code(stored)]
        assert printed_before_games(notebook) == printed_before_games(stored)
    written = {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts} - before
    ours = {tmp_path / "data" / "tutorial", tmp_path / "models" / "tutorial"}
    assert {path for path in written if not ours & {path, *path.parents}} == set()

"""Commands and the Python API in the cells of a real kernel, as in Colab. Properties:

- `!python -m distill.…` and the API generate, train and evaluate in a working directory outside the checkout, with the
  kernel's MPLBACKEND, a running event loop, and no terminal;
- a user's mistake is one line there: of the command, and as `UserError` of the API.
"""

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]

CELLS = [
    "import asyncio, os, sys\nassert asyncio.get_running_loop().is_running()\nassert not sys.stderr.isatty()",
    "print(os.environ['MPLBACKEND'])",
    "!{sys.executable} -m distill.generate --preset smoke --out games",
    "!{sys.executable} -m distill.train --preset smoke --arch mk4 --data games --prepared tables --out net --no-export",
    "!{sys.executable} -m distill.evaluate net random --sets midgame --boards 4 --workers 1 --out graded",
    "!{sys.executable} -m distill.train --data nowhere --out other",
    "import distill\nprint(distill.generate_games('mine', games=4, simulations=50, shard_games=2, workers=2))",
    "distill.train_network('mk4', data=['games'], prepared='tables', out='own', epochs=1, batch_size=32, "
    "validation_fraction=0.5, export=False)",
    "print(distill.evaluate_players(['net', 'random'], sets=['midgame'], boards=4)['net']['midgame']['optimal'].mean)",
    "try: distill.train_network('cnn', data=['nowhere'], out='other')\n"
    "except distill.UserError as error: print('UserError:', error)",
]


def printed(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.fixture(scope="module")
def cells(tmp_path_factory) -> list[str]:
    """What each cell printed."""
    folder = tmp_path_factory.mktemp("content")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("MPLBACKEND", raising=False)  # the kernel's own
        NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(folder)}}).execute()
    assert sorted(os.listdir(folder)) == ["games", "graded", "mine", "net", "own", "tables"]
    return [printed(cell) for cell in notebook.cells]


def test_commands_run_in_cells(cells):
    assert "inline" in cells[1]
    assert "12 games, " in cells[2]
    assert "top-1 accuracy against the teacher" in cells[3]
    assert "is best on midgame" in cells[4]
    assert all("Traceback" not in text for text in cells)


def test_the_api_runs_in_cells(cells):
    assert "top-1 accuracy against the teacher" in cells[7]
    assert 0 <= float(cells[8].split()[-1]) <= 1


def test_mistakes_are_one_line_in_cells(cells):
    assert sum("nowhere" in line for line in cells[5].splitlines()) == 1
    assert cells[9].splitlines()[-1].startswith("UserError: nowhere")

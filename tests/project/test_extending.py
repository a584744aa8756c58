"""The examples of docs/extending.md, run in their order in one empty folder, as a reader would.

* A block of Python that begins with `# my_name.py` is that file; it has at most 20 lines of code.
* Every other block of Python runs, and every line of a shell block.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/extending.md"
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
MOST_LINES = 20


def file_name(code: str) -> str | None:
    found = re.match(r"# (\w+\.py)", code)
    return found[1] if found else None


def run(command: list[str], folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("code", [code for kind, code in BLOCKS if kind == "python"], ids=file_name)
def test_an_example_is_short(code):
    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES + (file_name(code) is not None)


def test_the_examples_run(tmp_path):
    for kind, code in BLOCKS:
        if kind == "sh":
            run(["bash", "-ec", code], tmp_path)
        elif name := file_name(code):
            (tmp_path / name).write_text(code, encoding="utf-8")
        else:
            run([sys.executable, "-c", code], tmp_path)

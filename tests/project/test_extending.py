"""The examples of docs/extending.md and docs/ecosystem.md, run in their order in one empty folder, as a reader would.

* A block of Python that begins with `# my_name.py` is that file; it has at most 20 lines of code.
* Every other block of Python runs, and every line of a shell block: those of docs/extending.md in one process.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```(python|sh)\n(.*?)```", text, re.DOTALL)


BLOCKS = blocks((DOCS / "extending.md").read_text(encoding="utf-8"))
CLIENTS = blocks((DOCS / "ecosystem.md").read_text(encoding="utf-8").partition("## Environments and bots")[2])
MOST_LINES = 20
RUN = """
import runpy, sys
from distill.__main__ import main
if __name__ == "__main__":
    sys.path.insert(0, "")
"""


def file_name(code: str) -> str | None:
    found = re.match(r"# (\w+\.py)", code)
    return found[1] if found else None


def step(words: list[str]) -> str:
    """A command line of Python, as code for a process that has started Keras."""
    _, *words = words
    if words[0] == "-m" and words[1].startswith("distill."):
        return f"assert main({[words[1].removeprefix('distill.'), *words[2:]]}) == 0\n"
    if words[0] == "-m":
        return f"import subprocess; subprocess.run([sys.executable, *{words}], check=True)\n"
    script, *flags = words
    return f"""
sys.argv = {[script, *flags]}
try: runpy.run_path({script!r}, run_name="__main__")
except SystemExit as end: assert not end.code
"""


PYTHON = [code for kind, code in BLOCKS + CLIENTS if kind == "python"]


@pytest.mark.parametrize("code", PYTHON, ids=file_name)
def test_an_example_is_short(code):
    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES + (file_name(code) is not None)


def test_the_examples_with_other_libraries_run(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for kind, code in CLIENTS:
        if name := file_name(code):
            (tmp_path / name).write_text(code, encoding="utf-8")
            continue
        command = ["bash", "-ec", code] if kind == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_the_examples_run(tmp_path):
    steps = []
    for kind, code in BLOCKS:
        if kind == "sh":
            steps += [step(shlex.split(line, comments=True)) for line in code.replace("\\\n", "").splitlines()]
        elif name := file_name(code):
            (tmp_path / name).write_text(code, encoding="utf-8")
        else:
            steps.append(code)
    body = "\n".join(f"    exec({code!r}, globals() | {{'__name__': 'step'}})" for code in steps)
    (tmp_path / "run.py").write_text(RUN + body, encoding="utf-8")
    done = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert len(steps) > 12

"""The section "Networks in other programs" of docs/ecosystem.md, run in its order in one folder, as a reader would.

* Every block without a file's name runs.
* A block that begins with `# my_match.py` runs beside Kaggle's package (slow, needs the index). One that begins with
  `# my_torch.py` runs where onnx2torch is installed.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/ecosystem.md").read_text(encoding="utf-8").split("## Networks in other programs\n")[1]
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", SECTION.split("\n## ")[0], re.DOTALL)


def run(code, folder, kind="python", more=""):
    command = ["bash", "-ec", code] if kind == "sh" else [sys.executable, "-c", code]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}{os.pathsep}{more}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def block(name):
    (code,) = [code for _, code in BLOCKS if code.startswith(f"# {name}")]
    return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the blocks without a name have run."""
    folder = tmp_path_factory.mktemp("ecosystem")
    for kind, code in BLOCKS:
        if not code.startswith("# my_"):
            run(code, folder, kind)
    return folder


def test_the_blocks_run(folder):
    assert (folder / "my_export/saved_model/submission_tactics.py").is_file()
    assert (folder / "my_copy.keras").is_file()


@pytest.mark.slow
def test_the_match_runs_in_kaggles_package(folder, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, "kaggle-environments==1.33.2"], check=True)
    assert run(block("my_match.py"), folder, more=str(tmp_path)).splitlines()[-1] == "1"


@pytest.mark.skipif(not importlib.util.find_spec("onnx2torch"), reason="onnx2torch is not installed")
def test_the_module_runs_in_pytorch():
    assert run(block("my_torch.py"), ROOT).startswith("3 ")

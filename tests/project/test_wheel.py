"""The wheel, used without a checkout: it holds all that ships and nothing else, and works where it is installed.

The environment is a fresh one that also sees the packages of this one, but not the checkout. `pytest -m slow
tests/project/test_wheel.py` installs everything from the index.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import distill
from distill.common import provenance

ROOT = Path(__file__).parents[2]
SHIPS = ("LICENSE", "data/benchmark", "data/reference/validation", "docs/benchmark.csv", "models/reference")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (file,) = folder.iterdir()
    return file


def pip(*words: str | Path, python: str | Path = sys.executable) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def linked(python: Path, wheel: Path) -> None:
    """Install the wheel alone, and let the environment see the packages of this one."""
    pip("--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = (python.parents[1] / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")


def from_the_index(python: Path, wheel: Path) -> None:
    """Install the wheel with all that it needs."""
    pip("--python", python, "install", "--quiet", "--constraint", ROOT / "requirements.lock", f"{wheel}[serve]")


class Installed:
    """The command `distill` of an installed wheel, in a folder without the checkout."""

    def __init__(self, folder: Path) -> None:
        self.python, self.here = folder / "env" / "bin" / "python", folder / "elsewhere"
        self.environment = {"HOME": str(folder / "home"), "PATH": os.defpath, "LANG": "C.UTF-8"}
        for place in (self.here, folder / "home"):
            place.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(list(map(str, words)), cwd=self.here, env=self.environment, text=True, **pipes)

    def output(self, code: str, *words: str, typed: str = "") -> str:
        """What Python code prints there."""
        process = self.start(self.python, "-c", code, *words)
        said, errors = process.communicate(typed)
        assert process.returncode == 0, said + errors
        return said.strip()

    def distill(self, *words: str) -> str:
        """What a command prints."""
        process = self.start(self.python.with_name("distill"), *words)
        said = "".join(process.communicate())
        assert process.returncode == 0, said
        return said.strip()


@pytest.fixture(scope="module", params=[linked, pytest.param(from_the_index, marks=pytest.mark.slow)])
def installed(request, wheel, tmp_path_factory) -> Installed:
    place = Installed(tmp_path_factory.mktemp("installed"))
    request.param(place.python, wheel)
    return place


def test_it_holds_the_package_and_all_that_ships_and_nothing_else(wheel):
    command = ["git", "-C", ROOT, "ls-files", "distill", *SHIPS]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {
        name if name.startswith("distill/") else f"distill/shipped/{name}": (ROOT / name).read_bytes()
        for name in listed.stdout.splitlines()
        if not re.fullmatch(r"models/reference/[^/]+/(evaluation/.*|[^/]+\.png)", name)
    }
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert files.pop("distill/COMMIT").decode().strip() == provenance.commit()
    assert sorted(files) == sorted(expected)
    assert [name for name in files if files[name] != expected[name]] == []


def test_the_checkout_is_not_seen_and_version_licence_and_extras_are_its(installed):
    code = "import json, sys, distill; print(json.dumps([distill.__file__, sys.path]))"
    file, path = json.loads(installed.output(code))
    assert Path(file).is_relative_to(installed.python.parents[1])
    assert not [entry for entry in path if (installed.here / entry / "pyproject.toml").exists()]
    assert installed.distill("--version") == f"distill {distill.__version__}, commit {provenance.commit()}"
    licence = installed.output("from distill.common import provenance; print(provenance.shipped('LICENSE'))")
    assert Path(licence).read_bytes() == (ROOT / "LICENSE").read_bytes()
    line = installed.output("from distill.common.provenance import install_line; print(install_line('serve'))")
    assert line == 'python -m pip install "connect4-distill[serve]"'


IN_ONE_PROCESS = """
import sys
from distill.__main__ import main
for line in sys.argv[1:]:
    assert main(line.split()) == 0, line
"""


def test_shipped_networks_are_found_by_name_and_games_generated_and_trained_on(installed):
    lines = (
        "generate --games 12 --simulations 50 --workers 1 --out few",
        "play pillar --first machine",
        "evaluate reference/pillar --boards 2",
        "train --preset smoke --arch pillar --data few --out models/few --no-export",
    )
    said = installed.output(IN_ONE_PROCESS, *lines, typed="4\nq\n")  # TensorFlow is loaded once
    assert "pillar played column 4" in said
    assert "reference/pillar is best on midgame" in said
    assert re.search(r"models/few: top-1 accuracy against the teacher: \S+% on \d+ rows of the validation split", said)
    assert (installed.here / "models" / "evaluation" / "report.md").is_file()
    assert (installed.here / "models" / "few" / "best.keras").is_file()

"""The wheel, as somebody uses it who has no checkout. Properties:

- it holds the package and all that ships, as git knows it, and the commit, and nothing else: no tests, no games of a
  checkout alone;
- installed, with the checkout on no path and from another folder, `play`, `serve` and `evaluate` take a network that
  ships by its name, and games are generated and trained on;
- there the lines that install extras are those of a checkout, and no message points to what a wheel lacks.

The environment is a fresh one that sees the packages of this one, as a second folder in which nothing is looked for
that says how to find a checkout. `pytest -m slow tests/project/test_wheel.py` installs everything from the index.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import SHIPPED
from pages import listening

from distill.common import provenance

ROOT = Path(__file__).parents[2]
SHIPS = ("data/benchmark", "data/reference/validation", "models/reference")
PATIENCE = 120


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    """Install the wheel and all that it needs."""
    pip("--python", python, "install", "--quiet", "--constraint", ROOT / "requirements.lock", f"{wheel}[serve]")


class Installed:
    """The command `distill` of an installed wheel, in a folder with nothing of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "env" / "bin" / "python"
        self.here = folder / "elsewhere"
        self.home = folder / "home"
        self.environment = {"HOME": str(self.home), "PATH": os.defpath, "LANG": "C.UTF-8"}

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            list(map(str, words)),
            cwd=self.here,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def asked(self, code: str, *words: str, typed: str = "") -> str:
        """What Python code prints there."""
        process = self.start(self.python, "-c", code, *words)
        said, errors = process.communicate(typed)
        assert process.returncode == 0, said + errors
        return said.strip()

    def distill(self, *words: str, code: int = 0) -> str:
        """What a command says."""
        process = self.start(self.python.with_name("distill"), *words)
        said = "".join(process.communicate())
        assert process.returncode == code, said
        return said


@pytest.fixture(scope="module", params=[linked, pytest.param(from_the_index, marks=pytest.mark.slow)])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = Installed(tmp_path_factory.mktemp("installed"))
    for folder in (place.here, place.home):
        folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place.python.parents[1]], check=True)
    install: Callable[[Path, Path], None] = request.param
    install(place.python, wheel)
    return place


def test_it_holds_the_package_and_all_that_ships_and_nothing_else(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "distill", *SHIPS], capture_output=True, text=True, check=True
    )
    expected = {
        name if name.startswith("distill/") else f"distill/shipped/{name}": (ROOT / name).read_bytes()
        for name in listed.stdout.splitlines()
        if not re.fullmatch(r"models/reference/[^/]+/(evaluation/.*|[^/]+\.png)", name)
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert found.pop("distill/COMMIT").decode().strip() == provenance.commit()
    assert sorted(found) == sorted(expected)
    assert [name for name in found if found[name] != expected[name]] == []
    assert any(name.endswith("/assets.extra/tf_serving_warmup_requests") for name in found)
    assert any(name.endswith("/saved_model/SHA256SUMS") for name in found)
    assert wheel.name.startswith("connect4_distill-")


def test_nothing_of_the_checkout_is_seen(installed: Installed) -> None:
    code = "import json, sys, distill; print(json.dumps([distill.__file__, sys.path]))"
    file, path = json.loads(installed.asked(code))
    assert Path(file).is_relative_to(installed.python.parents[1])
    assert not [entry for entry in path if (installed.here / entry / "pyproject.toml").exists()]


def test_extras_are_installed_by_the_line_of_a_checkout(installed: Installed) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [extra for extra in extras if extra != "dev"]  # which no message names, and which has extras of its own
    code = f"from distill.common.provenance import install_line; print(*map(install_line, {named}), sep='\\n')"
    assert installed.asked(code).splitlines() == [provenance.install_line(extra) for extra in named]


def test_it_tells_the_commit_it_was_built_from(installed: Installed) -> None:
    assert installed.distill("--version").strip() == f"distill {provenance.version()}"


def test_the_licence_is_found(installed: Installed) -> None:
    found = installed.asked("from distill.common import provenance; print(provenance.licence())")
    assert Path(found).read_bytes() == (ROOT / "LICENSE").read_bytes()


IN_ONE_PROCESS = """
import sys
from distill.__main__ import main
for line in sys.argv[1:]:
    assert main(line.split()) == 0, line
"""


def test_networks_that_ship_are_met_by_name_and_games_generated_and_trained_on(installed: Installed) -> None:
    assert installed.distill("train", code=1).strip() == (
        "distill train: data/games: no such folder; make games with: python -m distill.generate --out data/games"
    )
    installed.distill("generate", "--games", "12", "--simulations", "50", "--workers", "1", "--out", "few")
    lines = (
        "play pillar --first machine",
        "evaluate reference/pillar --boards 2 --no-latency",
        "train --preset smoke --arch pillar --data few --out models/few --no-export",
    )
    said = installed.asked(IN_ONE_PROCESS, *lines, typed="4\nq\n")  # TensorFlow is loaded once
    assert "pillar plays 4" in said
    assert "reference/pillar is best on midgame" in said
    assert re.search(r"models/few: top-1 accuracy against the teacher: \S+% on \d+ rows of the validation split", said)
    assert (installed.here / "models" / "evaluation" / "report.md").is_file()
    assert (installed.here / "models" / "few" / "best.keras").is_file()


def test_the_page_is_served_with_the_networks_that_ship(installed: Installed) -> None:
    with listening(installed.start(installed.python.with_name("distill"), "serve", "--port", "0")) as address:
        with urllib.request.urlopen(address, timeout=PATIENCE) as reply:
            assert b"<html" in reply.read()
        with urllib.request.urlopen(f"{address}api/players", timeout=PATIENCE) as reply:
            names = [player["name"] for player in json.load(reply)["players"] if player["kind"] == "network"]
        assert names == [f"reference/{name}" for name in SHIPPED]
        asked = json.dumps({"player": "pillar", "moves": "44"}).encode()
        request = urllib.request.Request(f"{address}api/move", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            assert len(json.load(reply)["moves"]) == 3

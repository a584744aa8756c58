"""The container image of `serve`, as far as that can be told without a daemon that builds it. Properties:

- what the Dockerfile copies is there, reaches the build past `.dockerignore` and is all the wheel is made of; what else
  a checkout holds stays out;
- its command is one that `serve` reads: all addresses, and the port that is exposed; it runs as nobody's root;
- the packages that it installs are dependencies of this project, those of the extra `serve` among them, and TensorFlow
  is not; with them alone, and no others, the page answers, and a network that ships, a search, and both together play.

By `pytest -m slow tests/project/test_container.py` its own lines are run in a fresh environment, with pip and the
index, in the order they stand in.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pathspec
import pytest
from pages import listening

from distill.common import cli
from distill.serve import ServeConfig
from distill.serve import main as serve
from tests import environments

ROOT = Path(__file__).parents[2]
PATIENCE = 120
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LINES = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
IGNORED = pathspec.PathSpec.from_lines("gitignore", [re.sub(r"^(!?)(?!\*)", r"\1/", line) for line in LINES])
"""Patterns without a leading slash begin at the top for Docker, and anywhere for git."""


def steps() -> Iterator[tuple[str, str]]:
    """Instruction and the rest of its line."""
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            instruction, rest = line.split(maxsplit=1)
            yield instruction, rest


STEPS = list(steps())


def those(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


def copied() -> list[str]:
    """What is copied from the checkout."""
    return [source for rest in those("COPY") if "--from" not in rest for source in rest.split()[:-1]]


def packages() -> list[str]:
    """What pip is told to install, by name."""
    (line,) = (rest for rest in those("RUN") if "requirements.lock" in rest)
    return line.split("requirements.lock")[1].split()


def test_what_is_copied_is_there_and_reaches_the_build_and_nothing_else_does() -> None:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    reaching = {name for name in files if not IGNORED.match_file(name)}
    expected = {name for name in files for source in copied() if name == source or name.startswith(f"{source}/")}
    assert reaching == expected
    for source in copied():
        assert any(name == source or name.startswith(f"{source}/") for name in reaching), source
    for secret in (
        ".git/config",
        ".venv/bin/python",
        "data/games/a.parquet",
        "models/cnn/best.keras",
        "distill/__pycache__/a",
    ):
        assert IGNORED.match_file(secret), secret


def test_the_wheel_is_made_of_what_is_copied() -> None:
    built = SETUP["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    named = ["pyproject.toml", SETUP["project"]["readme"], *SETUP["project"]["license-files"]]
    named.append(SETUP["tool"]["hatch"]["build"]["hooks"]["custom"]["path"])
    assert sorted(copied()) == sorted([*built, *named, "requirements.lock"])


def test_its_command_is_one_of_serve_on_the_port_that_is_exposed() -> None:
    (command,), (port,), (user,) = those("CMD"), those("EXPOSE"), those("USER")
    program, stage, *flags = json.loads(command)
    assert program in SETUP["project"]["scripts"]
    assert stage == serve.stage
    config = cli.parse(ServeConfig, flags, serve.presets)
    assert (config.host, str(config.port)) == ("0.0.0.0", port)
    assert any(f"useradd --create-home {user}" in rest for rest in those("RUN"))
    assert [name for name, _ in STEPS].index("USER") > max(i for i, (name, _) in enumerate(STEPS) if name == "RUN")


def test_its_packages_are_dependencies_and_tensorflow_is_none() -> None:
    project = SETUP["project"]
    known, extra = (
        {re.match(r"[\w-]+", text)[0] for text in texts}
        for texts in (project["dependencies"], project["optional-dependencies"]["serve"])
    )
    assert extra <= set(packages()) <= known | extra
    assert not {"tensorflow", "keras"} & environments.needs(*packages())


def plays(python: Path, *command: str, **environment: str) -> None:
    """The page and three players of a server that listens at a free port."""
    server = subprocess.Popen(
        [python, *command, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=python.parents[2],
        env={"PATH": os.environ["PATH"], "HOME": str(python.parents[2]), **environment},
    )
    with listening(server) as address:
        with urllib.request.urlopen(address, timeout=PATIENCE) as reply:
            assert b"<html" in reply.read()
        for player in ("pillar", "uct:200", "pillar@puct:20"):
            asked = json.dumps({"player": player, "moves": "44"}).encode()
            request = urllib.request.Request(f"{address}api/move", asked, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                assert json.load(reply)["column"] in range(7)


def test_with_its_packages_alone_the_page_plays(tmp_path: Path) -> None:
    environments.linked(tmp_path / "env", *packages())
    python = tmp_path / "env" / "bin" / "python"
    missing = (
        "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, ('tensorflow', 'keras', 'pandas', 'duckdb'))))"
    )
    subprocess.run([python, "-c", missing], check=True)
    _, stage, *flags = json.loads(those("CMD")[0])
    plays(python, "-m", "distill", stage, *flags, PYTHONPATH=str(ROOT))


@pytest.mark.slow
def test_its_lines_make_an_environment_that_serves(tmp_path: Path) -> None:
    """Stages are folders below one another's root, and pip is that of the environment."""
    environments.empty(tmp_path / "env")
    bin = tmp_path / "env" / "bin"
    place = tmp_path
    for instruction, rest in STEPS:
        rest = re.sub(r"(?<=\s)/(?=\w)", f"{tmp_path}/", rest)
        if instruction == "WORKDIR":
            place = Path(re.sub(r"^/", f"{tmp_path}/", rest))
            place.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY" and "--from" not in rest:
            *sources, target = rest.split()
            for source in sources:
                copy(source, place / target, is_folder=target.endswith("/") or target == ".")
        elif instruction == "RUN" and "useradd" not in rest:
            program, *words = shlex.split(rest)
            done = subprocess.run([bin / program, *words], cwd=place, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    program, *words = json.loads(those("CMD")[0])
    assert not list((tmp_path / "env").glob("lib/*/site-packages/tensorflow"))
    size = sum(file.stat().st_size for file in (tmp_path / "env" / "lib").rglob("*") if file.is_file()) / 1e6
    print(f"packages: {size:.0f} MB")
    assert size < 800
    plays(bin / "python", str(bin / program), *words)


def copy(source: str, target: Path, is_folder: bool) -> None:
    """As COPY does: a folder's contents into a folder, a file into a folder or under a name."""
    if (ROOT / source).is_dir():
        shutil.copytree(ROOT / source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(parents=True, exist_ok=True)
        assert is_folder
        shutil.copy(ROOT / source, target)

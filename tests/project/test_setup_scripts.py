"""The recipes find a usable Python or say in one line that there is none, without the network.

They run in a copy of their folder with stand-ins for Python as the only ones on PATH. A stand-in has a version,
"creates" an environment by copying itself there, and writes each call to a log. `.venv` is created once, and rebuilt
if it is broken; the installation is repeated after a failure or a change only.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PIPELINES = Path(__file__).parents[2] / "pipelines"
BASH = shutil.which("bash")

STAND_IN = """#!/bin/sh
# a stand-in for Python {version}; LOG is set by the test
printf '%s %s\\n' "{version}" "$*" >>"$LOG"
case "$*" in
  *"import {lacks}"*) echo "no module {lacks}" >&2; exit 1 ;;
  *"version_info"*) case "{version}" in 3.11 | 3.12 | 3.13) ;; *) exit 1 ;; esac ;;
  "-m venv --clear "*) rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-m pip "*) [ -z "$PIP_EXIT" ] || {{ echo "what pip says" >&2; exit "$PIP_EXIT"; }} ;;
esac
"""
INSTALL = (
    "-m pip install --disable-pip-version-check --quiet --no-compile --constraint requirements.lock "
    "--editable .[dev,solver]"
)


class Machine:
    """A checkout and a folder on PATH, filled by each test."""

    def __init__(self, folder: Path) -> None:
        self.path, self.checkout, self.log = folder / "bin", folder / "a check out", folder / "log"
        self.path.mkdir()
        for tool in ("dirname", "cp", "mkdir", "rm"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))
        shutil.copytree(PIPELINES, self.checkout / "pipelines")
        for name in ("pyproject.toml", "requirements.lock"):
            (self.checkout / name).touch()
            os.utime(self.checkout / name, (0, 0))

    def add(self, name: str, version: str, lacks: str = "nothing") -> Path:
        """Put a stand-in on PATH, or into the checkout if the name has a slash."""
        file = self.checkout / name if "/" in name else self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STAND_IN.format(version=version, lacks=lacks), encoding="utf-8")
        file.chmod(0o755)
        return file

    def run(self, recipe: str = "test.sh", *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("", encoding="utf-8")
        command = [str(BASH), str(self.checkout / "pipelines" / recipe), *words]
        env = {"PATH": str(self.path), "LOG": str(self.log), "CHROMIUM": "rm", **environment}
        return subprocess.run(command, env=env, cwd=self.path, capture_output=True, text=True, timeout=60)

    def calls(self, part: str) -> list[str]:
        """The calls of the last run whose words include `part`."""
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if part in line]

    def complaint(self, recipe: str = "test.sh", **environment: str) -> str:
        """The one line with which a recipe fails."""
        run = self.run(recipe, **environment)
        assert (run.returncode, run.stdout) == (1, "")
        (line,) = run.stderr.splitlines()
        assert not (self.checkout / ".venv").exists()
        return line


@pytest.fixture
def machine(tmp_path):
    if BASH is None or os.name != "posix":
        pytest.skip("the recipes need bash")
    return Machine(tmp_path)


@pytest.mark.parametrize("recipe", ["test.sh", "quickstart.sh"])
def test_a_machine_without_a_usable_python_gets_one_line(machine, recipe):
    assert "no Python 3.11, 3.12 or 3.13 with venv found" in machine.complaint(recipe)
    machine.add("python3", "3.10")
    machine.add("python3.13", "3.14")
    machine.add("python3.12", "3.12", lacks="ensurepip")
    machine.add("python3.11", "3.11").write_text("#!/bin/sh\necho 'pyenv: not found' >&2\nexit 127\n", encoding="utf-8")
    assert "apt install python3-venv" in machine.complaint(recipe)


def test_the_first_usable_python_is_taken_or_the_only_one_that_the_user_names(machine):
    machine.add("python3", "3.14")
    machine.add("python3.13", "3.13", lacks="ensurepip")
    machine.add("python3.12", "3.12")
    old = machine.add("opt dir/python", "3.9")
    assert f"{old} is not Python 3.11" in machine.complaint(PYTHON=str(old))
    another = machine.add(".venv/bin/python", "3.9")
    line = "distill: .venv has another Python than 3.11, 3.12 or 3.13; remove it, or move it away\n"
    assert machine.run().stderr == line
    assert another.exists(), "somebody may still use it"
    machine.add(".venv/bin/python", "3.13", lacks="pip")  # as uv makes it
    assert machine.run().returncode == 0
    assert (machine.calls("-m venv"), machine.calls("-m ensurepip")) == ([], ["3.13 -m ensurepip"])
    shutil.rmtree(machine.checkout / ".venv")
    machine.add(".venv/bin/python", "3.12").write_text("#!/nowhere\n", encoding="utf-8")  # its Python is gone
    run = machine.run(PIP_EXIT="1")
    assert (run.returncode, machine.calls("-m venv")) == (1, ["3.12 -m venv --clear .venv"]), "a broken one is rebuilt"
    assert run.stderr.splitlines() == ["what pip says", "distill: the installation failed (see above)"]
    assert machine.calls("-m pytest") == []
    for installs in ([f"3.12 {INSTALL}"], []):  # repeated once, after the failure
        assert machine.run().returncode == 0
        assert (machine.calls("-m venv"), machine.calls("-m pip")) == ([], installs)

"""The recipes find a Python or say in one line why there is none. Nothing here touches the network.

The recipes run in a copy of their folder, with only stand-ins for Python on PATH. A stand-in is of the version it was
made for, "creates" an environment by copying itself there, and writes each call to a log.

* A Python that is too old, too new, missing, broken or without venv: one line on stderr, exit 1, nothing created.
* Of several, the first that will do is taken; PYTHON names one and then no other counts.
* `.venv` is made once and kept; it is made anew when it is broken, half-made or of a Python that will not do.
* The installation is pinned by the lock and repeated only when something it depends on has changed, or it failed.
* All checks run, a failing one fails the recipe, and pytest has the last word.
* It works from another working directory and in a folder with blanks in its name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
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
  "-m ruff check") exit "${{RUFF_EXIT:-0}}" ;;
  "-m pytest"*) echo "3 passed in 0.01s"; exit "${{PYTEST_EXIT:-0}}" ;;
esac
"""
INSTALL = (
    "-m pip install --disable-pip-version-check --quiet --no-compile --constraint requirements.lock "
    "--editable .[dev,solver]"
)


class Machine:
    """A checkout and a PATH that hold what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.path, self.checkout, self.log = folder / "bin", folder / "a check out", folder / "log"
        self.path.mkdir()
        for tool in ("dirname", "cp", "mkdir", "rm"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))
        shutil.copytree(PIPELINES, self.checkout / "pipelines")
        for name in ("pyproject.toml", "requirements.lock"):
            self.change(name, before=1000)

    def change(self, name: str, before: float = -10) -> None:
        """Write one of the checkout's files, so many seconds before now."""
        (self.checkout / name).touch()
        os.utime(self.checkout / name, (time.time() - before,) * 2)

    def add(self, name: str, version: str, lacks: str = "nothing") -> Path:
        """Puts a stand-in on PATH, or anywhere inside the checkout if the name has a slash."""
        file = self.checkout / name if "/" in name else self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STAND_IN.format(version=version, lacks=lacks), encoding="utf-8")
        file.chmod(0o755)
        return file

    def run(self, recipe: str = "test.sh", *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("", encoding="utf-8")
        return subprocess.run(
            [str(BASH), str(self.checkout / "pipelines" / recipe), *words],
            env={"PATH": str(self.path), "LOG": str(self.log), "CHROMIUM": "rm", **environment},
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self, part: str) -> list[str]:
        """The logged calls of the last run that hold `part`."""
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if part in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if BASH is None or os.name != "posix":
        pytest.skip("the recipes need bash")
    return Machine(tmp_path)


def complaint(machine: Machine, recipe: str = "test.sh", **environment: str) -> str:
    """The one line with which a recipe gives up."""
    run = machine.run(recipe, **environment)
    assert run.returncode == 1
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert not (machine.checkout / ".venv").exists()
    return line


@pytest.mark.parametrize("recipe", ["test.sh", "quickstart.sh"])
def test_a_machine_without_a_python_that_will_do_is_told_in_one_line(machine: Machine, recipe: str):
    assert "no Python 3.11, 3.12 or 3.13 with venv found" in complaint(machine, recipe)
    machine.add("python3", "3.10")
    machine.add("python3.13", "3.14")
    machine.add("python3.12", "3.12", lacks="ensurepip")
    machine.add("python3.11", "3.11").write_text("#!/bin/sh\necho 'pyenv: not found' >&2\nexit 127\n", encoding="utf-8")
    assert "apt install python3-venv" in complaint(machine, recipe)


def test_the_first_python_that_will_do_is_taken(machine: Machine):
    machine.add("python3", "3.14")
    machine.add("python3.13", "3.13", lacks="ensurepip")
    machine.add("python3.12", "3.12")
    machine.add("python3.11", "3.11")
    run = machine.run()
    assert run.returncode == 0
    assert run.stderr == ""
    assert machine.calls("-m venv") == ["3.12 -m venv --clear .venv"]


def test_a_python_named_by_the_user_is_the_only_one_tried(machine: Machine):
    machine.add("python3", "3.12")
    old = machine.add("opt dir/python", "3.9")
    assert f"{old} is no Python 3.11" in complaint(machine, PYTHON=str(old))
    assert "nowhere is no Python" in complaint(machine, PYTHON="nowhere")
    fitting = machine.add("opt dir/python", "3.13")
    assert machine.run(PYTHON=str(fitting)).returncode == 0
    assert machine.calls("-m venv") == ["3.13 -m venv --clear .venv"]


def test_a_second_run_makes_nothing_and_installs_only_what_has_changed(machine: Machine):
    machine.add("python3", "3.12")
    machine.run()
    assert machine.calls("-m pip") == [f"3.12 {INSTALL}"]
    machine.add("python3", "3.14")  # a working environment is kept although python3 has moved on
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == machine.calls("-m pip") == []
    for name in ("pyproject.toml", "requirements.lock"):
        machine.change(name)
        machine.run()
        assert machine.calls("-m venv") == []
        assert machine.calls("-m pip") == [f"3.12 {INSTALL}"]
        machine.change(name, before=1000)


def test_an_installation_that_failed_is_told_and_tried_again(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run(PIP_EXIT="1")
    assert run.returncode == 1
    assert run.stderr.splitlines() == ["what pip says", "distill: the installation failed, as said above"]
    assert machine.calls("-m pytest") == []
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == []
    assert len(machine.calls("-m pip")) == 1


@pytest.mark.parametrize("fault", ["half-made", "too old", "without its Python"])
def test_an_environment_that_will_not_do_is_made_anew(machine: Machine, fault: str):
    machine.add("python3", "3.13")
    version, lacks = "3.9" if fault == "too old" else "3.12", "pip" if fault == "half-made" else "nothing"
    inside = machine.add(".venv/bin/python", version, lacks)
    if fault == "without its Python":
        inside.unlink()
        inside.symlink_to("/nowhere/python3")
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == ["3.13 -m venv --clear .venv"]


def test_pytest_has_the_last_word_and_takes_the_arguments(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run("test.sh", "-k", "rules or cli")
    assert run.stdout.splitlines()[-1] == "3 passed in 0.01s"
    assert machine.calls("-m pytest") == ["3.12 -m pytest -n 3 --dist loadfile -k rules or cli"]
    for check in ("ruff check", "ruff format --check", "mypy"):
        assert machine.calls(f"-m {check}"), check


def test_a_failing_check_fails_the_recipe_after_the_tests_have_run(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run(RUFF_EXIT="1")
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "3 passed in 0.01s"
    assert machine.run(PYTEST_EXIT="1").returncode == 1
    assert machine.run(PYTEST_EXIT="5").returncode == 5

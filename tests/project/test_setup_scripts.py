"""The recipes find a Python or say in one line why there is none. Nothing here touches the network.

The recipes run in a copy of their folder, with only stand-ins for Python on PATH. A stand-in answers the version it
was made for, "creates" an environment by copying itself there, and writes each call to a log.

* A Python that is too old, too new, missing, broken or without venv: one line on stderr, exit 1, nothing created.
* Of several, the first that will do is taken; PYTHON names one and then no other counts.
* `.venv` is made once and kept; it is made anew when it is broken, half-made or of a Python that will not do.
* The installation is pinned by the lock and repeated only when something it depends on has changed.
* All checks run, a failing one fails the recipe, and pytest has the last word.
* It works from another working directory and in a folder with blanks in its name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PIPELINES = Path(__file__).parents[2] / "pipelines"
BASH = shutil.which("bash")

STAND_IN = """#!/bin/sh
# a stand-in for Python {version}; SELF and LOG are set by the test
printf '%s %s\\n' "{version}" "$*" >>"$LOG"
case "$*" in
  *"import venv, ensurepip"*) exit {without_venv} ;;
  *"import sys, pip"*) exit {without_pip} ;;
  *"version_info"*) echo "{version}" ;;
  *hashlib*) cat pyproject.toml requirements.lock; printf '%s\\n' "$*" ;;
  "-m venv --clear "*)
    rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-m pip "*) echo "what pip says"; exit "${{PIP_EXIT:-0}}" ;;
  "-m ruff check") exit "${{RUFF_EXIT:-0}}" ;;
  "-m pytest"*) echo "3 passed in 0.01s"; exit "${{PYTEST_EXIT:-0}}" ;;
esac
"""


class Machine:
    """A checkout and a PATH that hold what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.path, self.checkout, self.log = folder / "bin", folder / "a check out", folder / "log"
        self.path.mkdir()
        for tool in ("dirname", "cat", "cp", "mkdir", "rm", "tail"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))
        shutil.copytree(PIPELINES, self.checkout / "pipelines")
        for name in ("pyproject.toml", "requirements.lock"):
            (self.checkout / name).write_text(name, encoding="utf-8")

    def add(self, name: str, version: str, without_venv: bool = False, without_pip: bool = False) -> Path:
        """Puts a stand-in on PATH, or anywhere inside the checkout if the name has a slash."""
        file = self.checkout / name if "/" in name else self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = STAND_IN.format(version=version, without_venv=int(without_venv), without_pip=int(without_pip))
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
        return file

    def run(self, recipe: str = "test.sh", *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("", encoding="utf-8")
        return subprocess.run(
            [str(BASH), str(self.checkout / "pipelines" / recipe), *words],
            env={"PATH": str(self.path), "LOG": str(self.log), **environment},
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


RECIPES = ["test.sh", "quickstart.sh"]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.10", "3.14", "3.20", "4.0"])
def test_a_python_too_old_or_too_new_is_told_in_one_line(machine: Machine, recipe: str, version: str):
    machine.add("python3", version)
    line = complaint(machine, recipe)
    assert f"python3 is Python {version}; distill needs Python 3.11, 3.12 or 3.13" in line


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_python_without_venv_is_told_in_one_line_with_the_remedy(machine: Machine, recipe: str):
    machine.add("python3", "3.12", without_venv=True)
    line = complaint(machine, recipe)
    assert "python3 (Python 3.12) cannot make virtual environments" in line
    assert "apt install python3.12-venv" in line


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_machine_without_python_is_told_in_one_line(machine: Machine, recipe: str):
    assert "no python3 found" in complaint(machine, recipe)


def test_a_python_that_does_not_run_is_told_in_one_line(machine: Machine):
    file = machine.add("python3", "3.12")
    file.write_text("#!/bin/sh\necho 'pyenv: python3: command not found' >&2\nexit 127\n", encoding="utf-8")
    assert "python3 does not run" in complaint(machine)


def test_the_right_python_without_venv_is_told_before_a_wrong_one(machine: Machine):
    machine.add("python3", "3.10")
    machine.add("python3.12", "3.12", without_venv=True)
    assert "python3.12 (Python 3.12) cannot make" in complaint(machine)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_fitting_python_makes_the_environment(machine: Machine, version: str):
    machine.add("python3", version)
    run = machine.run()
    assert run.returncode == 0
    assert run.stderr == ""
    assert machine.calls("-m venv") == [f"{version} -m venv --clear .venv"]


def test_the_first_python_that_will_do_is_taken(machine: Machine):
    machine.add("python3", "3.14")
    machine.add("python3.13", "3.13", without_venv=True)
    machine.add("python3.12", "3.12")
    machine.add("python3.11", "3.11")
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == ["3.12 -m venv --clear .venv"]


def test_a_python_named_by_the_user_is_the_only_one_tried(machine: Machine):
    machine.add("python3", "3.12")
    old = machine.add("opt dir/python", "3.9")
    assert f"{old} is Python 3.9" in complaint(machine, PYTHON=str(old))
    assert "nowhere does not run" in complaint(machine, PYTHON="nowhere")
    fitting = machine.add("opt dir/python", "3.13")
    assert machine.run(PYTHON=str(fitting)).returncode == 0
    assert machine.calls("-m venv") == ["3.13 -m venv --clear .venv"]


def test_a_second_run_makes_and_installs_nothing(machine: Machine):
    machine.add("python3", "3.12")
    machine.run()
    assert machine.calls("-m pip") == [
        "3.12 -m pip install --disable-pip-version-check --constraint requirements.lock --editable .[dev,solver]"
    ]
    run = machine.run()
    assert run.returncode == 0
    assert machine.calls("-m venv") == machine.calls("-m pip") == []


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_changed_requirement_is_installed_into_the_same_environment(machine: Machine, name: str):
    machine.add("python3", "3.12")
    machine.run()
    (machine.checkout / name).write_text("changed", encoding="utf-8")
    machine.run()
    assert machine.calls("-m venv") == []
    assert len(machine.calls("-m pip")) == 1


def test_an_installation_that_failed_is_told_and_tried_again(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run(PIP_EXIT="1")
    assert run.returncode == 1
    assert run.stderr.splitlines()[0] == "what pip says"
    assert "the installation failed" in run.stderr.splitlines()[1]
    assert machine.calls("-m pytest") == []
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == []
    assert len(machine.calls("-m pip")) == 1


def test_an_environment_without_its_python_is_made_anew(machine: Machine):
    machine.add("python3", "3.12")
    (machine.checkout / ".venv" / "bin").mkdir(parents=True)
    (machine.checkout / ".venv" / "bin" / "python").symlink_to("/nowhere/python3")
    run = machine.run()
    assert run.returncode == 0
    assert "making .venv anew" in run.stdout
    assert machine.calls("-m venv") == ["3.12 -m venv --clear .venv"]


def test_an_environment_without_pip_or_of_a_wrong_version_is_made_anew(machine: Machine):
    machine.add("python3", "3.12")
    machine.add(".venv/bin/python", "3.9", without_pip=True)  # the same question asks for both
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == ["3.12 -m venv --clear .venv"]


def test_a_working_environment_is_kept_although_python3_has_moved_on(machine: Machine):
    machine.add("python3", "3.14")
    machine.add(".venv/bin/python", "3.12")
    assert machine.run().returncode == 0
    assert machine.calls("-m venv") == []


def test_an_environment_of_another_version_than_the_one_asked_for_is_made_anew(machine: Machine):
    machine.add(".venv/bin/python", "3.12")
    asked = machine.add("python3.13", "3.13")
    assert machine.run(PYTHON=str(asked)).returncode == 0
    assert machine.calls("-m venv") == ["3.13 -m venv --clear .venv"]
    machine.run(PYTHON=str(asked))
    assert machine.calls("-m venv") == []


def test_pytest_has_the_last_word_and_takes_the_arguments(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run("test.sh", "-k", "rules or cli")
    assert run.stdout.splitlines()[-1] == "3 passed in 0.01s"
    assert machine.calls("-m pytest") == ["3.12 -m pytest -n 2 --dist loadfile -k rules or cli"]
    for check in ("ruff check", "ruff format --check", "mypy"):
        assert machine.calls(f"-m {check}"), check


def test_a_failing_check_fails_the_recipe_after_the_tests_have_run(machine: Machine):
    machine.add("python3", "3.12")
    run = machine.run(RUFF_EXIT="1")
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "3 passed in 0.01s"
    assert machine.run(PYTEST_EXIT="1").returncode == 1
    assert machine.run(PYTEST_EXIT="5").returncode == 5

"""The arrows of the project: who may import whom, read from the source, also through others.

* A package imports packages to its left only, in the order of PACKAGES; nothing imports a command.
* No modules import each other in a circle when they are loaded.
* Teacher and grader never meet: `generate`, `prepare` and `train` do not reach `players/` or `evaluation/`.
* Only `networks/`, `training/`, `exporters/` and `policy_gradient/` import TensorFlow or Keras when a module is
  loaded; elsewhere a function does.
* Every dependency of the package is imported by it, scikit-learn only by the functions that measure.
* Importing `distill.generate` leaves `tensorflow` and `keras` out of the process.
* Nothing is imported by a computed name except where listed, so this walk sees everything.
* The package knows no experiment; experiments import the package and nothing else of the checkout.
* The walk itself sees what it should, shown on a small made-up package.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers import Import, imports_of

import distill

PACKAGE = Path(distill.__file__).parent
EXPERIMENTS = PACKAGE.with_name("experiments")
PACKAGES = (
    "common",
    "game",
    "mcts",
    "games",
    "datasets",
    "networks",
    "training",
    "exporters",
    "players",
    "evaluation",
    "policy_gradient",
    "alphazero",
    "web",
)
WITH_TENSORS = ("networks", "training", "exporters", "policy_gradient")
COMPUTED = {"", "__main__", "common.plugins", "networks.registry"}
"""The library's names, the command that is given, a user's "module:object", and in `networks.build` a network."""
TENSOR_LIBRARIES = {"tensorflow", "keras"}


class Project:
    """The modules of a package, by their dotted name below it ("" for the package itself), and their imports."""

    def __init__(self, root: Path) -> None:
        self.name = root.name
        self.files: dict[str, Path] = {}
        for file in sorted(root.rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
        self.imports = {module: self._imports(module) for module in self.files}

    def _imports(self, module: str) -> list[Import]:
        file = self.files[module]
        is_package = file.name == "__init__.py"
        package = ".".join(filter(None, (self.name, module if is_package else module.rpartition(".")[0])))
        return list(imports_of(file, package))

    def inside(self, name: str) -> list[str]:
        """The project's modules that importing an absolute name loads: the module and the packages around it."""
        head, *parts = name.split(".")
        if head != self.name:
            return []
        prefixes = [".".join(parts[:length]) for length in range(len(parts) + 1)]
        return [prefix for prefix in prefixes if prefix in self.files]

    def needs(self, module: str, at_load_only: bool = False) -> set[str]:
        """Modules that a module imports itself, not counting its own packages; a package alone counts if named."""
        found: set[str] = set()
        for entry in self.imports[module]:
            if entry.at_load or not at_load_only:
                found |= set(self.inside(entry.name))
        own = {"", *(module[:end] for end, character in enumerate(module) if character == "."), module}
        return found - own

    def reaches(self, module: str, at_load_only: bool = False) -> set[str]:
        """Everything a module imports, itself or through others."""
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = self.needs(waiting.pop(), at_load_only) - found
            found |= new
            waiting += new
        return found

    def tensor_imports(self, module: str, at_load_only: bool = False) -> set[str]:
        """TensorFlow and Keras, as far as a module imports them itself."""
        names = {entry.name.split(".")[0] for entry in self.imports[module] if entry.at_load or not at_load_only}
        return names & TENSOR_LIBRARIES


PROJECT = Project(PACKAGE)
COMMANDS = {
    module for module in PROJECT.files if module and "." not in module and module not in {*PACKAGES, "__main__"}
}


def package_of(module: str) -> str | None:
    package = module.split(".")[0]
    return package if package in PACKAGES else None


IN_PACKAGES = sorted(module for module in PROJECT.files if package_of(module))


def test_every_module_is_a_package_or_a_command():
    assert {package_of(module) for module in IN_PACKAGES} == set(PACKAGES)
    assert set(PROJECT.files) >= {"common.cli", "game.rules", "games.schema", "generate"}
    for module in PROJECT.files:
        assert package_of(module) or "." not in module, f"{module} lies in a folder that is no package"


@pytest.mark.parametrize("module", IN_PACKAGES)
def test_a_package_imports_packages_to_its_left_only(module):
    left = PACKAGES[: PACKAGES.index(str(package_of(module))) + 1]
    assert not {other for other in PROJECT.needs(module) if package_of(other) not in left}


@pytest.mark.parametrize("module", sorted(PROJECT.files))
def test_no_module_needs_itself_to_be_loaded(module):
    assert module not in PROJECT.reaches(module, at_load_only=True)


@pytest.mark.parametrize("command", ["generate", "prepare", "train"])
def test_teacher_and_grader_never_meet(command):
    assert not {module for module in PROJECT.reaches(command) if package_of(module) in ("players", "evaluation")}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_command_imports_another(command):
    assert not PROJECT.reaches(command) & COMMANDS


@pytest.mark.parametrize("module", sorted(PROJECT.files))
def test_only_packages_of_networks_import_tensorflow_or_keras_when_a_module_is_loaded(module):
    if package_of(module) not in WITH_TENSORS:
        assert not PROJECT.tensor_imports(module, at_load_only=True)
    if package_of(module) in ("game", "mcts"):
        assert not PROJECT.tensor_imports(module)


@pytest.mark.parametrize("command", ["generate", "prepare", "__main__"])
def test_a_command_that_trains_nothing_loads_no_network(command):
    loaded = {command, *PROJECT.reaches(command, at_load_only=True)}
    assert not {module for module in loaded if PROJECT.tensor_imports(module, at_load_only=True)}


def test_every_dependency_is_imported():
    project = tomllib.loads((PACKAGE.with_name("pyproject.toml")).read_text(encoding="utf-8"))["project"]
    named = {re.split("[><=]", dependency)[0] for dependency in project["dependencies"]}
    imported = {entry.name.split(".")[0] for entries in PROJECT.imports.values() for entry in entries}
    assert {name for name in named if {"scikit-learn": "sklearn"}.get(name, name) not in imported} == set()


@pytest.mark.parametrize("module", sorted(PROJECT.files))
def test_scikit_learn_is_not_loaded_with_a_module(module):
    assert not [entry for entry in PROJECT.imports[module] if entry.at_load and entry.name.startswith("sklearn")]


def test_importing_generate_leaves_tensorflow_and_keras_out():
    code = "import sys, distill.generate; print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_nothing_else_is_imported_by_a_computed_name():
    found = set()
    for module, file in PROJECT.files.items():
        text = ast.unparse(ast.parse(file.read_text(encoding="utf-8")))
        if "import_module" in text or "__import__" in text or "runpy" in text:
            found.add(module)
    assert found <= COMPUTED


@pytest.mark.parametrize("module", sorted(PROJECT.files))
def test_the_package_knows_no_experiment(module):
    assert EXPERIMENTS.name not in {entry.name.split(".")[0] for entry in PROJECT.imports[module]}


@pytest.mark.parametrize("module", sorted(Project(EXPERIMENTS).files))
def test_experiments_import_nothing_of_the_checkout_but_the_package(module):
    beside = {path.stem for path in PACKAGE.parent.iterdir()} - {PACKAGE.name, EXPERIMENTS.name}
    assert {"tests", "benchmarks"} <= beside
    imported = {entry.name.split(".")[0] for entry in Project(EXPERIMENTS).imports[module]}
    assert not imported & beside


@pytest.fixture
def made_up(tmp_path: Path) -> Project:
    root = tmp_path / "made"
    files = {
        "__init__.py": "",
        "a/__init__.py": "",
        "a/one.py": "from made.b import two\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import keras\n",
        "b/__init__.py": "from ..c import three\n",
        "b/two.py": "def later():\n    import made.d\n    from tensorflow import keras\n",
        "c/__init__.py": "",
        "c/three.py": "class Holder:\n    import keras.layers\n",
        "d.py": "import json\n",
        "e.py": "try:\n    from . import d as renamed\nexcept ImportError:\n    pass\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Project(root)


def test_the_walk_follows_absolute_relative_nested_and_package_imports(made_up):
    assert made_up.needs("a.one") == {"b", "b.two"}
    assert made_up.needs("b") == {"c", "c.three"}
    assert made_up.needs("b.two") == {"d"}
    assert made_up.needs("b.two", at_load_only=True) == set()
    assert made_up.needs("e", at_load_only=True) == {"d"}
    assert made_up.reaches("a.one") == {"b", "b.two", "c", "c.three", "d"}
    assert made_up.reaches("a.one", at_load_only=True) == {"b", "b.two", "c", "c.three"}


def test_the_walk_tells_what_loading_runs_from_what_a_function_runs(made_up):
    assert made_up.tensor_imports("a.one") == {"keras"}
    assert made_up.tensor_imports("a.one", at_load_only=True) == set()
    assert made_up.tensor_imports("b.two") == {"tensorflow"}
    assert made_up.tensor_imports("b.two", at_load_only=True) == set()
    assert made_up.tensor_imports("c.three", at_load_only=True) == {"keras"}

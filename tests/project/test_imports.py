"""The arrows of the project: who may import whom, read from the source, also through others.

Nothing is imported by a computed name except where listed, so this walk sees everything.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

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
    "envs",
    "evaluation",
    "alphazero",
    "web",
)
WITH_TENSORS = ("networks", "training", "exporters")
COMPUTED = {"", "__main__", "common.keras_layers", "common.plugins", "exporters.formats", "networks.registry"}
"""The library's names, the command that is given, the modules with layers of our own, a user's "module:object", a
Kaggle submission that is checked, and in `networks.build` a network."""
TENSOR_LIBRARIES = {"tensorflow", "keras"}
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


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
        modules: set[str] = set()
        for entry in self.imports[module]:
            if entry.at_load or not at_load_only:
                modules |= set(self.inside(entry.name))
        packages = {"", *(module[:end] for end, character in enumerate(module) if character == "."), module}
        return modules - packages

    def reaches(self, module: str, at_load_only: bool = False) -> set[str]:
        """Everything a module imports, itself or through others."""
        modules: set[str] = set()
        waiting = [module]
        while waiting:
            new = self.needs(waiting.pop(), at_load_only) - modules
            modules |= new
            waiting += new
        return modules

    def libraries(self, module: str, at_load_only: bool = False) -> set[str]:
        """Top-level names that a module imports itself."""
        return {entry.name.split(".")[0] for entry in self.imports[module] if entry.at_load or not at_load_only}


PROJECT = Project(PACKAGE)
COMMANDS = {
    module for module in PROJECT.files if module and "." not in module and module not in {*PACKAGES, "__main__"}
}


def package_of(module: str) -> str | None:
    package = module.split(".")[0]
    return package if package in PACKAGES else None


IN_PACKAGES = sorted(module for module in PROJECT.files if package_of(module))


def wrong(names: Callable[[str], Iterable[str]], modules: Iterable[str] = PROJECT.files) -> dict[str, set[str]]:
    """The modules that import, by `names`, what they must not."""
    return {module: set(imported) for module in modules if (imported := names(module))}


def test_the_walk_follows_imports_through_others_and_tells_what_loading_runs_from_what_a_function_runs():
    assert "common.cli" in PROJECT.needs("generate")
    assert "mcts.engine.jit" in PROJECT.reaches("generate") - PROJECT.needs("generate")
    assert "keras" in PROJECT.libraries("networks.heads", at_load_only=True)
    assert "keras" in PROJECT.libraries("networks.backend") - PROJECT.libraries("networks.backend", at_load_only=True)


def test_every_module_is_a_package_or_a_command():
    assert {package_of(module) for module in IN_PACKAGES} == set(PACKAGES)
    assert set(PROJECT.files) >= {"common.cli", "game.rules", "games.schema", "generate"}
    assert [module for module in PROJECT.files if "." in module and not package_of(module)] == []


def test_a_package_imports_packages_to_its_left_only_and_nothing_imports_a_command():
    def to_the_right(module: str) -> set[str]:
        left = PACKAGES[: PACKAGES.index(str(package_of(module))) + 1]
        return {other for other in PROJECT.needs(module) if package_of(other) not in left}

    assert wrong(to_the_right, IN_PACKAGES) == {}
    assert wrong(lambda command: PROJECT.reaches(command) & COMMANDS, COMMANDS) == {}


def test_no_module_needs_itself_to_be_loaded():
    assert wrong(lambda module: {module} & PROJECT.reaches(module, at_load_only=True)) == {}


def test_teacher_and_grader_never_meet():
    graders = {module for module in PROJECT.files if package_of(module) in ("players", "evaluation")}
    assert wrong(lambda command: PROJECT.reaches(command) & graders, ["generate", "prepare", "train"]) == {}


def test_only_packages_of_networks_import_tensorflow_or_keras_when_a_module_is_loaded():
    def tensors(module: str) -> set[str]:
        return PROJECT.libraries(module, at_load_only=package_of(module) not in ("game", "mcts")) & TENSOR_LIBRARIES

    others = [module for module in PROJECT.files if package_of(module) not in WITH_TENSORS]
    assert wrong(tensors, others) == {}
    for command in ("generate", "prepare", "__main__"):  # they train nothing and load no network
        assert wrong(tensors, {command, *PROJECT.reaches(command, at_load_only=True)}) == {}


def test_every_dependency_is_imported_and_scikit_learn_is_not_loaded_with_a_module():
    project = tomllib.loads((PACKAGE.with_name("pyproject.toml")).read_text(encoding="utf-8"))["project"]
    named = {
        re.split("[><=]", dependency)[0].replace("scikit-learn", "sklearn") for dependency in project["dependencies"]
    }
    assert named <= set().union(*map(PROJECT.libraries, PROJECT.files))
    assert wrong(lambda module: {"sklearn"} & PROJECT.libraries(module, at_load_only=True)) == {}


def test_nothing_else_is_imported_by_a_computed_name():
    texts = {module: ast.unparse(ast.parse(file.read_text(encoding="utf-8"))) for module, file in PROJECT.files.items()}
    computing = re.compile("import_module|__import__|resolve_name|runpy")
    assert {module for module, text in texts.items() if computing.search(text)} <= COMPUTED


def test_the_package_knows_no_experiment_and_experiments_nothing_else_of_the_checkout():
    assert wrong(lambda module: {EXPERIMENTS.name} & PROJECT.libraries(module)) == {}
    beside = {path.stem for path in PACKAGE.parent.iterdir()} - {PACKAGE.name, EXPERIMENTS.name}
    assert {"tests", "benchmarks"} <= beside
    experiments = Project(EXPERIMENTS)
    assert wrong(lambda module: experiments.libraries(module) & beside, experiments.files) == {}


def test_nothing_imports_what_windows_lacks():
    assert wrong(lambda module: PROJECT.libraries(module) & POSIX_ONLY) == {}
    examples = Project(PACKAGE.with_name("examples"))
    assert wrong(lambda module: examples.libraries(module) & POSIX_ONLY, examples.files) == {}

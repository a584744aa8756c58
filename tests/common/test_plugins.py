"""A user's own code as "module:object". Properties:

- the object of a module in the working directory is loaded, and what is hashed is what was imported;
- every mistake is one line that names the flag, the text and what is wrong, with the place of an error;
- another process, or this one after an edit, refuses another version of the source;
- whatever a user's code raises is one line, and a directory that it changes is changed back.
"""

import importlib
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from distill.common import Interrupted, UserError, file_hash, plugins, sources

SOURCE = """
from functools import partial
import engine_parts

class Engine:
    def __call__(self, boards):
        return boards

def label(boards):
    return boards

_label = label
engine = Engine()
first = partial(label, 1)
other = engine_parts.other
number = 3
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """The folder of the module `my_engine`: the working directory, not yet on the path."""
    (tmp_path / "my_engine.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "engine_parts.py").write_text("def other(): pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["label", "_label", "Engine", "engine", "first", "Engine.__call__"])
def test_an_object_of_a_module_in_the_working_directory_is_loaded(engine, name, monkeypatch):
    found = plugins.load(f"my_engine:{name}", "--labeller")
    assert callable(found)
    assert sources.source_hash(found) == file_hash(engine / "my_engine.py")
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # as in a notebook
    for typed in (eval("lambda: 0", {"__name__": "x"}), type("Typed", (), {"__module__": "__main__"})):
        with pytest.raises(UserError, match="defined in no file; put it in a module of its own"):
            sources.source_hash(typed)
    assert plugins.Plugin.named("time:time", "--labeller").load() is time.time


MODULES = {
    "missing": "\nimport numpi\n",
    "divides": "def f():\n    1 / 0\nf()\n",
    "unreadable": "x = 1\ndef f(:\n",
}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("my_engine", "must be module:object, such as my_engine:label"),
        (7, "must be module:object, such as my_engine:label"),
        ("my_engines:label", "ModuleNotFoundError: No module named 'my_engines'"),
        ("my_engine.py:label", "ModuleNotFoundError: No module named 'my_engine.py'; 'my_engine' is not a package"),
        ("my_engine:Engine.lable", "AttributeError: type object 'Engine' has no attribute 'lable'"),
        ("my_engine:number", "number is a int, which cannot be called"),
        ("missing:f", "ModuleNotFoundError: No module named 'numpi' (FOLDER/missing.py:2)"),
        ("divides:f", "ZeroDivisionError: division by zero (FOLDER/divides.py:2)"),
        ("unreadable:f", "SyntaxError: invalid syntax (FOLDER/unreadable.py:2)"),
    ],
)
def test_a_wrong_name_or_a_module_that_fails_is_one_line_with_the_place(engine, spec, problem):
    for name, source in MODULES.items():
        (engine / f"{name}.py").write_text(source, encoding="utf-8")
    with pytest.raises(UserError) as error:
        plugins.load(spec, "--labeller")
    assert str(error.value) == f"--labeller {spec}: {problem.replace('FOLDER', str(engine))}"


def test_another_process_imports_the_module_and_refuses_another_version(engine):
    plugin = plugins.Plugin.named("my_engine:other", "--labeller")
    assert pickle.loads(pickle.dumps(plugin)) == plugin
    code = f"import pickle; print(pickle.loads({pickle.dumps(plugin)!r}).load().__module__)"

    def elsewhere() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False)

    assert elsewhere().stdout == "engine_parts\n"
    (engine / "engine_parts.py").write_text("def other(): return 1\n", encoding="utf-8")
    assert "a worker has another version of its source; copy it there" in elsewhere().stderr


def test_files_that_an_object_names_are_part_of_its_source(engine):
    alone, search = plugins.Plugin.named("my_engine:other", "--labeller").source, engine / "search.py"
    search.write_text("first", encoding="utf-8")
    sys.modules["my_engine"].other.source_files = [search]
    assert plugins.Plugin.named("my_engine:other", "--labeller").source != alone
    search.write_text("second", encoding="utf-8")
    with pytest.raises(UserError, match=r"search\.py: changed after this process imported it"):
        plugins.Plugin.named("my_engine:other", "--labeller")


def test_a_module_that_was_imported_before_it_is_named_keeps_its_hash(engine):
    sys.path.insert(0, str(engine))
    loaded = importlib.import_module("my_engine")  # as in a notebook
    for file in ("engine_parts.py", "my_engine.py"):
        (engine / file).write_text((engine / file).read_text() + "# edited\n")
        for refuses in (
            lambda: plugins.load("my_engine:other", "--labeller"),
            lambda: plugins.Plugin.named("my_engine:other", "--labeller"),
            lambda: sources.source_hash(loaded.other),
        ):
            with pytest.raises(UserError, match=r"\.py: changed after this process imported it"):
                refuses()
        assert plugins.call(loaded.label, "label", 7) == 7
    importlib.reload(loaded)  # functions from before may still be in use
    with pytest.raises(UserError, match=r"my_engine\.py: changed after this process imported it"):
        plugins.load("my_engine:label", "--labeller")


def test_an_edit_that_keeps_size_and_second_is_not_hidden_by_a_compiled_file(engine):
    code = "import sys; from distill.common import plugins; sys.exit(plugins.load('sized:f', '--arch')())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in (3, 4):
        (engine / "sized.py").write_text(f"def f(): return {number}\n")
        os.utime(engine / "sized.py", (1e9, 1e9))
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == number


def test_whatever_a_users_code_raises_is_one_line_but_an_interruption_is_none_of_its_errors():
    def fails(error: BaseException) -> None:
        raise error

    for error in (SystemExit("x"), ValueError("x"), MemoryError("x")):
        with pytest.raises(UserError, match=rf"^label: {type(error).__name__}: x \(.*test_plugins.py:\d+\)$"):
            plugins.call(fails, "label", error)
    for error in (Interrupted(signal.SIGTERM), KeyboardInterrupt(), UserError("no licence")):
        with pytest.raises(type(error)):
            plugins.call(fails, "label", error)


def test_a_directory_that_a_users_code_changes_is_changed_back(engine):
    (engine / "broken.py").write_text("import os\nos.chdir('/')\n")
    plugins.load("broken:os.chdir", "--labeller")
    assert os.getcwd() == str(engine)
    plugins.call(os.chdir, "label", "/")
    assert os.getcwd() == str(engine)

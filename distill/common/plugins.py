"""A user's own code, named on the command line as "module:object", such as `my_engine:label`.

Only a flag, a config or a Python argument can name a module. A file that is read, such as a model or a record, never
makes Python import anything: what it names is compared, not loaded.

The code that runs is the code that was hashed: from `import distill` on, a user's module is compiled from the bytes
that are hashed, and its hash stays the same for the life of the process. Where the file has changed since, `load`,
`source_hash` and `Plugin.named` refuse, so that no run begins with code that its record would not name.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import operator
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

from distill.common import keras_layers
from distill.common.errors import UserError, first_line
from distill.common.files import file_hash

SPEC = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""What "module:object" looks like: two dotted names of Python."""


OURS = os.path.join(Path(__file__).parents[1], "")
LIBRARIES = (sysconfig.get_path("stdlib"), OURS, "site-packages", "dist-packages", "<frozen")
"""Parts of the names of files that are not the user's."""


def is_spec(text: str) -> bool:
    """Whether a text looks like "module:object"; `uct:200` and `C:\\games` do not."""
    return SPEC.fullmatch(text) is not None


def load(spec: str, what: str) -> Any:
    """Import the callable object that "module:object" names, with the working directory on the path.

    Args:
      spec: such as "my_engine:label"; the module is a file in the working directory or an installed package.
      what: the flag or argument that names it, the first words of every error: "--labeller".

    Raises UserError in one line for what is not such a name, a module that is missing or fails, with the file and line
    where it failed, an object that is missing or not callable, and a file that changed after its import.
    """
    return Plugin.named(spec, what).load()


def _import(spec: str, what: str) -> Any:
    if not is_spec(spec):
        raise UserError(f"{what} {spec}: must be module:object, such as my_engine:label")
    # `distill COMMAND` starts without the working directory on the path, unlike `python -m`.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    name, _, path = spec.partition(":")
    loaded = call(lambda: operator.attrgetter(path)(importlib.import_module(name)), f"{what} {spec}")
    if not callable(loaded):
        raise UserError(f"{what} {spec}: {path} is a {type(loaded).__name__}, which cannot be called")
    return loaded


def call(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    """What a user's function returns; whatever it raises becomes a UserError with the name, the error and its place."""
    try:
        with contextlib.chdir(os.getcwd()):  # where it changes the directory, relative paths still mean the same files
            return function(*arguments)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{name}: {_last_line(error)}") from error


def _last_line(error: BaseException) -> str:
    """The last line of the traceback, with the file and line where the error was raised, if that is not here."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    # The user's last line, which may have called a library that raised it.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {first_line(error)}{place}"


# The source of a user's code ------------------------------------------------------------------------------------------

_imported: dict[str, str] = {}
"""File of a user's module → SHA-256 of the source that this process imported."""


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        # Not from a .pyc file: Python takes it for current where an edit kept the second and the size of the file.
        source = self.get_data(self.path)
        _imported.setdefault(self.path, hashlib.sha256(source).hexdigest())
        return self.source_to_code(source, self.path)


class _Finder:
    """Finds what Python's own finder finds, with loaders of our own for Keras and for a user's modules."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path, target)
        if spec and type(spec.loader) is SourceFileLoader and name == "keras":
            spec.loader = keras_layers.Loader(name, spec.loader.path)
        elif spec and type(spec.loader) is SourceFileLoader and not _is_library(spec.loader.path):
            if name not in sys.modules:  # no reload: what an import that failed has left does not run
                _imported.pop(spec.loader.path, None)
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _is_library(file: str) -> bool:
    return any(part in file for part in LIBRARIES)


def watch_imports() -> None:
    """Hash the source of a user's modules, and register our layers with Keras, now or when they are imported."""
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)
    if "keras" in sys.modules:
        keras_layers.register()
    for module in [*sys.modules.values()]:
        file = getattr(module, "__dict__", {}).get("__file__") or ""
        if os.path.isfile(file) and not _is_library(file):
            _hash(Path(file))


def _hash(file: Path, *, current: bool = True) -> str:
    """The hash of a file when it was imported. Raises UserError if it has changed since and must be `current`."""
    imported = _imported.get(str(file)) or _imported.setdefault(str(file), file_hash(file))
    if current and file_hash(file) != imported:
        raise UserError(f"{file}: changed after this process imported it; start Python again to use the new version")
    return imported


def source_hash(loaded: Any) -> str:
    """SHA-256 of the file that defines a function, a class or an object's class, for the identity of a run.

    Raises UserError for what has no file, such as a function typed into a notebook, and for a file that changed after
    its import.
    """
    file = _file(loaded)
    if file is None:
        raise UserError(f"{getattr(loaded, '__qualname__', loaded)}: defined in no file; put it in a module of its own")
    return _hash(file)


def _file(loaded: Any) -> Path | None:
    while hasattr(loaded, "func"):  # functools.partial
        loaded = loaded.func
    defined = inspect.unwrap(loaded) if inspect.isroutine(loaded) or inspect.isclass(loaded) else type(loaded)
    try:
        file = Path(inspect.getsourcefile(defined) or "")
    except (TypeError, OSError):  # built in, or a class typed into a notebook
        return None
    return file if file.is_file() or str(file) in _imported else None


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A "module:object" for other processes: they get this name, import the module and check its source.

    Attributes:
      spec, what: as `load` takes them.
      folder: the working directory of the process that named it.
      source: SHA-256 of the module's file and of the file that defines the object.
    """

    spec: str
    what: str
    folder: str
    source: str

    @classmethod
    def named(cls, spec: str, what: str) -> Plugin:
        """Import the object here, so that errors show before anything starts, and describe it. Raises UserError."""
        source = _source(spec, _import(spec, what), current=True)
        return cls(spec=spec, what=what, folder=os.getcwd(), source=source)

    def load(self) -> Any:
        """The object, in any process. Raises UserError where the module is missing or its source differs.

        A file that is edited later does not matter to a process that imported the right version before.
        """
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        loaded = _import(self.spec, self.what)
        if _source(self.spec, loaded, current=False) != self.source:
            raise UserError(
                f"{self.what} {self.spec}: a worker has another version of its source; copy it there, and start the "
                "worker again"
            )
        return loaded


def _source(spec: str, loaded: Any, *, current: bool) -> str:
    """One hash of the module that was named, of the file that defines the object, which may be another one, and of the
    files that the object names in `source_files`."""
    module = sys.modules[spec.partition(":")[0]]
    file = Path(getattr(module, "__file__", None) or "")  # a module that is built in has none
    files = [file, _file(loaded), *getattr(loaded, "source_files", ())]
    hashes = [_hash(file, current=current) for file in files if file and (file.is_file() or str(file) in _imported)]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()

"""The source of a user's modules: the code that runs is the code that was hashed.

From `import distill` on, a user's module is compiled from the bytes that are hashed, and its hash stays the same for
the life of the process. Where the file has changed since, `hash_of` refuses, so that no run begins with code that its
record would not name.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import sysconfig
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

from distill.common import keras_layers
from distill.common.errors import UserError
from distill.common.files import file_hash

OURS = os.path.join(Path(__file__).parents[1], "")
LIBRARIES = (sysconfig.get_path("stdlib"), OURS, "site-packages", "dist-packages", "<frozen")
"""Parts of the names of files that are not the user's."""

_imported: dict[str, str] = {}
"""File of a user's module → SHA-256 of the source that this process imported."""


class _Loader(SourceFileLoader):
    """Compiles a user's module from the source that it hashes."""

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
        if spec and type(spec.loader) is SourceFileLoader:
            file = spec.loader.path
            if name == "keras":
                spec.loader = keras_layers.Loader(name, file)
            elif not is_library(file):
                if name not in sys.modules:  # no reload: what an import that failed has left does not run
                    _imported.pop(file, None)
                spec.loader = _Loader(name, file)
        return spec


def is_library(file: str) -> bool:
    """Whether a module's file is none of the user's."""
    return any(part in file for part in LIBRARIES)


def watch_imports() -> None:
    """Hash the source of a user's modules, and register our layers with Keras, now or when they are imported."""
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)
    if "keras" in sys.modules:
        keras_layers.register()
    for module in [*sys.modules.values()]:
        file = getattr(module, "__dict__", {}).get("__file__") or ""
        if os.path.isfile(file) and not is_library(file):
            hash_of(Path(file))


def hash_of(file: Path, *, current: bool = True) -> str:
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
    file = file_of(loaded)
    if not is_known(file):
        raise UserError(f"{getattr(loaded, '__qualname__', loaded)}: defined in no file; put it in a module of its own")
    return hash_of(file)


def file_of(loaded: Any) -> Path:
    """The file that defines a function, a class or an object's class; an empty path where there is none."""
    while hasattr(loaded, "func"):  # functools.partial
        loaded = loaded.func
    defined = inspect.unwrap(loaded) if inspect.isroutine(loaded) or inspect.isclass(loaded) else type(loaded)
    try:
        return Path(inspect.getsourcefile(defined) or "")
    except (TypeError, OSError):  # built in, or a class typed into a notebook
        return Path()


def of_packages(*names: str) -> list[Path]:
    """The modules of these packages of distill, without their subpackages: as an object's `source_files`, all of them
    identify a run, because a list of files would miss the next one."""
    return [file for name in names for file in sorted(Path(OURS, name).glob("*.py"))]


def is_known(file: Path) -> bool:
    """Whether there is such a file, or was when this process imported it."""
    return file.is_file() or str(file) in _imported

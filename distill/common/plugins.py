"""A user's own code, named on the command line as "module:object", such as `my_engine:label`.

Only a flag, a config or a Python argument can name a module. A file that is read, such as a model or a record, never
makes Python import anything: what it names is compared, not loaded.

`load` and `Plugin.named` refuse a module whose file has changed since its import (`common/sources.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import sources
from distill.common.errors import UserError, first_line

SPEC = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""What "module:object" looks like: two dotted names of Python."""


def is_spec(name: object) -> bool:
    """Whether this is a text like "module:object"; `uct:200` and `C:\\games` are not."""
    return isinstance(name, str) and SPEC.fullmatch(name) is not None


def load(spec: str, what: str) -> Any:
    """Import the callable object that "module:object" names, with the working directory on the path.

    Args:
      spec: such as "my_engine:label"; the module is a file in the working directory or an installed package.
      what: the flag or argument that names it, the first words of every error: "--labeller".

    Raises UserError in one line for what is not such a name, a module that is missing or fails, with the file and line
    where it failed, an object that is missing or not callable, and a file that changed after its import.
    """
    return Plugin.named(spec, what).load()


def _import(spec: str, what: str, folder: str) -> Any:
    if not is_spec(spec):
        raise UserError(f"{what} {spec}: must be module:object, such as my_engine:label")
    # `distill COMMAND` starts without the working directory on the path, unlike `python -m`.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded = call(pkgutil.resolve_name, f"{what} {spec}", spec)
    if not callable(loaded):
        name = spec.partition(":")[2]
        raise UserError(f"{what} {spec}: {name} is a {type(loaded).__name__}, which cannot be called")
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
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not sources.is_library(frame.filename)]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {first_line(error)}{place}"


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
        source = _source(spec, _import(spec, what, os.getcwd()), current=True)
        return cls(spec=spec, what=what, folder=os.getcwd(), source=source)

    def load(self) -> Any:
        """The object, in any process. Raises UserError where the module is missing or its source differs.

        A file that is edited later does not matter to a process that imported the right version before.
        """
        loaded = _import(self.spec, self.what, self.folder)
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
    files = [file, sources.file_of(loaded), *getattr(loaded, "source_files", ())]
    hashes = [sources.hash_of(file, current=current) for file in files if sources.is_known(file)]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()

"""A user's own code, named on the command line as "module:object", such as `my_engine:label`.

Only a flag, a config or a Python argument can name a module. A file that is read, such as a model or a manifest, never
makes Python import anything: what it names is compared, not loaded.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

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
      what: the flag or argument that it was given for, the first words of every error: "--labeller".

    Raises UserError in one line for what is not such a name, a module that is missing or fails, with the file and line
    where it failed, and an object that is missing or not callable.
    """
    if not is_spec(spec):
        raise UserError(f"{what} {spec}: must be module:object, such as my_engine:label")
    # `distill COMMAND` starts without the working directory on the path, unlike `python -m`.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    name, _, path = spec.partition(":")
    try:
        found = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            hint = "; write it without .py" if name.endswith(".py") else ""
            raise UserError(f"{what} {spec}: no module {name} in {os.getcwd()} or on Python's path{hint}") from None
        raise UserError(f"{what} {spec}: importing {name} failed: {_last_line(error)}") from None
    try:
        found = operator.attrgetter(path)(found)
    except Exception as error:  # a module's own __getattr__ may raise any
        why = "" if isinstance(error, AttributeError) else f" ({_last_line(error)})"
        raise UserError(f"{what} {spec}: {name} has no {path}{why}") from None
    if not callable(found):
        raise UserError(f"{what} {spec}: {path} is a {type(found).__name__}, which cannot be called")
    return found


def call(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    """What a user's function returns; an exception in it becomes a UserError with the name, the error and its place."""
    try:
        return function(*arguments)
    except (UserError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{name}: {_last_line(error)}") from error


def _last_line(error: BaseException) -> str:
    """The last line of the traceback, with the file and line where the error was raised, if that is not here."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    # The last line of the user's own, which may have called a library that raised it.
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in LIBRARIES)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {first_line(error)}{place}"


def source_hash(found: Any) -> str:
    """SHA-256 of the file that defines a function, a class or an object's class, for the identity of a run.

    Raises UserError for what has no file, such as a function typed into a notebook.
    """
    file = _file(found)
    if file is None:
        raise UserError(f"{getattr(found, '__qualname__', found)}: defined in no file; put it in a module of its own")
    return file_hash(file)


def _file(found: Any) -> Path | None:
    while hasattr(found, "func"):  # functools.partial
        found = found.func
    defined = inspect.unwrap(found) if inspect.isroutine(found) or inspect.isclass(found) else type(found)
    try:
        file = Path(inspect.getsourcefile(defined) or "")
    except (TypeError, OSError):  # built in, or a class typed into a notebook
        return None
    return file if file.is_file() else None


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A "module:object" for other processes: they get this name, import the module and check its source.

    Attributes:
      spec, what: as `load` takes them.
      folder: the working directory of the process that was given the name.
      source: SHA-256 of the module's file and of the file that defines the object.
    """

    spec: str
    what: str
    folder: str
    source: str

    @classmethod
    def named(cls, spec: str, what: str) -> Plugin:
        """Import the object here, so that errors show before anything starts, and describe it. Raises UserError."""
        return cls(spec=spec, what=what, folder=os.getcwd(), source=_source(spec, load(spec, what)))

    def load(self) -> Any:
        """The object, in any process. Raises UserError where the module is missing or its source differs."""
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        found = load(self.spec, self.what)
        if _source(self.spec, found) != self.source:
            raise UserError(f"{self.what} {self.spec}: this process has another version of its source; copy it here")
        return found


def _source(spec: str, found: Any) -> str:
    """One hash of the module that was named and of the file that defines the object, which may be another one."""
    module = sys.modules[spec.partition(":")[0]]
    files = [Path(getattr(module, "__file__", None) or ""), _file(found)]  # a module that is built in has none
    return hashlib.sha256(" ".join(file_hash(file) for file in files if file and file.is_file()).encode()).hexdigest()

"""What every command shares: a dataclass becomes flags, errors become exit codes, work shows progress.

A command is a frozen dataclass of settings and a function `run(config) -> str`, whose text is the
last line printed. Precedence: the field's default < `--preset` < `--config file` < flag. A value of a preset may be a
function of all other settings. `--preset smoke` reads and writes below SMOKE_DATA and SMOKE_MODELS in every command,
each what the one before wrote, and never where a real run does.

Exit codes: 0 done; 2 a wrong flag value; 1 data or environment (one line); 130 or 143 after Ctrl-C
or SIGTERM, with the command that resumes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import os
import shlex
import signal
import sys
import threading
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from distill.common import streams
from distill.common.errors import Interrupted, UserError, first_line
from distill.common.machine import lacks_memory
from distill.common.progress import say

Config = TypeVar("Config")
Presets: TypeAlias = Mapping[str, Mapping[str, Any] | str]
"""Values by the name of the preset; a text in place of values is the name that this preset has today."""

SMOKE_DATA, SMOKE_MODELS = Path("data/smoke"), Path("models/smoke")


_had_its_effect: set[str] = set()
"""Flags that the line which resumes leaves out; of this process's command, of which there is one at a time."""


def had_its_effect(flag: str) -> None:
    """Say that a flag has done what it does once: who goes on after an interruption must not do it again."""
    _had_its_effect.add(flag)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (--help lists the flags)", file=sys.stderr)
        raise SystemExit(2)


def setting(default: Any, help: str, positional: bool = False, former: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A config field with its sentence for `--help`; a positional tuple takes the words without a flag.

    `former` maps values by their names of an earlier release to those of today.
    """
    if isinstance(default, (list, dict)):
        raise TypeError("defaults are immutable")
    return dataclasses.field(default=default, metadata={"help": help, "positional": positional, "former": former})


def parse(
    config_class: type[Config], arguments: Sequence[str] | None, presets: Presets | None = None, prog: str | None = None
) -> Config:
    """The config that flags, a preset and a JSON file describe; exits with 2 on a wrong value.

    Every field becomes a flag. A field of type bool becomes `--name` / `--no-name`, a tuple takes
    several words, a Literal lists its choices, and `X | None` accepts "none".
    """
    hints = typing.get_type_hints(config_class)
    sentence = "" if sys.flags.optimize > 1 else config_class.__doc__ or ""  # python -OO has no docstrings
    parser = _Parser(prog=prog, description=sentence.strip().split("\n")[0], allow_abbrev=False)
    if presets:
        former = {name: value for name, value in presets.items() if isinstance(value, str)}
        choices = sorted(presets.keys() - former.keys())
        kind = _reader(str, False, "--preset", former)
        parser.add_argument("--preset", choices=choices, type=kind, help="a named set of values")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a JSON file of values, as stored beside outputs")
    for field in dataclasses.fields(config_class):  # type: ignore[arg-type]
        _add_flag(parser, field, hints[field.name])
    for word in arguments or ():
        if not word.isprintable() and any("\udc80" <= character <= "\udcff" for character in word):
            shown = word.encode("ascii", "replace").decode()
            parser.error(f"{shown} cannot be read in this locale; set LC_ALL=C.UTF-8, or PYTHONUTF8=1")
    given = vars(parser.parse_args(arguments))
    values: dict[str, Any] = dict((presets or {}).get(given.pop("preset", None) or "", {}))  # type: ignore[arg-type]
    if path := given.pop("config", None):
        values |= _read_config(parser, config_class, hints, path)
    values |= {name: value for name, value in given.items() if value is not None}
    values = {name: None if value is _NONE else value for name, value in values.items()}
    settings = {field.name: field.default for field in dataclasses.fields(config_class)} | values  # type: ignore[arg-type]
    values = {name: value(settings) if callable(value) else value for name, value in values.items()}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    required = [field.name for field in dataclasses.fields(config_class) if field.default is dataclasses.MISSING]  # type: ignore[arg-type]
    if missing := [_flag(name) for name in required if name not in values]:
        parser.error(f"needs {', '.join(missing)}")
    try:
        return config_class(**values)
    except (ValueError, TypeError) as error:
        parser.error(str(error))


class _None:
    """Stands for an explicit "none" on the command line, where None means "not given"."""

    def __repr__(self) -> str:
        return "none"


_NONE = _None()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _kinds(hint: Any) -> tuple[Any, bool]:
    """The type itself and whether None may stand in its place."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(kind for kind in typing.get_args(hint) if kind is not type(None)), True
    return hint, False


def _add_flag(parser: argparse.ArgumentParser, field: dataclasses.Field[Any], hint: Any) -> None:
    shown = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    text = field.metadata.get("help", "") + ("" if shown in (dataclasses.MISSING, None, "") else f" [{shown}]")
    options: dict[str, Any] = {"help": text.replace("%", "%%"), "default": None}
    kind, optional = _kinds(hint)
    former = field.metadata.get("former", {})
    if field.metadata.get("positional"):
        words = {"nargs": "*", "type": typing.get_args(kind)[0], "default": argparse.SUPPRESS}
        parser.add_argument(field.name, metavar=field.name.upper(), help=options["help"], **words)
        return
    if kind is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif typing.get_origin(kind) is typing.Literal:
        choices = typing.get_args(kind)
        options["choices"] = (*choices, _NONE) if optional else choices
        options["type"] = _reader(type(choices[0]), optional, _flag(field.name), former)
        options["metavar"] = "{" + ",".join(map(str, options["choices"])) + "}"
    elif typing.get_origin(kind) is tuple:
        items = typing.get_args(kind)
        length = "*" if items[-1] is Ellipsis else len(items)
        options |= {"nargs": length, "type": _reader(items[0], False), "metavar": field.name.upper()}
    else:
        options |= {"type": _reader(kind, optional), "metavar": field.name.upper()}
    parser.add_argument(_flag(field.name), **options)


_NAMES = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}


def _reader(
    kind: Callable[[str], Any], optional: bool, flag: str = "", former: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Turns a word of the command line into a value; argparse names what it expected by `__name__`."""

    def convert(text: str) -> Any:
        return _NONE if optional and text.lower() == "none" else kind(_current(flag, text, former))

    convert.__name__ = _NAMES.get(typing.cast(type, kind), "value")
    kind = _finite if kind is float else kind
    return convert


def _finite(value: Any) -> float:
    """The value as a finite float: nan and infinity mean nothing to any setting. Raises ValueError."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a number")
    return number


def _current(flag: str, value: Any, former: Mapping[str, str]) -> Any:
    """A value by its name of today; said where it was given by its former one."""
    if not isinstance(value, str) or value not in former:
        return value
    say(f"{flag} {value} is called {former[value]} now; the old name goes with the next release")
    return former[value]


def _read_config(parser: _Parser, config_class: Any, hints: Mapping[str, Any], path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
    except (OSError, ValueError, RecursionError) as error:
        parser.error(f"--config {path}: {error}")
    if not isinstance(stored, dict):
        parser.error(f"--config {path}: not a JSON object")
    if unknown := sorted(set(stored) - set(hints)):
        parser.error(f"--config {path}: no such setting: {', '.join(unknown)}")
    former = {field.name: field.metadata.get("former", {}) for field in dataclasses.fields(config_class)}
    values = {}
    for name, value in stored.items():
        try:
            values[name] = _converted(_current(_flag(name), value, former[name]), hints[name])
        except (ValueError, OverflowError) as error:
            parser.error(f"--config {path}: {name}: {json.dumps(value)} is not {error}")
    return values


def _converted(value: Any, hint: Any) -> Any:
    """A value as the field's type: of a JSON file, or given in Python. Raises ValueError saying what was expected."""
    kind, optional = _kinds(hint)
    if optional and value is None:
        return None
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if typing.get_origin(kind) is typing.Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise ValueError(f"one of {', '.join(map(str, choices))}")
        return choices[choices.index(value)]
    if typing.get_origin(kind) is tuple:
        items = typing.get_args(kind)
        length = None if items[-1] is Ellipsis else len(items)
        if not isinstance(value, (list, tuple)) or length not in (None, len(value)):
            raise ValueError("a list" + (f" of {length}" if length else ""))
        return tuple(_converted(entry, items[0]) for entry in value)
    accepted = {float: (int, float), Path: (str, os.PathLike), str: (str, os.PathLike)}.get(kind, (kind,))
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"a {_NAMES.get(kind, 'value')}" if kind is not bool else _NAMES[bool])
    if kind is str and isinstance(value, os.PathLike) and len(Path(value).parts) == 1:
        value = os.path.join(os.curdir, value)  # as a text without a slash it would be a name first
    return _finite(value) if kind is float else kind(value)


class Settings:
    """The base of config dataclasses, for who makes one in Python: each field gets the type that it is declared with.

    A NumPy number becomes a plain one, a text a Path, a list a tuple, so that equal settings are stored and hashed
    alike. Raises ValueError naming the flag for a value of another kind.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        hints = _hints(kind)
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            try:
                converted = _converted(value, hints[field.name])
            except (ValueError, OverflowError) as error:
                raise ValueError(f"{_flag(field.name)} {value} must be {error}") from None
            object.__setattr__(self, field.name, converted)


@functools.cache
def _hints(config_class: Any) -> dict[str, Any]:
    return typing.get_type_hints(config_class)


def as_json(config: Any) -> dict[str, Any]:
    """A config as plain JSON values, in the form `--config` reads."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value)
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    return {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def check(condition: bool, name: str, value: Any, requirement: str) -> None:
    """Raise ValueError naming the flag, its value and what it must be, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{_flag(name)} {value} must be {requirement}")


def check_seed(seed: int) -> None:
    """Raise ValueError for a seed that has no place in 64 bits."""
    check(0 <= seed < 2**64, "seed", seed, "from 0 to 2^64 - 1")


def check_least(config: object, **least: float) -> None:
    """Raise ValueError unless each of these settings is None, or finite and not less than the number here."""
    for name, number in least.items():
        value = getattr(config, name)
        check(
            value is None or number <= value < math.inf, name, value, f"at least {number:g}" if number else "0 or more"
        )


@dataclass(frozen=True)
class Command(Generic[Config]):
    """One command, the module `stage` of a package, whose `main` it is. Called with words, it returns the exit code."""

    stage: str
    config_class: type[Config]
    run: Callable[[Config], str]
    presets: Presets | None = None
    package: str = "distill"

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Parse, run and report; without words given the process's own are taken."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        return streams.guarded(lambda: self._call(words, ends_process=arguments is None))

    def _call(self, words: list[str], ends_process: bool) -> int:
        name = f"{self.package} {self.stage}"
        _had_its_effect.clear()
        try:
            config = parse(self.config_class, words, self.presets, prog=name)
        except SystemExit as stop:
            return int(stop.code or 0)
        # Python lets the main thread alone handle signals; a command in another thread leaves them to its caller.
        numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        previous = {number: signal.signal(number, _interrupt) for number in numbers}
        try:
            print(self.run(config), flush=True)
        except UserError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            if isinstance(error, BrokenPipeError) and streams.unread():
                raise
            where = f"{error.filename}: " if error.filename else ""
            print(f"{name}: {where}{error.strerror or error}", file=sys.stderr)
            return 1
        except Interrupted as stop:
            for number in previous:  # another signal would tear down an end that takes seconds, and leave semaphores
                signal.signal(number, signal.SIG_IGN)
            if ends_process:  # so they stay ignored
                previous.clear()
            again = [word for word in words if word not in _had_its_effect]
            again += [f"--no-{word[2:]}" for word in _had_its_effect if word not in words]  # it came from a file
            line = shlex.join(["python", "-m", f"{self.package}.{self.stage}", *again])
            print(f"\nstopped by {stop}; to go on: {line}", file=sys.stderr)
            return stop.code
        except Exception as error:
            if not lacks_memory(error):
                raise
            line = f"{type(error).__name__}: {first_line(error)}"
            print(f"{name}: not enough memory ({line}); free some, or raise the limit (ulimit -v)", file=sys.stderr)
            return 1
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        return 0


def _interrupt(number: int, _frame: Any) -> NoReturn:
    raise Interrupted(number)

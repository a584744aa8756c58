"""Commands from dataclasses: fields become flags, errors become exit codes, `--help` is grouped.

A command is a frozen dataclass of settings, derived from `Settings`, and a function `run(config) -> str` whose text is
the last line printed:

    @dataclass(frozen=True, kw_only=True)
    class PlayConfig(cli.Settings):
        "Play a game."
        games: int = cli.setting(100, "games to play")
        stages: tuple[Stage, ...] = cli.table((), "searches by share of the run")  # Stage: another Settings

    main = cli.Command("play", PlayConfig, run, {"smoke": cli.smoke(games=2)})

Precedence: default < `--preset` < `--config file` < flag. A preset's value may be a function of all other settings.

Exit codes: 0 success; 2 a wrong flag value; 1 data or environment (one line); 130 or 143 after Ctrl-C or SIGTERM, with
the command that resumes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import os
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, TypeAlias, TypeVar

from distill.common import streams
from distill.common.errors import Interrupted, UserError, first_line
from distill.common.machine import lacks_memory

SMOKE_DATA, SMOKE_MODELS = Path("data/smoke"), Path("models/smoke")
"""Where `--preset smoke` reads and writes in every command, so that real runs stay untouched."""

GROUPS = ("flags", "games", "search", "network", "data", "learning", "evaluation", "schedule", "machine")
"""Headings of `--help`, in their order. The first has what most people set."""

HELP_COLUMN, LINE_WIDTH = 26, 100
"""Where the meaning of a flag begins, and the longest line of `--help`, in characters."""


# Settings -------------------------------------------------------------------------------------------------------------


def setting(
    default: Any, help: str, *, group: str | None = None, advanced: bool = False, positional: bool = False
) -> Any:
    """A field of a config: one flag.

    Args:
      help: one line: meaning, unit, range, effect; the parser adds the default.
      group: its heading in `--help`, one of GROUPS; None: that of its class.
      advanced: listed by `--help-all` alone.
      positional: a tuple that takes the words without a flag.
    """
    if isinstance(default, list | dict):
        raise TypeError("defaults are immutable")
    metadata = {"help": help, "group": group, "advanced": advanced, "positional": positional}
    return dataclasses.field(default=default, metadata=metadata)


def table(default: Any, help: str) -> Any:
    """A field without a flag, such as `tuple[Row, ...]` with rows that are `Settings`.

    A preset holds rows, or a `--config` file a list of JSON objects. `--help-all` lists the columns.
    """
    return dataclasses.field(default=default, metadata={"help": help, "table": True})


class Settings:
    """The base of config dataclasses and of the rows of their tables: every field gets its declared type.

    A NumPy number becomes a plain one, a text a Path, a list a tuple, an object of a table a row, so that equal
    settings are stored and hashed alike. Raises ValueError naming the flag for a value of another type.

    Args of a subclass:
      group: heading of its own fields in `--help`.
      shown: its own fields that `--help` lists; None: all. `--help-all` lists the others, too.
    """

    _group: ClassVar[str] = GROUPS[0]
    _shown: ClassVar[Collection[str] | None] = None

    def __init_subclass__(cls, group: str = GROUPS[0], shown: Collection[str] | None = None) -> None:
        cls._group, cls._shown = group, shown

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for field in dataclasses.fields(kind):
            value = getattr(self, field.name)
            try:
                converted = _converted(value, _hints(kind)[field.name])
            except ValueError as error:
                raise ValueError(f"{_flag(field.name)} {value} must be {error}") from None
            object.__setattr__(self, field.name, converted)


@functools.cache
def _hints(config_class: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(config_class)
    return {field.name: hints[field.name] for field in dataclasses.fields(config_class)}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _kinds(hint: Any) -> tuple[list[Any], bool]:
    """The types that a value may have, without None, and whether it may be None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = typing.get_args(hint)
        return [kind for kind in kinds if kind is not type(None)], type(None) in kinds
    return [hint], False


_NAMES = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
_METAVARS = {int: "N", float: "X", Path: "PATH"}


def _converted(value: Any, hint: Any) -> Any:
    """A value as the field's type, from a flag, a JSON file or Python. Raises ValueError saying what was expected."""
    kinds, optional = _kinds(hint)
    if optional and value is None:
        return None
    errors = []
    for kind in kinds:
        try:
            return _of_kind(value, kind)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def _of_kind(value: Any, kind: Any) -> Any:
    """The same for one type of a union."""
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
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise ValueError("a list" + (f" of {length}" if length else ""))
        return tuple(_converted(entry, items[0]) for entry in value)
    if dataclasses.is_dataclass(kind):
        return _row(value, kind)
    accepted = {float: (int, float), Path: (str, os.PathLike), str: (str, os.PathLike)}.get(kind, (kind,))
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"a {_NAMES[kind]}" if kind is not bool else _NAMES[bool])
    if kind is str and isinstance(value, os.PathLike) and len(Path(value).parts) == 1:
        value = os.path.join(os.curdir, value)  # as a text without a slash it would be a name first
    return _finite(value) if kind is float else kind(value)


def _row(value: Any, kind: Any) -> Any:
    if isinstance(value, kind):
        return value
    expected = f"a list of rows with {', '.join(_hints(kind))}"
    if not isinstance(value, Mapping):
        raise ValueError(expected)
    try:
        return kind(**value)
    except (TypeError, ValueError) as error:  # a missing or unknown column, a wrong value
        raise ValueError(f"{expected} ({str(error).removeprefix('--')})") from None


def _finite(value: Any) -> float:
    """The value as a finite float: no setting takes nan or infinity. Raises ValueError."""
    try:
        number = float(value)
    except OverflowError:  # a whole number of a JSON file
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a number")
    return number


def as_json(config: Any) -> dict[str, Any]:
    """A config as plain JSON values, which `--config` reads."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            return as_json(value)
        if isinstance(value, Path):
            return str(value)
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    return {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def check(condition: bool, name: str, value: Any, requirement: str) -> None:
    """Raise ValueError naming the flag, its value and what it must be, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{_flag(name)} {value} must be {requirement}")


def check_seed(seed: int) -> None:
    """Raise ValueError unless a seed fits 64 bits."""
    check(0 <= seed < 2**64, "seed", seed, "from 0 to 2^64 - 1")


def check_least(config: object, **least: float) -> None:
    """Raise ValueError unless each of these settings is None, or finite and at least the number given here."""
    for name, number in least.items():
        value = getattr(config, name)
        wanted = f"at least {number:g}" if number else "0 or more"
        check(value is None or number <= value < math.inf, name, value, wanted)


# From words to a config -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preset:
    """A named set of values, with the sentence that `--help` shows."""

    description: str
    values: Mapping[str, Any]


Presets: TypeAlias = Mapping[str, Preset]
Config = TypeVar("Config", bound=Settings)


def smoke(**values: Any) -> Preset:
    """The preset `smoke` of a command."""
    return Preset("a run of seconds, in data/smoke and models/smoke", values)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (--help lists the flags)", file=sys.stderr)
        raise SystemExit(2)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN, width=_width())

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, argparse.BooleanOptionalAction):
            return action.option_strings[0].replace("--", "--[no-]", 1)
        return super()._format_action_invocation(action)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, LINE_WIDTH) - 2


def parse(
    config_class: type[Config], words: Sequence[str], presets: Presets | None = None, prog: str | None = None
) -> Config:
    """The config that flags, a preset and a JSON file describe; exits with 2 on a wrong value.

    A field of type bool becomes `--name` / `--no-name`, a tuple takes several words, a Literal lists its choices, and
    `X | None` accepts "none".
    """
    presets = presets or {}
    parser = _parser(config_class, presets, prog, lists_all="--help-all" in words)
    for word in words:
        if not word.isprintable() and any("\udc80" <= character <= "\udcff" for character in word):
            shown = word.encode("ascii", "replace").decode()
            parser.error(f"{shown} cannot be read in this locale; set LC_ALL=C.UTF-8, or PYTHONUTF8=1")
    given = vars(parser.parse_args(words))
    values = dict(presets[given.pop("preset")].values) if "preset" in given else {}
    fields = dataclasses.fields(config_class)  # type: ignore[arg-type]
    try:
        if "config" in given:
            values |= _read_config(given.pop("config"), {field.name for field in fields})
        values |= given
        if missing := [_flag(f.name) for f in fields if f.default is dataclasses.MISSING and f.name not in values]:
            raise ValueError(f"needs {', '.join(missing)}")
        settings = {field.name: field.default for field in fields} | values
        return config_class(**{name: value(settings) if callable(value) else value for name, value in values.items()})
    except ValueError as error:
        parser.error(str(error))


def _read_config(path: Path, names: set[str]) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"--config {path}: {error}") from None
    if not isinstance(stored, dict):
        raise ValueError(f"--config {path}: not a JSON object")
    stored.pop("kind", None)  # of the folder that it was stored in
    if unknown := sorted(stored.keys() - names):
        raise ValueError(f"--config {path}: no such setting: {', '.join(unknown)}")
    return stored


def _parser(config_class: Any, presets: Presets, prog: str | None, lists_all: bool) -> _Parser:
    fields, hints = dataclasses.fields(config_class), _hints(config_class)
    tables = [field for field in fields if "table" in field.metadata]
    flags = [field for field in fields if field not in tables]
    rows = [_table(field, hints[field.name]) for field in tables if lists_all]
    listed = [
        _listed("presets:", [(name, each.description) for name, each in presets.items()]),
        _listed("only in a preset or a --config file, as a list of objects:", rows),
    ]
    words = "".join(f" [{field.name.upper()} ...]" for field in flags if field.metadata["positional"])
    sentence = (config_class.__doc__ or "").strip().split("\n")[0]  # none under python -OO
    parser = _Parser(
        prog=prog,
        usage=f"{prog}{words} [flags]",
        description=textwrap.fill(sentence, _width()),
        epilog="\n\n".join(filter(None, listed)),
        formatter_class=_Formatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    groups = {name: parser.add_argument_group(name) for name in GROUPS}
    general = groups[GROUPS[0]]
    if presets:
        general.add_argument("--preset", choices=sorted(presets), metavar="NAME", help="a set of values, listed below")
    more = len(tables)
    for field in flags:
        owner = next(each for each in config_class.__mro__ if field.name in vars(each).get("__annotations__", ()))
        is_shown = owner._shown is None or field.name in owner._shown
        hidden = (field.metadata["advanced"] or not is_shown) and not lists_all
        more += hidden
        _add_flag(groups[field.metadata["group"] or owner._group], field, hints[field.name], hidden)
    general.add_argument("--config", type=Path, metavar="PATH", help="a JSON file of values, as stored beside outputs")
    general.add_argument("--help", "-h", action="help", help="show this")
    all_of_them = f"show {more} more settings" if more and not lists_all else argparse.SUPPRESS
    general.add_argument("--help-all", action="help", help=all_of_them)
    return parser


def _add_flag(group: Any, field: dataclasses.Field[Any], hint: Any, hidden: bool) -> None:
    (kind, *_), optional = _kinds(hint)
    help = argparse.SUPPRESS if hidden else _help(field).replace("%", "%%")
    if field.metadata["positional"]:
        (item, *_) = typing.get_args(kind)
        group.add_argument(field.name, nargs="*", type=item, metavar=field.name.upper(), help=help)
    elif kind is bool:
        group.add_argument(_flag(field.name), action=argparse.BooleanOptionalAction, help=help)
    elif typing.get_origin(kind) is tuple:
        items = typing.get_args(kind)
        length = "*" if items[-1] is Ellipsis else len(items)
        reader = _reader(items[0], False)
        group.add_argument(_flag(field.name), nargs=length, type=reader, metavar=_metavar(items[0]), help=help)
    else:
        group.add_argument(_flag(field.name), type=_reader(kind, optional), metavar=_metavar(kind), help=help)


def _help(field: dataclasses.Field[Any]) -> str:
    """The sentence of a field with its default, where that says something."""
    shown = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    if isinstance(shown, bool):
        shown = "on" if shown else "off"
    return field.metadata["help"] + ("" if shown in (dataclasses.MISSING, None, "") else f" [{shown}]")


def _metavar(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "{" + ",".join(map(str, typing.get_args(kind))) + "}"
    return _METAVARS.get(kind, "NAME")


def _reader(kind: Any, optional: bool) -> Callable[[str], Any]:
    """Turns a word of the command line into a value; argparse names what it expected by `__name__`."""
    if typing.get_origin(kind) is typing.Literal:
        kind = type(typing.get_args(kind)[0])

    def convert(text: str) -> Any:
        if optional and text.lower() == "none":
            return None
        return _finite(text) if kind is float else kind(text)

    convert.__name__ = _NAMES[kind]
    return convert


def _table(field: dataclasses.Field[Any], hint: Any) -> tuple[str, str]:
    """The name of a table and what its rows mean, for `--help-all`."""
    row = typing.get_args(hint)[0]
    columns = (f'"{name}": {_metavar(_kinds(kind)[0][0])}' for name, kind in _hints(row).items())
    return field.name, f"{field.metadata['help']}: {{{', '.join(columns)}}}"


def _listed(title: str, entries: Sequence[tuple[str, str]]) -> str:
    """A part of `--help` below the flags: a line for each name."""
    column = max((len(name) + 4 for name, _ in entries), default=0)
    lines = [title] if entries else []
    for name, text in entries:
        start, rest = f"  {name}".ljust(column), " " * column
        lines.append(textwrap.fill(text, _width(), initial_indent=start, subsequent_indent=rest))
    return "\n".join(lines)


# Running --------------------------------------------------------------------------------------------------------------


_done: set[str] = set()
"""Flags that the line which resumes leaves out. A process runs one command at a time."""


def omit_when_resuming(flag: str) -> None:
    """Declare that a flag such as --restart has had its effect: the command that resumes must not repeat it."""
    _done.add(flag)


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
        _done.clear()
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
            again = [word for word in words if word not in _done]
            again += [f"--no-{word[2:]}" for word in _done if word not in words]  # it came from a file
            line = shlex.join(["python", "-m", f"{self.package}.{self.stage}", *again])
            print(f"\nstopped by {stop}; to resume: {line}", file=sys.stderr)
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

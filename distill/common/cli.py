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

Exit codes: 0 success; 2 a wrong flag value; 1 data or environment (one line); 130, 143 or 129 after Ctrl-C, SIGTERM or
a closed terminal, with the command that resumes (`boundary.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from distill.common import boundary
from distill.common.settings import (  # commands call them cli.setting and so on
    GROUPS,
    Settings,
    as_json,
    check,
    check_seed,
    check_within,
    flag,
    hints,
    kinds,
    setting,
    table,
)  # fmt: skip

__all__ = [
    "Command", "Preset", "Presets", "Settings", "as_json", "check", "check_seed", "check_within",
    "parse", "setting", "smoke", "table",
]  # fmt: skip

SMOKE_DATA, SMOKE_MODELS = Path("data/smoke"), Path("models/smoke")
"""Where `--preset smoke` reads and writes in every command, so that real runs stay untouched."""

METAVARS = {int: "N", float: "X", Path: "PATH"}
"""What stands for a value of a type in `--help`."""
HELP_COLUMN, LINE_WIDTH = 26, 100
"""Where the meaning of a flag begins, and the longest line of `--help`, in characters."""


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
    return Preset("a test of seconds, on data/smoke and models/smoke", values)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (--help lists the flags)", file=sys.stderr)
        raise SystemExit(2)


def _width() -> int:
    return max(20, min(shutil.get_terminal_size().columns, LINE_WIDTH) - 2)


def parse(
    config_class: type[Config], words: Sequence[str], presets: Presets | None = None, prog: str | None = None
) -> Config:
    """The config that flags, a preset and a JSON file describe; exits with 2 on a wrong value.

    A field of type bool becomes `--name` / `--no-name`, a tuple takes several words, a Literal lists its choices, and
    `X | None` accepts "none".
    """
    presets = presets or {}
    parser = _parser(config_class, presets, prog, lists_all="--help-all" in words)
    given = vars(parser.parse_args(words))
    # Precedence: preset, then file, then flags; defaults fill what none of them names.
    values = dict(presets[given.pop("preset")].values) if "preset" in given else {}
    fields = dataclasses.fields(config_class)  # type: ignore[arg-type]
    try:
        if "config" in given:
            values |= _read_config(given.pop("config"), {field.name for field in fields})
        values |= given
        if missing := [flag(f.name) for f in fields if f.default is dataclasses.MISSING and f.name not in values]:
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
    stored = stored["settings"] if isinstance(stored.get("settings"), dict) else stored  # of a run's record
    if unknown := sorted(stored.keys() - names):
        raise ValueError(f"--config {path}: no such setting: {', '.join(unknown)}")
    return stored


def _parser(config_class: Any, presets: Presets, prog: str | None, lists_all: bool) -> _Parser:
    fields, types_of = dataclasses.fields(config_class), hints(config_class)
    tables = [field for field in fields if "table" in field.metadata]
    flags = [field for field in fields if field not in tables]
    rows = {
        field.name: f"{field.metadata['help']}: {', '.join(hints(typing.get_args(types_of[field.name])[0]))}"
        for field in tables
        if lists_all
    }
    listed = [
        _listed("presets:", {name: preset.description for name, preset in presets.items()}),
        _listed("only in a preset or a --config file, lists of objects with these entries:", rows),
    ]
    words = "".join(f" [{field.name.upper()} ...]" for field in flags if field.metadata["positional"])
    sentence = (config_class.__doc__ or "").strip().split("\n")[0]  # none under python -OO
    parser = _Parser(
        prog=prog,
        usage=f"{prog}{words} [flags]",
        description=textwrap.fill(sentence, _width()),
        epilog="\n\n".join(filter(None, listed)),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=HELP_COLUMN, width=_width()
        ),
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
        # The class that declares a field decides its group, and whether `--help` shows it.
        owner = next(each for each in config_class.__mro__ if field.name in inspect.get_annotations(each))
        is_shown = owner._shown is None or field.name in owner._shown
        hidden = (field.metadata["advanced"] or not is_shown) and not lists_all
        more += hidden
        _add_flag(groups[field.metadata["group"] or owner._group], field, types_of[field.name], hidden)
    general.add_argument("--config", type=Path, metavar="PATH", help="a JSON file of values, such as a run's _run.json")
    general.add_argument("--help", "-h", action="help", help="show this")
    all_of_them = f"show {more} more settings" if more and not lists_all else argparse.SUPPRESS
    general.add_argument("--help-all", action="help", help=all_of_them)
    return parser


def _add_flag(group: Any, field: dataclasses.Field[Any], hint: Any, hidden: bool) -> None:
    """One flag; `Settings` turns its text into a value."""
    kind = kinds(hint)[0]
    help = argparse.SUPPRESS if hidden else _help(field).replace("%", "%%")
    if field.metadata["positional"]:
        group.add_argument(field.name, nargs="*", metavar=field.name.upper(), help=help)
    elif kind is bool:
        group.add_argument(flag(field.name), action=argparse.BooleanOptionalAction, help=help)
    elif typing.get_origin(kind) is tuple:
        items = typing.get_args(kind)
        length = "*" if items[-1] is Ellipsis else len(items)
        group.add_argument(flag(field.name), nargs=length, metavar=_metavar(items[0]), help=help)
    else:
        group.add_argument(flag(field.name), metavar=_metavar(kind), help=help)


def _help(field: dataclasses.Field[Any]) -> str:
    """The sentence of a field with its default, where that says something."""
    shown = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    if isinstance(shown, bool):
        shown = "on" if shown else "off"
    return field.metadata["help"] + ("" if shown in (dataclasses.MISSING, None, "") else f" [{shown}]")


def _metavar(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "{" + ",".join(map(str, typing.get_args(kind))) + "}"
    return METAVARS.get(kind, "NAME")


def _listed(title: str, entries: Mapping[str, str]) -> str:
    """A part of `--help` below the flags."""
    indent = " " * (max(map(len, entries), default=0) + 4)
    lines = [
        textwrap.fill(text, _width(), initial_indent=f"  {name}".ljust(len(indent)), subsequent_indent=indent)
        for name, text in entries.items()
    ]
    return "\n".join([title, *lines]) if lines else ""


# Running --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command(Generic[Config]):
    """A command: `main` of the module `stage` in a package. Called with words, it returns the exit code.

    Attributes:
      config_class, presets: what the words are parsed into.
      run: does the work and returns the last line to print.
      resumes: whether the command, started again after Ctrl-C, keeps what it had done.
    """

    stage: str
    config_class: type[Config]
    run: Callable[[Config], str]
    presets: Presets | None = None
    package: str = "distill"
    resumes: bool = True

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Parse, run and report; the default words are those of this process."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        name, ends = f"{self.package} {self.stage}", arguments is None
        call = partial(self._call, name, words)
        return boundary.guarded(call, name, words, resumes=self.resumes, ends_process=ends)

    def _call(self, name: str, words: list[str]) -> int:
        try:
            config = parse(self.config_class, words, self.presets, prog=name)
        except SystemExit as stop:
            return int(stop.code or 0)
        print(self.run(config), flush=True)
        return 0

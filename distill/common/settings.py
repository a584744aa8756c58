"""Settings: nested pydantic models by topic, set from Python or by presets, files, `--set` and flags.

    class Search(Settings):
        "How a position is searched."
        simulations: int = Field(100, ge=1)
        "simulations of each search"

    class PlayConfig(Settings):
        "Play a game."
        command_line: ClassVar[CommandLine] = CommandLine(flags=("moves", "search.simulations"))
        moves: str = Field("", title="MOVES")
        "moves of a game to continue"
        search: Search = Search()

A field declares its type and its range; its docstring is its sentence in `--help`, in which `title` stands for the
value. A flag has the end of a path as its name, `--simulations`; any setting can be set by its path:
`--set search.exploration=1.25`.

Precedence: defaults < `--preset` < `--config` < `--set` < flags.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

METAVARS = {int: "N", float: "X", Path: "FOLDER"}
"""What stands for a value of a type in `--help`, where its field has no title."""
HELP_COLUMN = 26
"""Where the meaning of a flag begins in `--help`, in characters."""


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """Which settings are flags, and what else `--help` shows.

    Attributes:
      flags: paths of at most 20 settings, such as "out" and "search.simulations".
      words: the setting that takes the words without a flag.
      examples: the words of two calls.
      page: the page of the documentation.
    """

    flags: Sequence[str] = ()
    words: str = ""
    examples: Sequence[str] = ()
    page: str = "README.md"


class Settings(BaseModel):
    """The base of all settings, which are immutable, hashable, and checked by the declarations of their fields.

    Raises pydantic's ValidationError, a ValueError, for a wrong value; `build` makes one line of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
    command_line: ClassVar[CommandLine] = CommandLine()

    @field_validator("*", mode="before")
    @classmethod
    def _check_paths(cls, value: Any, info: ValidationInfo) -> Any:
        if "Path" in str(cls.model_fields[str(info.field_name)].annotation):
            for path in value if isinstance(value, list | tuple) else [value]:
                if isinstance(path, str) and ("://" in path or not path.strip()):  # "" would be the current folder
                    raise ValueError("must be a path on this machine, not a URL or empty")
        return value

    def replace(self, **changes: Any) -> Self:
        """A copy with other values, checked like a new one."""
        return type(self)(**(dict(self) | changes))


Config = TypeVar("Config", bound=Settings)
Values: TypeAlias = Mapping[str, Any]
"""Settings by path, nested, or by the end of a path if it is a flag or unique: {"search.votes": 3} is {"votes": 3}."""


def _as_text(value: Any) -> str:
    if isinstance(value, os.PathLike) and len(Path(value).parts) == 1:
        return os.path.join(os.curdir, value)  # a text without a slash would be a name first
    if isinstance(value, str | os.PathLike) and os.fspath(value).strip():
        return os.fspath(value)
    raise ValueError("must be a name or a path")


NameOrPath = Annotated[str, PlainValidator(_as_text)]
"""A name or a path; from Python also a Path."""
Seed = Annotated[int, Field(ge=0, lt=2**64)]


@dataclass(frozen=True)
class Preset:
    """Values by name, with the sentence that `--help` shows. A value may be a function of the config without it."""

    description: str
    values: Values


Presets: TypeAlias = Mapping[str, Preset]


def smoke(**values: Any) -> Preset:
    """The preset `smoke` of a command."""
    return Preset("a test of seconds, on data/smoke and models/smoke", values)


def as_json(settings: Settings) -> dict[str, Any]:
    """Settings as nested JSON values, which `--config` reads."""
    return settings.model_dump(mode="json")


def by_path(values: Values, prefix: str = "") -> dict[str, Any]:
    """Nested JSON values by their paths."""
    paths: dict[str, Any] = {}
    for name, value in values.items():
        is_object = isinstance(value, Mapping) and value
        paths |= by_path(value, f"{prefix}{name}.") if is_object else {prefix + name: value}
    return paths


# From values to a config ----------------------------------------------------------------------------------------------


def build(config_class: type[Config], *layers: Values) -> Config:
    """The config of these values; later layers override earlier ones, and another network drops its arguments.

    Raises ValueError for a wrong value, in one line that begins with its flag or its path.
    """
    fields, flags = fields_of(config_class), config_class.command_line.flags
    # The defaults of an object's field may differ from those of its class.
    defaults = {path: default_of(config_class, path) for path in fields if "." in path}
    values: dict[str, Any] = {}
    for layer in (defaults, *layers):
        new = dict(_flat(fields, flags, layer))
        for path in [path for path in new if _end(path) == "name" and values.get(path, new[path]) != new[path]]:
            start = path.removesuffix("name")  # the arguments of one network are not those of another
            values = {old: value for old, value in values.items() if not old.startswith(start)}
        values |= new
    for path in values.keys() - fields.keys():  # only a network takes what its class does not declare
        parent = getattr(fields.get(path.rpartition(".")[0]), "annotation", None)
        if getattr(parent, "model_config", {}).get("extra") != "allow":
            raise ValueError(f"no setting {path}; --show-config prints all settings")
    plain = {path: value for path, value in values.items() if not callable(value)}
    try:
        config = config_class(**_nested(plain))
        computed = {path: value(config) for path, value in values.items() if callable(value)}
        return config_class(**_nested(plain | computed))
    except ValidationError as error:
        raise ValueError(_line(config_class, fields, error)) from error


def fields_of(config_class: Any, prefix: str = "") -> dict[str, FieldInfo]:
    """All settings by path, objects of settings among them."""
    fields: dict[str, FieldInfo] = {}
    for name, field in config_class.model_fields.items():
        fields[prefix + name] = field
        if _is_object(field):
            fields |= fields_of(field.annotation, f"{prefix}{name}.")
    return fields


def _is_object(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Settings)


def _flat(fields: Values, flags: Sequence[str], values: Values) -> Iterator[tuple[str, Any]]:
    """The values by path."""
    ends = Counter(_end(path) for path in fields)
    by_end = {_end(path): path for path in fields if ends[_end(path)] == 1} | {_end(path): path for path in flags}
    for name, value in values.items():
        path = name if name in fields else by_end.get(name, name)
        if isinstance(value, Mapping | Settings):
            yield from _flat(fields, flags, {f"{path}.{inner}": entry for inner, entry in dict(value).items()})
        elif path in fields and _is_object(fields[path]):  # its name, as in `--arch cnn`
            yield f"{path}.name", value
        else:
            yield path, value


def _end(path: str) -> str:
    return path.rpartition(".")[2]


def _nested(values: Values) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, nested)[name] = value
    return nested


def _line(config_class: type[Settings], fields: Values, error: ValidationError) -> str:
    """The first error in one line."""
    first = error.errors(include_url=False)[0]
    path = place = ".".join(map(str, first["loc"]))
    while path and path not in fields:  # an entry of a list, or a type of a union
        path = path.rpartition(".")[0]
    message = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    if not path or _is_object(fields[path]):  # settings that exclude each other; the message names them
        return message
    if first["type"] == "missing" and path == place:
        return f"needs {flag_of(config_class, path)}"
    message = message.replace("Input should", "must").replace("Tuple should", "must").replace("tuple", "list")
    shown = " ".join(map(str, first["input"])) if isinstance(first["input"], list) else first["input"]
    return f"{flag_of(config_class, path)} {shown}{'' if message.startswith('must') else ':'} {message}"


def flag_of(config_class: type[Settings], path: str) -> str:
    """How the command line names a setting: `--flag`, `--set path`, or a word without a flag."""
    line, path = config_class.command_line, path.removesuffix(".name")
    if path == line.words:
        return path.upper()
    return "--" + path.rpartition(".")[2].replace("_", "-") if path in line.flags else f"--set {path}"


# From words to values -------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (--help lists the flags)", file=sys.stderr)
        raise SystemExit(2)


def parse(config_class: type[Config], words: Sequence[str], presets: Presets | None = None, prog: str = "") -> Config:
    """The config that the words of a command line describe.

    Exits with 2 for a wrong value, after a line that names it, and with 0 after `--help` and `--show-config`.
    """
    presets, fields, line = presets or {}, fields_of(config_class), config_class.command_line
    parser = _parser(config_class, fields, presets, prog)
    flags = vars(parser.parse_args(words))
    preset, file, shows = flags.pop("preset", None), flags.pop("config", None), flags.pop("show_config", False)
    assigned = dict(word.partition("=")[::2] for word in flags.pop("set", ()))
    try:
        layers = [presets[preset].values if preset else {}, _read(file) if file else {}]
        texts = dict(_flat(fields, line.flags, assigned)) | dict(_flat(fields, line.flags, flags))
        config = build(config_class, *layers, {path: _value(fields.get(path), text) for path, text in texts.items()})
    except ValueError as error:
        parser.error(str(error))
    if shows:
        print(json.dumps(as_json(config), indent=1))
        raise SystemExit(0)
    return config


def _value(field: FieldInfo | None, text: Any) -> Any:
    """What a text of the command line means; its field's type makes a number or a path of it."""
    if text == "none" and field and types.NoneType in typing.get_args(field.annotation):
        return None
    if isinstance(text, str) and (field is None or text.startswith(("[", "{"))):
        with suppress(ValueError):
            return json.loads(text)
    return text


def _read(path: Path) -> Values:
    try:
        stored = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
        settings = dict(stored.get("settings", stored))  # a run's record, or settings alone
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"--config {path}: not a JSON object of settings ({error})") from error
    return settings


# --help ---------------------------------------------------------------------------------------------------------------


def _parser(config_class: type[Settings], fields: Mapping[str, FieldInfo], presets: Presets, prog: str) -> _Parser:
    line, module = config_class.command_line, f"python -m {prog.replace(' ', '.')}"
    width = max(map(len, presets), default=0) + 2
    parts = {
        "presets": [f"{name:<{width}}{preset.description}" for name, preset in presets.items()],
        "examples": [f"{module} {words}" for words in line.examples],
        "documentation": [line.page],
    }
    parser = _Parser(
        prog=prog,
        usage=f"{module} {fields[line.words].title} [flags]" if line.words else f"{module} [flags]",
        description=(config_class.__doc__ or "").split("\n")[0],
        epilog="\n\n".join("\n  ".join([f"{title}:", *listed]) for title, listed in parts.items() if listed),
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=HELP_COLUMN),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    groups: dict[str, Any] = {}
    for path in filter(None, (line.words, *line.flags)):
        title = "arguments" if path == line.words else path.partition(".")[0] if "." in path else "flags"
        groups[title] = groups.get(title) or parser.add_argument_group(title)
        _add(groups[title], config_class, fields[path], path)
    general = parser.add_argument_group("settings")
    if presets:
        general.add_argument("--preset", choices=sorted(presets), metavar="NAME", help="a set of values, listed below")
    general.add_argument("--config", type=Path, metavar="FILE", help="JSON file of settings, such as a run's")
    general.add_argument("--set", action="append", metavar="PATH=VALUE", help="any setting, as --show-config names it")
    general.add_argument("--show-config", action="store_true", help="print all settings as JSON, and stop")
    general.add_argument("--help", "-h", action="help", help="print this")
    return parser


def _add(group: Any, config_class: type[Settings], field: FieldInfo, path: str) -> None:
    """Add a setting to a group of the parser, with its sentence, and its default where that says something."""
    default, text, is_word = default_of(config_class, path), field.description, path == config_class.command_line.words
    name, options = (path if is_word else flag_of(config_class, path)), dict[str, Any]()
    union = typing.get_origin(field.annotation) in (typing.Union, types.UnionType)
    kind: Any = typing.get_args(field.annotation)[0] if union else field.annotation
    items, origin = typing.get_args(kind), typing.get_origin(kind)
    if kind is bool:  # its flag turns it over
        name, text = (f"--no-{name[2:]}", f"do not {text}") if default else (name, text)
        options |= {"action": "store_const", "const": not default}
    elif origin is typing.Literal:
        options["metavar"] = "{" + ",".join(map(str, items)) + "}"
    else:
        options["metavar"] = field.title or METAVARS.get(items[0] if origin is tuple else kind, "NAME")
        if is_word or origin is tuple:
            options["nargs"] = "?" if origin is not tuple else "*" if items[-1] is Ellipsis else len(items)
    shown = getattr(default, "name", None) if isinstance(default, Settings) else default
    shown = " ".join(map(str, shown)) if isinstance(shown, tuple) else shown
    if not (kind is bool or field.is_required() or shown in (None, "")):
        text = f"{text} [{shown}]"
    if not is_word:
        options["dest"] = path  # two paths may have the same end, which is the name of the flag
    group.add_argument(name, **options, help=(text or "").replace("%", "%%"))


def default_of(config_class: type[Settings], path: str) -> Any:
    """The default of a setting: that of the object in which it lies, which may differ from that of its class."""
    first, *rest = path.split(".")
    return reduce(getattr, rest, config_class.model_fields[first].default)

"""Settings: nested pydantic models by topic, built from layers of values.

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

A field declares its type and its range. Its docstring is its sentence in `--help`, or its `description` where the
sentence is computed, as a list of names is; `title` stands for the value. A flag has the end of a path as its name,
`--simulations`; any setting can be set by its path: `--set search.exploration=1.25`.

Precedence: defaults < `--preset` < `--config` < `--set` < flags. `common/command_line.py` parses them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo


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
    fields = fields_of(config_class)
    # The defaults of an object's field may differ from those of its class.
    defaults = {path: default_of(config_class, path) for path in fields if "." in path}
    values: dict[str, Any] = {}
    for layer in (defaults, *layers):
        new = full_paths(config_class, layer)
        for path in [path for path in new if _end(path) == "name" and values.get(path, new[path]) != new[path]]:
            start = path.removesuffix("name")  # the arguments of one network are not those of another
            values = {old: value for old, value in values.items() if not old.startswith(start)}
        values |= new
    for path in values.keys() - fields.keys():  # only a network takes what its class does not declare
        parent = getattr(fields.get(path.rpartition(".")[0]), "annotation", None)
        if getattr(parent, "model_config", {}).get("extra") != "allow":
            raise ValueError(f"no setting {path}; --show-config prints all settings")
    try:
        return config_class(**_nested(values))
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


def full_paths(config_class: type[Settings], values: Values) -> dict[str, Any]:
    """Values by their full paths; a value for an object, as in `--arch cnn`, is its name."""
    fields, flags, paths = fields_of(config_class), config_class.command_line.flags, dict[str, Any]()
    ends = Counter(_end(path) for path in fields)
    by_end = {_end(path): path for path in fields if ends[_end(path)] == 1} | {_end(path): path for path in flags}
    for name, value in values.items():
        path = name if name in fields else by_end.get(name, name)
        if isinstance(value, Mapping | Settings):
            paths |= full_paths(config_class, {f"{path}.{inner}": entry for inner, entry in dict(value).items()})
        elif path in fields and _is_object(fields[path]):
            if f"{path}.name" not in fields:
                raise ValueError(f"{path} {value}: must be an object of settings")
            paths[f"{path}.name"] = value
        else:
            paths[path] = value
    return paths


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
    name = flag_of(config_class, path)
    if first["type"] == "string_pattern_mismatch":
        message = f"must be {fields[path].title}"
    if first["type"] == "missing":
        return f"needs {name}" if path == place else f"{name}: {first['loc'][-1]} is missing"
    message = message.replace("Input should", "must").replace("Tuple should", "must").replace("tuple", "list")
    shown = " ".join(map(str, first["input"])) if isinstance(first["input"], list) else first["input"]
    return f"{name} {shown}{'' if message.startswith('must') else ':'} {message}"


def flag_of(config_class: type[Settings], path: str) -> str:
    """How the command line names a setting: `--flag`, `--set path`, or a word without a flag."""
    line, path = config_class.command_line, path.removesuffix(".name")
    if path == line.words:
        return path.upper()
    return "--" + _end(path).replace("_", "-") if path in line.flags else f"--set {path}"


def default_of(config_class: type[Settings], path: str) -> Any:
    """The default of a setting: that of the object in which it lies, which may differ from that of its class."""
    first, *rest = path.split(".")
    return reduce(getattr, rest, config_class.model_fields[first].default)

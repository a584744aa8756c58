"""Settings: frozen dataclasses whose fields have a checked type, and a sentence for `--help`.

    @dataclass(frozen=True, kw_only=True)
    class SearchSettings(Settings, group="search"):
        "How a position is searched."
        simulations: int = setting(100, "simulations of each search")

`cli.parse` makes a flag of each field; `as_json` and `--config` store and read them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

GROUPS = ("flags", "games", "search", "network", "data", "learning", "evaluation", "schedule", "machine")
"""Headings of `--help`, in their order. The first has what most people set."""

NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
"""What a value of a type is called in messages."""
ACCEPTED = {int: (int, str), float: (int, float, str), str: (str, os.PathLike), Path: (str, os.PathLike)}
"""What is turned into a value of a type; a flag's value is a text."""


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
                converted = _converted(value, hints(kind)[field.name])
            except ValueError as error:
                raise ValueError(f"{flag(field.name)} {value} must be {error}") from None
            object.__setattr__(self, field.name, converted)


@functools.cache
def hints(config_class: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(config_class)
    return {field.name: hints[field.name] for field in dataclasses.fields(config_class)}


def flag(name: str) -> str:
    """The flag of a field: `--opening-moves` of `opening_moves`."""
    return "--" + name.replace("_", "-")


def kinds(hint: Any) -> tuple[Any, ...]:
    """The types of a union, in order, or the type itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _converted(value: Any, hint: Any) -> Any:
    """A value as the field's type, from a flag's text, a JSON file or Python.

    Raises ValueError saying what was expected.
    """
    if types.NoneType in kinds(hint) and value in (None, "none"):
        return None
    # The first type of a union that takes the value wins; its first type's complaint is the clearest.
    errors = []
    for kind in kinds(hint):
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
        choices = {str(choice): choice for choice in typing.get_args(kind)}
        if str(value) not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return choices[str(value)]
    if typing.get_origin(kind) is tuple:
        items = typing.get_args(kind)
        length = None if items[-1] is Ellipsis else len(items)
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise ValueError("a list" + (f" of {length}" if length else ""))
        return tuple(_converted(entry, items[0]) for entry in value)
    if dataclasses.is_dataclass(kind):
        return _row(value, kind)
    if kind is Path and "://" in os.fspath(value if isinstance(value, str | os.PathLike) else ""):
        raise ValueError("a path on this machine, not a URL")
    # For Python a bool is a whole number; for a user it is not.
    if not isinstance(value, ACCEPTED.get(kind, kind)) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(NAMES.get(kind, "something else"))
    if kind is str and isinstance(value, os.PathLike) and len(Path(value).parts) == 1:
        value = os.path.join(os.curdir, value)  # as a text without a slash it would be a name first
    try:
        converted = kind(value)
    except (ValueError, OverflowError):  # no number, or a whole number too large for a float
        raise ValueError(NAMES[kind]) from None
    if kind is float and not math.isfinite(converted):  # no setting takes nan or infinity
        raise ValueError(NAMES[kind])
    return converted


def _row(value: Any, kind: Any) -> Any:
    if isinstance(value, kind):
        return value
    expected = f"a list of rows with {', '.join(hints(kind))}"
    if not isinstance(value, Mapping):
        raise ValueError(expected)
    try:
        return kind(**value)
    except (TypeError, ValueError) as error:  # a missing or unknown column, a wrong value
        raise ValueError(f"{expected} ({str(error).removeprefix('--')})") from None


def as_json(config: Any) -> dict[str, Any]:
    """A config as plain JSON values, which `--config` reads."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config), default=str))
    return plain


def check(condition: bool, name: str, value: Any, requirement: str) -> None:
    """Raise ValueError naming the flag, its value and what it must be, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{flag(name)} {value} must be {requirement}")


def check_seed(seed: int) -> None:
    """Raise ValueError unless a seed fits 64 bits."""
    check(0 <= seed < 2**64, "seed", seed, "from 0 to 2^64 - 1")


def check_within(config: object, interval: str, *names: str) -> None:
    """Raise ValueError unless each of these settings is None, or a number in an interval such as "[0, 1)", or several.

    An end may be `inf`, and have underscores between its digits.
    """
    ends = interval[1:-1].split(", ")
    low, high = map(float, ends)
    kind = interval[0] + interval[-1] if high < math.inf else interval[0]
    words = {
        "[]": "from {} to {}", "[)": "at least {} and below {}", "(]": "above {} and at most {}",
        "()": "between {} and {}", "[": "at least {}", "(": "above {}",
    }[kind].format(*(end.replace("_", ",") for end in ends))  # fmt: skip
    for name in names:
        value = getattr(config, name)
        for number in value if isinstance(value, tuple) else () if value is None else (value,):
            above = low < number if kind[0] == "(" else low <= number
            below = number <= high if kind[-1] == "]" else number < high
            check(above and below, name, f"{number}", words)

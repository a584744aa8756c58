"""From the words of a command line to its config: presets, `--config`, `--set`, flags, and `--help`.

    config = parse(PlayConfig, ["--preset", "smoke", "--games", "3"], PRESETS, prog="distill play")

`common/settings.py` has the settings themselves, and builds a config from layers of values.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from pydantic.fields import FieldInfo

from distill.common.settings import Config, Settings, Values, as_json, build, default_of, fields_of, flag_of, full_paths

METAVARS = {int: "N", float: "X", Path: "FOLDER"}
"""What stands for a value of a type in `--help`, where its field has no title."""
HELP_COLUMN = 26
"""Where the meaning of a flag begins in `--help`, in characters."""


@dataclass(frozen=True)
class Preset:
    """Values by name, with the sentence that `--help` shows.

    A value may be a function, called with the config built from all other values.
    """

    description: str
    values: Values


Presets: TypeAlias = Mapping[str, Preset]


def smoke(**values: Any) -> dict[str, Preset]:
    """The preset `smoke` of a command, by its name."""
    return {"smoke": Preset("a test of seconds, on data/smoke and models/smoke", values)}


# From words to values -------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (--help lists the flags)", file=sys.stderr)
        raise SystemExit(2)


def parse(config_class: type[Config], words: Sequence[str], presets: Presets | None = None, prog: str = "") -> Config:
    """The config that the words of a command line describe.

    Exits with 2 for a wrong value, after a line that names it, and with 0 after `--help` and `--show-config`.
    """
    presets, fields = presets or {}, fields_of(config_class)
    parser = _parser(config_class, fields, presets, prog)
    flags = vars(parser.parse_args(words))
    preset, file, shows = flags.pop("preset", None), flags.pop("config", None), flags.pop("show_config", False)
    assignments = [word.partition("=") for word in flags.pop("set", ())]
    assigned = {name: _json(text) if text.startswith("{") else text for name, _, text in assignments}
    try:
        stored = _read(file) if file else {}
        texts = full_paths(config_class, assigned) | full_paths(config_class, flags)
        typed = {path: _value(fields.get(path), text) for path, text in texts.items()}
        values = presets[preset].values if preset else {}
        plain = {name: value for name, value in values.items() if not callable(value)}
        config = build(config_class, plain, stored, typed)
        computed = {name: value(config) for name, value in values.items() if callable(value)}
        config = build(config_class, plain | computed, stored, typed)
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
    return _json(text) if isinstance(text, str) and (field is None or text.startswith("[")) else text


def _json(text: str) -> Any:
    """What the text says as JSON, or else the text."""
    with suppress(ValueError):
        return json.loads(text)
    return text


def _read(path: Path) -> Values:
    try:
        stored = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
        return dict(stored.get("settings", stored))  # a run's record, or settings alone
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"--config {path}: not a JSON object of settings ({error})") from error


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

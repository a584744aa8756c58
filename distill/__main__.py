"""`distill COMMAND` and `python -m distill COMMAND`: run the module of that name with the rest of the line."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import distill
from distill.common import boundary

COMMANDS = (
    "generate", "inspect", "prepare", "train", "evaluate",
    "arena", "walk", "export", "serve", "play", "selfplay", "reinforce",
)  # fmt: skip
"""In the order in which a newcomer meets them."""


def commands() -> dict[str, str]:
    """Each command with the first line of its module's docstring; nothing is imported."""
    return {name: _first_line(Path(__file__).with_name(f"{name}.py")) for name in COMMANDS}


def _first_line(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    own = arguments is None
    return boundary.guarded(partial(_run, name, rest, own), f"distill {name}", rest, ends_process=own)


def start(command: str) -> NoReturn:
    """Run `python -m distill.COMMAND`: its module calls this before its imports, which take a second."""
    sys.argv.insert(1, command)
    raise SystemExit(main())


def _run(name: str, rest: list[str], own: bool) -> int:
    """Run one command with the words of this process (`own`) or of a caller."""
    if name in ("-h", "--help"):
        about = _first_line(Path(distill.__file__))
        print(f"{about}\n\nusage: distill COMMAND [flags]      distill COMMAND --help lists the flags\n")
        print("\n".join(f"  {command:<10} {line}" for command, line in commands().items()))
        return 0
    if name == "--version":
        print(f"distill {distill.__version__}")
        return 0
    if name not in COMMANDS:
        print(f"distill: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"distill.{name}")
    if own:
        sys.argv[1:] = rest
    return int(module.main(None if own else rest))


if __name__ == "__main__":
    raise SystemExit(main())

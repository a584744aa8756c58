"""`distill COMMAND` and `python -m distill COMMAND`: run the module of that name with the rest of the line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import distill
from distill.common import boundary, provenance

COMMANDS = (
    "generate", "inspect", "prepare", "train", "evaluate",
    "arena", "walk", "export", "serve", "play", "selfplay",
)  # fmt: skip
"""In the order in which a newcomer meets them."""


def commands() -> dict[str, str]:
    """Each command with the first line of its module's docstring; nothing is imported."""
    folder = Path(__file__).parent
    sources = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in COMMANDS}
    return {name: source.split("\n")[0].strip('"') for name, source in sources.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    name, *words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    return boundary.guarded(partial(_run, name, words), f"distill {name}", words)


def start(command: str) -> NoReturn:
    """Run `python -m distill.COMMAND`: its module calls this before its imports, which take a second."""
    raise SystemExit(main([command, *sys.argv[1:]]))


def _run(name: str, words: list[str]) -> int:
    """Run one command."""
    if name in ("-h", "--help"):
        print(f"{(distill.__doc__ or '').splitlines()[0]}\n")
        print("usage: distill COMMAND [flags]      distill COMMAND --help lists the flags\n")
        print("\n".join(f"  {command:<10} {line}" for command, line in commands().items()))
        return 0
    if name == "--version":
        print(f"distill {distill.__version__}, commit {provenance.commit() or 'unknown'}")
        return 0
    if name not in COMMANDS:
        print(f"distill: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"distill.{name}").main.call(words))


if __name__ == "__main__":
    raise SystemExit(main())

"""`distill <stage>` and `python -m distill <stage>`: finds the stage's module and hands it the rest of the line."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import distill
from distill.common import streams

STAGES = (
    "generate", "prepare", "validate", "describe", "train", "evaluate",
    "arena", "walk", "export", "models", "serve", "play", "review", "selfplay", "reinforce",
)  # fmt: skip
"""The order in which a newcomer meets them."""


def stages() -> dict[str, str]:
    """Each stage there is, with the first line of its module's docstring; nothing is imported."""
    files = {stage: Path(__file__).with_name(f"{stage}.py") for stage in STAGES}
    return {stage: _first_line(file) for stage, file in files.items() if file.is_file()}


def _first_line(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage; the return value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return streams.guarded(lambda: _run(words or ["--help"], own=arguments is None))


def _run(words: list[str], own: bool) -> int:
    """The same for words that are the process's `own`, or a caller's."""
    stage, *rest = words
    found = stages()
    if stage in ("-h", "--help"):
        about = _first_line(Path(distill.__file__))
        print(f"{about}\n\nusage: distill <stage> [flags]      distill <stage> --help lists the flags\n")
        print("\n".join(f"  {name:<10} {line}" for name, line in found.items()))
        return 0
    if stage == "--version":
        print(f"distill {distill.__version__}")
        return 0
    if stage not in found:
        print(f"distill: no stage {stage!r}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"distill.{stage}")
    if own:
        sys.argv[1:] = rest
    return int(module.main(None if own else rest))


if __name__ == "__main__":
    raise SystemExit(main())

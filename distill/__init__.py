"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays.

The names of PUBLIC can be imported from here, and are loaded when they are first used:

    import distill
    predict = distill.load_pretrained("pillar")
    predict(distill.board(distill.from_moves("4453")))["move"]  # the column, 0-6

Importing `distill` alone loads neither NumPy nor Keras.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from distill.common.sources import watch_imports

watch_imports()  # now, because a program may import its own module, or Keras, before it uses the library

__version__ = "0.2.0"

STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
PUBLIC = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", STUB, re.MULTILINE)}
"""The library: the module of each name, as `__init__.pyi` tells type checkers."""


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *PUBLIC]

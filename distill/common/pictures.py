"""Pictures that look the same whatever a user's Matplotlib settings are, and that never end the run they belong to."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec

from distill.common import machine
from distill.common.errors import first_line
from distill.common.progress import say

Parameters = ParamSpec("Parameters")


def picture(draw: Callable[Concatenate[Path, Parameters], None]) -> Callable[Concatenate[Path, Parameters], None]:
    """Decorates a function that draws into a file: where it fails, one line says so and an older picture is removed."""

    @functools.wraps(draw)
    def drawn(path: Path, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        try:
            with _default_settings():
                draw(path, *arguments, **named)
        except Exception as error:  # whatever Matplotlib, fonts or the disk have to complain of
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            _say_once(f"{path}: not drawn ({type(error).__name__}: {first_line(error)}); the run continues")

    return drawn


@functools.cache
def _say_once(line: str) -> None:
    """The same picture is drawn after each epoch."""
    say(line)


@contextlib.contextmanager
def _default_settings() -> Iterator[None]:
    """Matplotlib without the user's backend and matplotlibrc, which are restored."""
    logger = logging.getLogger("matplotlib")
    is_new = "matplotlib" not in sys.modules
    level = logger.level
    logger.setLevel(logging.ERROR)  # what it says of bad lines in a matplotlibrc, which is not used here
    try:
        with machine.without("MPLBACKEND"):  # an unknown one would stop the import
            import matplotlib
    finally:
        logger.setLevel(level)
    if is_new and (backend := os.environ.get("MPLBACKEND")):  # for the caller's own windows
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield

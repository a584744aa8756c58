"""Plots that never end the run that they belong to."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from distill.common.errors import first_line
from distill.common.progress import say_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")


def picture(draw: Callable[Concatenate[Path, Parameters], None]) -> Callable[Concatenate[Path, Parameters], None]:
    """Decorate a function that draws into a file. If it fails, one line says so and an older picture is removed."""

    @functools.wraps(draw)
    def drawn(path: Path, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        try:
            draw(path, *arguments, **named)
        except Exception as error:  # from Matplotlib, fonts or the disk
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            # Once, although the same picture is drawn after each epoch.
            say_once(f"{path}: not drawn ({type(error).__name__}: {first_line(error)}); the run continues")

    return drawn


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure of this size in inches, and its axes, row by row."""
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()

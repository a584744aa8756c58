"""Plots that never end the run that they belong to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.common.errors import first_line
from distill.common.progress import say_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextlib.contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Draw into a file. If that fails, one line says so, and an older picture is removed."""
    try:
        yield
    except Exception as error:  # from Matplotlib, fonts or the disk
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        # Once, although the same picture is drawn after each epoch.
        say_once(f"{path}: not drawn ({type(error).__name__}: {first_line(error)}); the run continues")


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure of this size in inches, and its axes, row by row."""
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()

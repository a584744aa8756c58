"""Plots as PNG files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.common.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure of this size in inches, and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    write_atomically(path, drawn.getvalue())

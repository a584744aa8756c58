"""Figures of Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure of this size in inches, and its axes, row by row."""
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()

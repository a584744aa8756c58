"""The history of a run: `history.csv` and `curves.png`.

A row holds what one evaluation measured; `over` names the column on the x-axis, which increases from row to row.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from distill.common import write_atomically
from distill.common.pictures import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CSV, CURVES = FILES = "history.csv", "curves.png"

Panels = Mapping[str, Sequence[str]]
"""The curves: a title, and the columns drawn below it."""

TRAINING: Panels = {
    "loss": ["training_loss", "validation_loss"],
    "top-1 accuracy on validation boards": ["validation_top1"],
    "learning rate": ["learning_rate"],
}


def write(folder: Path, rows: Sequence[Mapping[str, float]], panels: Panels = TRAINING, over: str = "step") -> None:
    """Rewrite the files from all rows so far."""
    table = pd.DataFrame(list(rows))
    write_atomically(folder / CSV, table.to_csv(index=False).encode())
    _draw(folder / CURVES, table, panels, over)


def drawn(table: pd.DataFrame, panels: Panels, over: str) -> Figure:
    """One plot per panel, side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # not pyplot: no window, no state
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    subplots = figure.subplots(1, len(panels), squeeze=False)
    for axes, (title, names) in zip(subplots[0], panels.items(), strict=True):
        for name in names:
            axes.plot(table[over], table[name], marker=".", label=name.replace("_", " "))
        axes.set(title=title, xlabel=over)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))  # few, because numbers of games are long
        # A single curve is named by the title.
        if len(names) > 1:
            axes.legend()
    return figure


@picture
def _draw(path: Path, table: pd.DataFrame, panels: Panels, over: str) -> None:
    """Write the curves as PNG."""
    content = io.BytesIO()
    drawn(table, panels, over).savefig(content, format="png", dpi=110)
    write_atomically(path, content.getvalue())

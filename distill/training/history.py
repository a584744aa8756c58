"""The history of a run: `history.csv` and `curves.png`.

A row holds what one evaluation measured; `over` names the column on the x-axis, which increases from row to row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from distill.common import first_line, say_once, write_atomically
from distill.common.pictures import new_figure

CSV, CURVES = "history.csv", "curves.png"

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
    path = folder / CURVES
    try:
        _draw(path, table, panels, over)
    except Exception as error:  # from Matplotlib, fonts or the disk; no picture ends a run
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # an older one
        say_once(f"{path}: not drawn ({type(error).__name__}: {first_line(error)}); the run continues")


def _draw(path: Path, table: pd.DataFrame, panels: Panels, over: str) -> None:
    """Write the curves as PNG: one plot for each panel that has a curve, side by side."""
    from matplotlib.ticker import MaxNLocator

    measured = {name for name in table if table[name].notna().any()}
    curves = {title: [name for name in names if name in measured] for title, names in panels.items()}
    shown = {title: names for title, names in curves.items() if names}
    figure, subplots = new_figure(1, len(shown), 11, 3.4)
    for axes, (title, names) in zip(subplots, shown.items(), strict=True):
        for name in names:
            axes.plot(table[over], table[name], marker=".", label=name.replace("_", " "))
        axes.set(title=title, xlabel=over)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))  # few, because numbers of games are long
        # A single curve is named by the title.
        if len(names) > 1:
            axes.legend()
    figure.savefig(path)

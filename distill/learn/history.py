"""How a run went: `history.csv`, `curves.png`, and TensorBoard events where that is installed.

A row of the history is what was measured at one moment; `over` names the number that grows from row to row.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import pandas as pd

from distill.base import write_atomically
from distill.base.pictures import picture

CSV, CURVES, EVENTS = FILES = "history.csv", "curves.png", "events"

Panels = Mapping[str, Sequence[str]]
"""The curves: a title and the columns drawn under it."""

TRAINING: Panels = {
    "loss": ["training_loss", "validation_loss"],
    "agreement on validation boards": ["validation_agreement"],
    "learning rate": ["learning_rate"],
}


def write(folder: Path, rows: Sequence[Mapping[str, float]], panels: Panels = TRAINING, over: str = "epoch") -> None:
    """Write the files anew from all rows so far; the last row is added to the events."""
    table = pd.DataFrame(list(rows))
    write_atomically(folder / CSV, table.to_csv(index=False).encode())
    _draw_curves(folder / CURVES, table, panels, over)
    if importlib.util.find_spec("tensorboard") and keras.backend.backend() == "tensorflow":
        _add_events(folder / EVENTS, rows[-1], over)


@picture
def _draw_curves(path: Path, table: pd.DataFrame, panels: Panels, over: str) -> None:
    """PNG: one picture a panel, side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, names) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for name in names:
            axes.plot(table[over], table[name], marker=".", label=name.replace("_", " "))
        axes.set(title=title, xlabel=over)
        axes.locator_params("x", nbins=5)  # numbers of games are long
        if len(names) > 1:
            axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    write_atomically(path, content.getvalue())


def _add_events(folder: Path, row: Mapping[str, Any], over: str) -> None:
    import tensorflow as tf

    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=int(row[over])):
        for name, value in row.items():
            tf.summary.scalar(name, value)
    writer.close()

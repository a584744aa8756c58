"""What happened in each epoch: `history.csv`, `curves.png`, and TensorBoard events where that is installed."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import pandas as pd

from distill.data.schema import write_atomically

CSV, CURVES, EVENTS = "history.csv", "curves.png", "events"


def write(folder: Path, epochs: Sequence[Mapping[str, float]]) -> None:
    """Write the files anew from all epochs so far; the last epoch is added to the events."""
    table = pd.DataFrame(list(epochs))
    write_atomically(folder / CSV, table.to_csv(index=False).encode())
    write_atomically(folder / CURVES, _curves(table))
    if importlib.util.find_spec("tensorboard") and keras.backend.backend() == "tensorflow":
        _add_events(folder / EVENTS, epochs[-1])


def _curves(table: pd.DataFrame) -> bytes:
    """PNG: losses, agreement and learning rate over the epochs."""
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = {
        "loss": ["training_loss", "validation_loss"],
        "agreement on validation boards": ["validation_agreement"],
        "learning rate": ["learning_rate"],
    }
    for axes, (title, names) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for name in names:
            axes.plot(table["epoch"], table[name], marker=".", label=name.split("_")[0])
        axes.set(title=title, xlabel="epoch")
        if len(names) > 1:
            axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def _add_events(folder: Path, epoch: Mapping[str, Any]) -> None:
    import tensorflow as tf

    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=int(epoch["epoch"])):
        for name, value in epoch.items():
            tf.summary.scalar(name, value)
    writer.close()

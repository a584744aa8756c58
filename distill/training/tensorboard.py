"""The history of a run for TensorBoard: `tensorboard --logdir models` shows the curves while the run goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import pandas as pd

from distill.common.provenance import extra
from distill.training.history import CSV

FOLDER = "tensorboard"
"""The folder of the event files, in the run's folder."""


def writer() -> Any:
    """The writer class of the `tensorboard` package. Raises UserError with the install command where it is missing."""
    with extra("tensorboard", "--log tensorboard"):
        from tensorboard.summary import Writer
    return Writer


class TensorBoard(keras.callbacks.Callback):
    """Writes each column of the history as a scalar, by the column `over`.

    Event files of an earlier start are replaced by one with the rows of `history.csv`, so a resumed run has every
    evaluation once, and a restarted run none of the old ones.
    """

    def __init__(self, folder: Path, over: str = "step") -> None:
        super().__init__()
        self.over = over
        for old in (folder / FOLDER).glob("events.out.tfevents.*"):
            old.unlink()
        self.events = writer()(str(folder / FOLDER))
        if (folder / CSV).is_file():
            for row in pd.read_csv(folder / CSV).to_dict("records"):
                self.on_epoch_end(0, row)

    def on_epoch_end(self, epoch: int, logs: Mapping[Any, Any]) -> None:
        for name, value in logs.items():
            if name != self.over and not math.isnan(value):
                self.events.add_scalar(name, value, int(logs[self.over]))
        self.events.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self.events.close()

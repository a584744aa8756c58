"""The history of a run for TensorBoard: `tensorboard --logdir models` shows the curves while the run goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import keras

from distill.common.provenance import extra


class TensorBoard(keras.callbacks.Callback):
    """Writes each number in a row of the history as a scalar, by the column `over`, from this start on.

    Raises UserError with the install command where the package `tensorboard` is missing.
    """

    def __init__(self, folder: Path, over: str = "step") -> None:
        super().__init__()
        with extra("tensorboard", "--log tensorboard"):
            from tensorboard.summary import Writer
        self.writer, self.folder, self.over = Writer, folder / "tensorboard", over

    @cached_property
    def events(self) -> Any:
        """The event file, which begins with the first row: what --restart deletes is gone then."""
        return self.writer(str(self.folder))

    def on_epoch_end(self, epoch: int, logs: Mapping[Any, Any]) -> None:
        for name, value in logs.items():
            if name != self.over and isinstance(value, Real) and not math.isnan(value):
                self.events.add_scalar(name, value, int(logs[self.over]))
        self.events.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self.events.close()

"""Columns of equal length as one object."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Arrays:
    """What a dataclass inherits whose fields are arrays with one entry a row."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def __getitem__(self, rows: NDArray[np.integer[Any]] | NDArray[np.bool_] | slice) -> Self:
        return type(self)(**{name: values[rows] for name, values in vars(self).items()})

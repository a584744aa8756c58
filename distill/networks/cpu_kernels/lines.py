"""The stones on all lines of four by one matrix product.

Replaces: the convolution with constant kernels in `pillar_lines.Lines`.
Gains: GAIN_LINES
Switch: "whole_board", whose networks it is for.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import pillar_lines


class FastLines(pillar_lines.Lines):
    """`Lines` by one product of matrices."""

    def stones_on_lines(self, planes: Any) -> Any:
        found = ops.matmul(ops.reshape(planes, (-1, 2 * CELLS)), ops.cast(_line_matrix(), planes.dtype))
        return ops.reshape(found, (-1, ROWS, COLUMNS, 2 * pillar_lines.LINES))


@functools.cache
def _line_matrix() -> NDArray[np.float32]:
    """float32 (H · W · 2, H · W · 2 · LINES): `line_kernels` as one matrix, from the planes of all cells."""
    around = np.pad(pillar_lines.line_kernels(), [(3, 3), (3, 3), (0, 0), (0, 0)])
    seen = [around[6 - row :][:ROWS, 6 - column :][:, :COLUMNS] for row, column in np.ndindex(ROWS, COLUMNS)]
    return np.stack(seen, axis=3).reshape(2 * CELLS, -1)

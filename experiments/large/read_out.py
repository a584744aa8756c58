"""Learning the read-out of a `pillar` so that it plays proven moves, and changes as little as possible elsewhere.

Between the features of a position, (C,), and the logits lie two dense layers, which also read the features of the
mirror image. Only the weights W (C, H) of the first one learn, `hidden`: 896 × 256 in `pillar-large`. The margin of a
position is the logit of its best proven move less that of the best other move. A change D of W solves

    minimize  |A^½ D G^½|²   subject to   margin + ⟨gradient, D⟩ ≥ target   in each position,

with margins and gradients at W; then again at W + D, until all margins are safe. By duality this is a linear system
with one unknown, which is not negative, for each position that needs the change: a few thousand.

A and G make the norm a measure of what D does to the answers on other boards, in the approximation of K-FAC (Martens
and Grosse, Optimizing Neural Networks with Kronecker-factored Approximate Curvature, 2015): A is the second moment of
their features, G that of the gradients of logits and value by the outputs of `hidden`. MEMIT edits facts in language
models in the same way (Meng et al., Mass-Editing Memory in a Transformer, 2023). `README.md` has what the plain norm
does.

Dimensions: N positions, A = 7 columns, C features, H units, 2 orientations: the board and its mirror image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS
from experiments.large.positions import SAFE

Array = NDArray[np.float32]

TARGETS = 0.01, 0.03
"""Those to aim for: at least, and where no proven move is ahead. The kernel is rounded after each step."""
KEEPS = 0.7
"""Share of a positive margin below the higher target that may not be lost."""
MOST_RAISE = 2.0
"""Logits by which a step raises a margin at most, because margins are linear in small changes only."""
MOST = 1 << 14
"""Positions that one linear system takes, those with the smallest margins."""
STEPS = 12
VALUE_WEIGHT = 5.0
"""Logits that a change of the value by 1 is worth."""
DAMPING = 0.01
"""Part of their mean eigenvalue that is added to A and G."""
RIDGE = 1e-4
"""Part by which the diagonal of the linear system is raised."""
NEGATIVE = 0.005
"""Share of negative numbers that are taken as 0."""
ADDITIONS = 8
"""Times at most that a step adds positions which its change would make wrong."""
BATCH = 1 << 13


class Near(NamedTuple):
    """Positions and what is to be ahead in them.

    Attributes:
      features: float32 (N, C), those of the board; `mirrored` gives the others.
      first, others: bool (N, A), moves of which the best is to be ahead of the best of the others.
    """

    features: Array
    first: NDArray[np.bool_]
    others: NDArray[np.bool_]

    def rows(self, rows: Any) -> Near:
        """Some of them."""
        return Near(*(part[rows] for part in self))


def trunk(core: keras.Model) -> keras.Model:
    """Planes (B, 6, 7, 2) → the features of each column (B, 1, 7, C / 7)."""
    return keras.Model(core.inputs, core.get_layer("columns_relu").output)


def as_float16(weights: Array) -> Array:
    """The nearest 16-bit floats: the file in 8 bits stores matrices in these (`exporters/quantized.py`)."""
    return weights.astype(np.float16).astype(np.float32)


def mirrored(features: Array) -> Array:
    """The features (N, C) of the mirrored boards: columns and the two halves of each change places."""
    by_column = features.reshape(len(features), COLUMNS, -1)
    return np.roll(by_column[:, ::-1], by_column.shape[2] // 2, axis=2).reshape(features.shape)


def best(logits: Array, moves: NDArray[np.bool_]) -> Array:
    """float32 (N,): the highest logit among the moves."""
    highest: Array = np.where(moves, logits, -1e9).max(1)
    return highest


class ReadOut:
    """The layers behind the features, in NumPy; `kernel`, W, learns."""

    def __init__(self, core: keras.Model) -> None:
        layers = {name: core.get_layer(name).get_weights() for name in ("hidden", "read_out")}
        self.kernel, self.bias = layers["hidden"]
        self.last, self.last_bias = layers["read_out"]
        self.value = core.get_layer("value_hidden").get_weights() + core.get_layer("value_unit").get_weights()

    def hidden(self, features: Array) -> Array:
        """float32 (N, 2, H)."""
        both = np.stack([features @ self.kernel, mirrored(features) @ self.kernel], axis=1)
        units: Array = np.maximum(both + self.bias, 0)
        return units

    def logits(self, hidden: Array) -> Array:
        """float32 (N, A), also of full columns."""
        straight, turned = (hidden[:, side] @ self.last + self.last_bias for side in (0, 1))
        logits: Array = straight + turned[:, ::-1]
        return logits

    def margins(self, near: Near, change: Array | None = None) -> tuple[Array, Array]:
        """float32 (N,): by how much the best of `first` is ahead; and by how much a change (C, H) will raise that."""
        margins, raised = np.empty((2, len(near.features)), np.float32)
        for start in range(0, len(margins), BATCH):
            part = near.rows(slice(start, start + BATCH))
            margins[start : start + BATCH], by_hidden = self.gradients(part)
            if change is not None:
                both = np.stack([part.features @ change, mirrored(part.features) @ change], axis=1)
                raised[start : start + BATCH] = (both * by_hidden).sum((1, 2))
        return margins, raised

    def gradients(self, near: Near) -> tuple[Array, Array]:
        """The margins (N,), and their gradients by the outputs of `hidden` before its ReLU, (N, 2, H)."""
        hidden = self.hidden(near.features)
        logits = self.logits(hidden)
        signs = np.zeros_like(logits)
        for moves, sign in ((near.first, 1), (near.others, -1)):
            signs[np.arange(len(logits)), np.where(moves, logits, -1e9).argmax(1)] += sign
        by_hidden = np.stack([signs @ self.last.T, signs[:, ::-1] @ self.last.T], axis=1)
        return best(logits, near.first) - best(logits, near.others), by_hidden * (hidden > 0)

    def value_gradients(self, features: Array) -> Array:
        """The value's gradients by the outputs of `hidden` before its ReLU, (N, 2, H)."""
        hidden, (weights, bias, unit, unit_bias) = self.hidden(features), self.value
        units = np.maximum(hidden.sum(1) @ weights + bias, 0)
        value = np.tanh(units @ unit + unit_bias)
        by_sum = ((1 - value**2) * (units > 0) * unit.T) @ weights.T
        gradients: Array = by_sum[:, None] * (hidden > 0)
        return gradients


def learn(read_out: ReadOut, near: Near, boards: Near) -> Iterator[dict[str, Any]]:
    """Change `read_out.kernel` until a move of `first` is ahead in all positions; yields figures after each step.

    Args:
      boards: others on which the answers are to change little; `first` is their best move.
    """
    margins, _ = read_out.margins(near)
    least, most = TARGETS
    targets = np.where(margins <= 0, most, np.clip(KEEPS * margins, least, most)).astype(np.float32)
    for step in range(1, STEPS + 1):
        roots, now = inverse_roots(read_out, boards), np.minimum(targets, margins + MOST_RAISE)
        rows, foreseen, change = np.empty(0, np.intp), margins, np.zeros_like(read_out.kernel)
        for _ in range(ADDITIONS):
            short = np.flatnonzero(foreseen < now - (0.1 * now.clip(0) if len(rows) else 0))
            if len(np.setdiff1d(short, rows)) <= len(rows) / 50:
                break
            rows = np.union1d(rows, short)
            rows = np.sort(rows[np.argsort(foreseen[rows])[:MOST]])
            change, needed = smallest_change(read_out, near.rows(rows), now[rows] - margins[rows], roots)
            rows, foreseen = rows[needed], margins + read_out.margins(near, change)[1]
        read_out.kernel = as_float16(read_out.kernel + change)
        before, (margins, _) = margins, read_out.margins(near)
        moved = float(np.sqrt(np.square(margins - before).mean()))
        yield {"step": step, "held": len(rows), "wrong": int((margins < SAFE).sum()), "moved": round(moved, 4)}
        if margins.min() >= SAFE:
            return


def inverse_roots(read_out: ReadOut, boards: Near) -> tuple[Array, Array]:
    """A^-½ (C, C) and G^-½ (H, H), from the answers on these boards."""
    of_margins, of_values = read_out.gradients(boards)[1], VALUE_WEIGHT * read_out.value_gradients(boards.features)
    sides = (boards.features, mirrored(boards.features))
    by_units = (gradients[:, side] for gradients in (of_margins, of_values) for side in (0, 1))

    def root(samples: Iterable[Array]) -> Array:
        moment: Any = sum(sample.T @ sample for sample in samples)
        values, vectors = np.linalg.eigh(moment.astype(np.float64) / len(boards.features))
        scales = np.maximum(values, 0) + DAMPING * values.mean()
        inverse: Array = ((vectors / np.sqrt(scales)) @ vectors.T).astype(np.float32)
        return inverse

    return root(sides), root(by_units)


def smallest_change(
    read_out: ReadOut, near: Near, lacks: Array, roots: tuple[Array, Array]
) -> tuple[Array, NDArray[np.intp]]:
    """The smallest change (C, H) that raises the margins by what they lack, and the rows of those that need it."""
    x = np.stack([near.features, mirrored(near.features)], axis=1) @ roots[0]
    d = read_out.gradients(near)[1] @ roots[1]
    products = np.zeros((len(x), len(x)), np.float32)
    for one in (0, 1):
        for other in (0, 1):
            products += (x[:, one] @ x[:, other].T) * (d[:, one] @ d[:, other].T)
    products[np.diag_indices(len(x))] *= 1 + RIDGE
    needed = np.arange(len(x))
    while True:
        shares = np.linalg.solve(products[np.ix_(needed, needed)], lacks[needed])
        if (shares < 0).mean() <= NEGATIVE:
            break
        needed = needed[shares >= 0]  # these positions get what they lack from the others' change
    weighted = np.maximum(shares, 0)[:, None, None] * d[needed]
    change: Array = roots[0] @ sum(x[needed, side].T @ weighted[:, side] for side in (0, 1)) @ roots[1]
    return change, needed

"""The study: what matters when a search is distilled, one change at a time."""

from typing import Literal, get_args

Shape = Literal[
    "column-pooled", "column-shared", "column-threats", "column-looped", "column-deep", "column-wide",
    "flat", "transformer-columns", "cnn-absolute",
]  # fmt: skip
"""Networks that only the study trains: `shapes.py`, which this does not load, for it starts Keras."""
SHAPES: tuple[Shape, ...] = get_args(Shape)

Candidate = Literal[
    "looped-2", "looped-4", "line-objects", "early-dense", "narrow-deep", "column-mixer", "column-attention", "experts",
    "wide-lines",
]  # fmt: skip
"""Networks that are compared with `pillar` at equal time: `candidates.py`."""
CANDIDATES: tuple[Candidate, ...] = get_args(Candidate)

"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from distill.nets.predict import Predict

    __version__: str

VERSION = "0.1.0"
"""The version alone, which files of games name; `__version__` tells the commit as well, as in 0.1.0+g1234567."""


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from distill.base import provenance  # not at once: it asks git

    return provenance.version()


def load_pretrained(name: str | Path = "pillar") -> Predict:
    """A network as `predict(boards)`: one in `models/`, one that ships, or the folder or file of one.

        predict = distill.load_pretrained("pillar")
        answer = predict(board)  # int8 (6, 7), or (B, 6, 7): row 0 on top, +1 the side to move, -1 the other, 0 empty
        answer["move"]           # the column; also "policy", "logits" and, where there is that head, "value"

    A name without a slash means the network of that name first, which `python -m distill.models` lists, and a path only
    where there is none: `./pillar` is always a path. Where ONNX Runtime is installed nothing else is loaded. Raises
    `distill.base.UserError` for a name that no network has.
    """
    from distill.base import UserError
    from distill.nets import finding, predict

    folder = finding.find(name)
    if folder is None:
        raise UserError(f"{name}: no such network; {finding.names()}")
    return predict.load(folder)

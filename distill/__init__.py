"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from distill.networks.predict import Pretrained

    __version__: str

VERSION = "0.1.0"
"""The version alone, which files of games name; `__version__` tells the commit as well, as in 0.1.0+g1234567."""


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from distill.common import provenance  # not at once: it asks git

    return provenance.version()


def load_pretrained(name: str | Path = "pillar") -> Pretrained:
    """A network as `predict(boards)`: one in `models/`, one that ships, or the folder or file of one.

        predict = distill.load_pretrained("pillar")
        answer = predict(board)  # int8 (6, 7), or (B, 6, 7): row 0 on top, +1 the side to move, -1 the other, 0 empty
        answer["move"]           # the column; also "policy", "logits" and, where there is that head, "value"

    `predict` raises ValueError, with how to convert it, for what is no board. It cannot tell whose turn it is where
    both sides have equally many stones. From Kaggle's observation, from columns 1-7, and from row 0 at the bottom:

        marks = np.array(observation.board).reshape(6, 7)
        board = np.where(marks == 0, 0, np.where(marks == observation.mark, 1, -1))
        position = rules.from_moves("4453")  # from distill.game import encoding, rules
        board = encoding.boards(position.current, position.mask)
        board = upside_down[::-1]

    A text without a slash means the network of that name first, which `python -m distill.models` lists, and a path only
    where there is none. A text with a slash, such as "./pillar", means a path first, and a `Path` means nothing else.
    `predict` can be pickled. Where ONNX Runtime is installed nothing else is loaded. Raises `distill.common.UserError`
    where there is neither such a network nor such a path.
    """
    from distill.networks import finding, predict

    return predict.Pretrained(finding.required(name))

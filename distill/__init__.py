"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distill.nets.predict import Pretrained

__version__ = "0.1.0"


def load_pretrained(name: str = "pillar") -> Pretrained:
    """A network as `predict(boards)`: one that ships, one in `models/`, or the folder of one.

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

    It can be pickled. `python -m distill.models` lists the names. Where ONNX Runtime is installed nothing else is
    loaded. Raises `distill.base.UserError` for a name that no network has.
    """
    from distill.base import UserError
    from distill.nets import finding, predict

    folder = finding.find(name)
    if folder is None:
        raise UserError(f"{name}: no such network; {finding.names()}")
    return predict.Pretrained(folder)

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

    Where both sides have equally many stones, whose turn it is cannot be seen, so it must be right. From other formats:

        board = np.where(marks == 0, 0, np.where(marks == mark, 1, -1)).reshape(6, 7)  # Kaggle's board, mark
        position = rules.from_moves("4453")  # columns 1-7; from distill.game import encoding, rules
        board = encoding.boards([position.current], [position.mask])[0]
        board = upside_down[::-1]  # row 0 was at the bottom

    `predict` raises ValueError for what is no board, and can be pickled. `python -m distill.models` lists the names.
    Where ONNX Runtime is installed nothing else is loaded. Raises `distill.base.UserError` for a name that no network
    has.
    """
    from distill.base import UserError
    from distill.nets import finding, predict

    folder = finding.find(name)
    if folder is None:
        raise UserError(f"{name}: no such network; {finding.names()}")
    return predict.Pretrained(folder)

"""Compiling a search before it is needed: `python -m distill.search.ahead teacher`, or `puct`.

In: the module's name. Out: its compiled code in the cache (`cache.py`), where it was not there yet; another process
then finds it.
"""

from __future__ import annotations

import sys

import numpy as np

from distill.game.rules import COLUMNS, EMPTY
from distill.search import puct, teacher


def compile_teacher() -> None:
    """All that `teacher.search` runs."""
    teacher.search([EMPTY], teacher.SearchSettings(simulations=1))


def compile_puct() -> None:
    """All that `puct.search` runs, whatever network it asks."""

    def predict(current: puct.Bitboards, _mask: puct.Bitboards) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(current), COLUMNS), np.float32), np.zeros(len(current), np.float32)

    empty = np.zeros(1, np.uint64)
    puct.search(empty, empty, puct.PuctSettings(simulations=1), predict, [0])


if __name__ == "__main__":
    {"teacher": compile_teacher, "puct": compile_puct}[sys.argv[1]]()

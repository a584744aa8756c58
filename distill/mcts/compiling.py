"""Compile a search before it is needed; later processes load it from the cache in milliseconds.

python -m distill.mcts.compiling uct        # or puct
"""

from __future__ import annotations

import functools
import sys

from distill.common import say
from distill.mcts.cache import LAST_COMPILED, is_compiled


def compile_search(search: str) -> None:
    """Compile everything that `uct.search` or `puct.search` runs, or load it from the cache."""
    import numpy as np

    board = np.zeros((1, 6, 7), np.int8)
    if search == "uct":
        from distill.mcts import uct

        uct.search(board, uct.UctSettings(simulations=1, votes=1))
    else:
        from distill.mcts import puct

        # Any evaluation will do: what compiles does not depend on it.
        evaluation = np.zeros((1, 7), np.float32), np.zeros(1, np.float32)
        puct.search(board, lambda _: evaluation, puct.PuctSettings(simulations=1))


@functools.cache
def prepare(search: str) -> None:
    """Compile a search, `uct` or `puct`, unless an earlier process has done so; say what will take long."""
    if not is_compiled(search):
        say("compiling the search, which may take two minutes, but only once")
        compile_search(search)


if __name__ == "__main__":
    if sys.argv[1:] not in [[search] for search in LAST_COMPILED]:
        raise SystemExit(f"usage: python -m distill.mcts.compiling {'|'.join(LAST_COMPILED)}")
    compile_search(sys.argv[1])

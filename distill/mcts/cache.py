"""Where this room's compiled code is kept, whether it is there, and how it gets there before it is needed.

    python -m distill.mcts.cache teacher      # or puct: compiles that search where it is not compiled yet

The folder is named after a hash of this room's sources: Numba itself looks only at the file a function stands in, and
would run stale machine code after a change in a file it inlines from. Where no folder can be written, functions
compile anew in each process. Numba is loaded for compiling alone.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from distill.common import say

COMPILED_LAST = {"teacher": ("teacher._play",), "puct": ("walk.gather", "walk.absorb")}
"""By the module that searches, the functions that are compiled after all others, each named MODULE.FUNCTION."""


def _parents() -> Iterator[Path]:
    """Where compiled code may lie, best place first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield Path(__file__).parent / "__pycache__"
    if user := os.environ.get("XDG_CACHE_HOME"):
        yield Path(user) / "distill"
    with contextlib.suppress(RuntimeError):  # no home directory
        yield Path.home() / ".cache" / "distill"


def _folder() -> str | None:
    files = sorted(Path(__file__).parent.glob("*.py"))
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    for parent in _parents():
        folder = parent / f"compiled-{sources}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
    print("distill: no folder for compiled code can be written; compiling takes seconds each time", file=sys.stderr)
    return None


FOLDER = _folder()
"""None where none can be written."""


def holds(module: str) -> bool:
    """Whether an earlier process has left the compiled search of this module, `teacher` or `puct`."""
    return FOLDER is not None and all(any(Path(FOLDER).glob(f"*/{name}-*.nbc")) for name in COMPILED_LAST[module])


def compile_teacher() -> None:
    """All that `teacher.search` runs."""
    from distill.game.rules import EMPTY
    from distill.mcts import teacher

    teacher.search([EMPTY], teacher.SearchSettings(simulations=1))


def compile_puct() -> None:
    """All that `puct.search` runs, whatever network it asks."""
    import numpy as np

    from distill.game.rules import COLUMNS
    from distill.mcts import puct

    def predict(current: puct.Bitboards, _mask: puct.Bitboards) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(current), COLUMNS), np.float32), np.zeros(len(current), np.float32)

    empty = np.zeros(1, np.uint64)
    puct.search(empty, empty, puct.PuctSettings(simulations=1), predict, [0])


COMPILE = {"teacher": compile_teacher, "puct": compile_puct}


@functools.cache
def prepare(module: str) -> None:
    """Compile a search where no earlier process has, and say so first; worker processes then load it."""
    if not holds(module):
        say("compiling the search, which may take two minutes, but only once")
        COMPILE[module]()


if __name__ == "__main__":
    COMPILE[sys.argv[1]]()

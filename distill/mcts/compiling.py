"""Compile a search before it is needed, and where compiled code is kept: later processes load it in milliseconds.

    python -m distill.mcts.compiling uct        # or puct

The folder's name contains a hash of the sources and of Python's and Numba's versions. Numba itself checks only the file
in which a function stands, and would run stale machine code after a change in a file that it inlines from.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from distill.common import provenance, say


def _folder() -> str:
    """The first folder that can be written: the package's, the user's, or one that only this process uses."""
    package = Path(__file__).parent
    # Functions and constants of `game` are compiled in, too.
    files = sorted([*package.rglob("*.py"), *(package.parent / "game").glob("*.py")])
    known = str(provenance.versions("numba")).encode() + b"".join(path.read_bytes() for path in files)
    name = f"compiled-{hashlib.sha256(known).hexdigest()[:16]}"
    users = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "distill")
    for folder in (package / "__pycache__" / name, users / name):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
    return tempfile.mkdtemp()


FOLDER = _folder()


def compile_search(search: str) -> None:
    """Compile everything that `uct.search` or `puct.search` runs, or load it from the folder."""
    import numpy as np

    from distill.game.rules import EMPTY

    if search == "uct":
        from distill.mcts import uct

        uct.search([EMPTY], uct.UctSettings(simulations=1, votes=1))
    else:
        from distill.mcts import puct

        # Any evaluation will do: what compiles does not depend on it.
        puct.search([EMPTY], lambda _: (np.zeros((1, 7)), np.zeros(1)), puct.PuctSettings(simulations=1))
    Path(FOLDER, search).touch()


@functools.cache
def prepare(search: str) -> None:
    """Compile a search, `uct` or `puct`, unless an earlier process has done so; say that it will take long."""
    if not Path(FOLDER, search).exists():
        say("compiling the search, which may take two minutes, but only once")
        compile_search(search)


if __name__ == "__main__":
    compile_search(sys.argv[1])

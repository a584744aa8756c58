"""The folder of the compiled searches, and whether a search is there.

The folder's name contains a hash of the sources and of Python's and Numba's versions. Numba itself checks only the file
in which a function stands, and would run stale machine code after a change in a file that it inlines from. Where no
folder can be written, every process compiles for itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from distill.common import provenance, say

LAST_COMPILED = {"uct": "uct_games.play_games", "puct": "puct_simulation.take_evaluations"}
"""By search: the function of the engine that is compiled last."""


def _parents() -> Iterator[Path]:
    """Folders that may hold the compiled code, best first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield Path(__file__).parent / "__pycache__"
    if user := os.environ.get("XDG_CACHE_HOME"):
        yield Path(user) / "distill"
    with contextlib.suppress(RuntimeError):  # no home directory
        yield Path.home() / ".cache" / "distill"


def _folder() -> str | None:
    here = Path(__file__).parent
    files = sorted([*here.rglob("*.py"), *(here.parent / "game").glob("*.py")])  # constants of `game` are compiled in
    known = str(provenance.versions("numba")).encode() + b"".join(path.read_bytes() for path in files)
    sources = hashlib.sha256(known).hexdigest()[:16]
    for parent in _parents():
        folder = parent / f"compiled-{sources}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
    say("no folder for compiled code can be written; compiling takes up to two minutes each time")
    return None


FOLDER = _folder()
"""None where no folder can be written."""


def is_compiled(search: str) -> bool:
    """Whether an earlier process has compiled this search, a key of LAST_COMPILED. Does not load Numba."""
    return FOLDER is not None and any(Path(FOLDER).glob(f"*/{LAST_COMPILED[search]}-*.nbc"))

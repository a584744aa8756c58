"""The folder that a command writes: locked for one writer, known by its kind, and only a run's own files are deleted.

A command loads and checks everything that it was given and locks the folder. Then it checks what the folder holds, and
only after that deletes or writes:

    with folders.locked(out):
        folders.require(out, folders.TRAINING, own=FILES, restart=config.restart)
        ...                                                # whatever else may be wrong
        if config.restart:
            folders.clear(out, FILES)

Readers need no lock, because files and folders are renamed into place when they are complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distill.common.errors import UserError
from distill.common.files import PARTIAL, behind_links

LOCK = ".lock"
"""Name of the empty file that is locked while its folder is written."""
TRIES = 1000
"""How often a folder is created again for its lock, where other processes remove it in between."""
LITTER = {"$RECYCLE.BIN", "@eaDir", "System Volume Information", "Thumbs.db", "desktop.ini", "lost+found"}
"""What systems put into any folder, beside hidden names such as `.DS_Store`."""


def visible(names: Iterable[str]) -> list[str]:
    """The names that a user or a program has put there: neither hidden nor litter."""
    return [name for name in names if not name.startswith(".") and name not in LITTER]


def all_visible(folder: Path) -> list[str]:
    """The visible names in a folder, sorted; none where there is no folder."""
    return visible(_names(folder))


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def refuse_file(folder: Path) -> None:
    """Raise UserError where a file takes the place of a folder."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; a folder is needed here")


# Deleting and replacing -----------------------------------------------------------------------------------------------


def clear(folder: Path, own: Sequence[str]) -> None:
    """Delete a run's own files and folders for --restart, in this order. Links are removed, not what they lead to.

    List the completion marker first, so that a crash leaves an unfinished run. Never list the only file that records
    the kind. Raises UserError, before anything is deleted, for a name that leads out of the folder.
    """
    for name in own:
        if name != Path(name).name or name in ("", ".."):
            raise UserError(f"{folder}: {name!r} is no name of a file in it; nothing was deleted")
    for name in own:
        path, gone = folder / name, folder / f".gone.{name}"
        shutil.rmtree(gone, ignore_errors=True)  # left by a killed restart
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            continue
        with contextlib.suppress(OSError):  # neither a mounted volume nor an image's folder can be renamed
            path = path.rename(gone)  # a half-deleted folder must not look like a run
        shutil.rmtree(path)


@contextmanager
def replaced(place: Path, own: Callable[[Path], Sequence[str]]) -> Iterator[Path]:
    """Yield an empty folder for new files, which replace the old ones once the body has ended without an error.

    `own` maps a folder to the names in it that the program wrote, the file that lists them first: it is replaced last.
    Everything else at `place` stays. Where `place` is a link, the folder that it leads to is filled. The caller holds
    a lock.
    """
    place = behind_links(place)
    new = place / f".new{PARTIAL}"
    shutil.rmtree(new, ignore_errors=True)  # left by a killed process
    new.mkdir(parents=True)
    try:
        yield new
        clear(place, own(place)[1:])
        for name in reversed(own(new)):
            os.replace(new / name, place / name)
    finally:
        shutil.rmtree(new)
        with contextlib.suppress(OSError):  # it holds files unless it was made here, and the body failed
            place.rmdir()

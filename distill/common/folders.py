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
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import portalocker

from distill.common import cli
from distill.common.errors import UserError
from distill.common.files import HALF_WRITTEN, PARTIAL, behind_links

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


# One writer -----------------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder for one writer; the system releases the lock however the process ends.

    A body that ends without an error removes the half-written files that killed processes left in the folder. One that
    fails or leaves the folder empty leaves no lock file and no folder that did not exist before.

    Args:
      folder: created where missing.
      wait: wait for another holder instead of raising UserError.
    """
    refuse_file(folder)
    path = behind_links(folder) / LOCK  # the target of a link need not exist yet
    new = [each for each in (path, *path.parents) if not each.exists()]
    stays = False
    # What this process creates it also removes, unless the body fills it.
    with _locked_file(path, folder, wait):
        try:
            yield
            _sweep_files(folder)
            stays = len(_names(folder)) > 1
        finally:
            if path in new and not stays:
                with contextlib.suppress(OSError):  # Windows removes no open file; a folder may not be empty
                    path.unlink()  # while it is locked: a waiting process notices that it is gone
                    for each in new[1:]:
                        each.rmdir()


def _locked_file(path: Path, folder: Path, wait: bool) -> IO[bytes]:
    tries = 0
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)  # again: a holder that failed may have removed it
            file = path.open("a+b")  # network file systems want it writable
        except (FileExistsError, FileNotFoundError):  # removed between two of these steps
            tries += 1
            if tries == TRIES or (path.parent.exists() and not path.parent.is_dir()):
                raise
            continue
        try:
            portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):  # its holder has removed it
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()
        except portalocker.AlreadyLocked:
            file.close()
            if not wait:
                message = f"{folder}: another process is writing here; wait for it, or choose another --out"
                raise UserError(message) from None
            time.sleep(0.1)
        except portalocker.LockException as error:
            raise UserError(f"{path}: cannot be locked ({error})") from None


def _sweep_files(folder: Path) -> None:
    """Remove half-written files. The folder may be a user's home, so only files named as ours go."""
    for path in folder.glob(f".*{PARTIAL}"):
        if HALF_WRITTEN.fullmatch(path.name):
            path.unlink(missing_ok=True)


# What a folder holds --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What a command fills a folder with: its name in the folder's JSON files, and in messages."""

    name: str
    description: str


GAMES = Kind("games", "games of the teacher")
NETWORK_GAMES = Kind("network-games", "games of a network")
PACKED_BOARDS = Kind("packed", "packed boards")
TABLES = Kind("tables", "prepared tables")
TRAINING = Kind("training", "a training run")
SELFPLAY = Kind("selfplay", "a run of self-play")
REINFORCE = Kind("reinforce", "a run of REINFORCE")
EVALUATION = Kind("evaluation", "an evaluation")
ARENA = Kind("arena", "an arena")
WALK = Kind("walk", "a walk")
KINDS = {
    kind.name: kind
    for kind in (GAMES, NETWORK_GAMES, PACKED_BOARDS, TABLES, TRAINING, SELFPLAY, REINFORCE, EVALUATION, ARENA, WALK)
}

RECORDS = ("manifest.json", "run.json", "config.json", "metrics.json", "arena.json")
"""Files whose entry `kind` tells what a folder holds, the most trusted first."""


def stored(kind: Kind, config: Any) -> dict[str, Any]:
    """The contents of a folder's config.json: its kind, and the settings without --restart, which `--config` reads."""
    return {"kind": kind.name} | cli.as_json(dataclasses.replace(config, restart=False))


def kind_in(names: Iterable[str], read: Callable[[str], bytes]) -> Kind | None:
    """The kind that the first readable record among these files names; None where none names one."""
    for name in (record for record in RECORDS if record in names):
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):  # gone by now, or damaged
            content = json.loads(read(name))
            if isinstance(content, dict) and str(content.get("kind")) in KINDS:
                return KINDS[content["kind"]]
    return None


def kind_of(folder: Path) -> Kind | None:
    """The kind of a local folder; None where nothing there names one, or there is no folder."""
    return kind_in(_names(folder), lambda name: (folder / name).read_bytes())


def require(folder: Path, kind: Kind, *, own: Sequence[str], restart: bool = False) -> None:
    """Raise UserError unless a folder is free for what a command writes, or of its kind. Nothing is changed.

    Args:
      folder: need not exist.
      own: names of the files and folders that will be written.
      restart: whether what is there will be deleted; then a folder with files must be known to be of the kind.
    """
    refuse_file(folder)
    there = all_visible(folder)
    in_the_way = there if restart else [name for name in there if name in own or name == "config.json"]
    require_kind(folder, kind, kind_of(folder), in_the_way)


def require_kind(place: object, kind: Kind, found: Kind | None, in_the_way: Sequence[str]) -> None:
    """Raise UserError where a place is of another kind, or of none and holds files that are in the way."""
    if found is not None and found != kind:
        raise UserError(f"{place}: holds {found.description}, not {kind.description}; name another --out")
    if found is None and in_the_way:
        first = in_the_way[0] + (", ..." if len(in_the_way) > 1 else "")
        raise UserError(f"{place}: holds files that no run of distill recorded ({first}); name another --out")


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

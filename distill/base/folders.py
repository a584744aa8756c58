"""The folder that a command writes: one writer at a time, known by the settings in it, and only a run's own is deleted.

A command loads and checks all that it was given, takes the folder's lock, asks whose folder it is, and only then
deletes or writes:

    with folders.locked(out):
        folders.require(out, folders.TRAINING, own=FILES, restart=config.restart)
        ...                                                # whatever else may be wrong
        if config.restart:
            folders.clear(out, FILES)

Reading needs no lock: what a reader meets is whole, since files and folders are put in place by a rename.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import portalocker

from distill.base import cli
from distill.base.errors import UserError
from distill.base.files import PARTIAL

LOCK = ".lock"
"""The file whose lock is held, empty, in the folder that is written."""

# One writer -----------------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, *, shared: bool = False, wait: bool = False, beside: bool = False) -> Iterator[None]:
    """Hold a folder for one writer; the system takes the lock back when the process ends, however it ends.

    Args:
      folder: made where missing.
      shared: hold it together with others that share it, against those that do not.
      wait: until the others are done, instead of raising UserError.
      beside: lock a file next to the folder, which may then be replaced as a whole; it is removed in the end.

    A body that ends well leaves no half-written file of a killed process in the folder, but for folders in it that have
    a lock of their own. One that fails leaves no lock file and no empty folder behind that were not there before.
    """
    refuse_file(folder)
    path = folder.resolve().with_name(f".{folder.resolve().name}{LOCK}") if beside else folder / LOCK
    new_folders = [each for each in (path.parent, *path.parent.parents) if not each.exists()]
    new_file = not path.exists()
    file = _lock(path, folder, shared, wait)
    leaves_nothing = beside
    try:
        yield
        if not (shared or beside):
            _sweep_files(folder)
    except BaseException:
        leaves_nothing = True
        raise
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file
            if leaves_nothing and new_file and not shared:
                path.unlink()  # while it is held: whoever waits for it notices that it is gone
                for each in new_folders:
                    each.rmdir()
        portalocker.unlock(file)
        file.close()


def refuse_file(folder: Path) -> None:
    """Raise UserError where a file lies in a folder's place."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; a folder is needed here")


def _sweep_files(folder: Path) -> None:
    """Remove what killed processes left half-written, but not where another one may write now."""
    for place, inside, files in os.walk(folder):
        if LOCK in files and Path(place) != folder:
            inside.clear()
            continue
        for name in files:
            if name.startswith(".") and name.endswith(PARTIAL):
                Path(place, name).unlink()


def _lock(path: Path, folder: Path, shared: bool, wait: bool) -> IO[bytes]:
    """The lock file, open and locked. Raises UserError where another process holds it, unless told to wait."""
    kind = portalocker.LOCK_SH if shared else portalocker.LOCK_EX
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)  # again: a holder that failed may have removed it
        file = path.open("a+b")  # network file systems want it readable for a shared lock, writable for the other
        try:
            portalocker.lock(file, kind | portalocker.LOCK_NB)
            if _is_there(file, path):
                return file
        except portalocker.AlreadyLocked:
            if not wait:
                file.close()
                raise UserError(
                    f"{folder}: another process is writing here; wait for it, or choose another --out"
                ) from None
            time.sleep(0.1)
        except (portalocker.LockException, ImportError) as error:  # on Windows sharing takes the package pywin32
            file.close()
            raise UserError(f"{path}: cannot be locked ({error})") from None
        file.close()


def _is_there(file: IO[bytes], path: Path) -> bool:
    """Whether the open file is still the one at its path: a holder may have removed it before it was locked here."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


# Whose folder it is ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a command fills a folder with.

    Attributes:
      noun: in words.
      known: whether settings found in a folder are of this kind.
    """

    noun: str
    known: Callable[[Mapping[str, Any]], bool]


def _named(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda settings: {*names} <= {*settings}


TEACHER_GAMES = Kind(noun="games of the teacher", known=_named("votes", "rollout"))
NETWORK_GAMES = Kind(
    noun="games of a network",
    known=lambda settings: bool(settings.get("games_only")) or {"puct_version", "network"} <= {*settings},
)
PACKED_BOARDS = Kind(noun="packed boards", known=lambda settings: settings.get("kind") == "packed")
TABLES = Kind(noun="prepared tables", known=_named("validation_fraction", "excluded"))
TRAINING = Kind(noun="a training run", known=_named("validation_fraction", "arch"))
LOOP = Kind(
    noun="a run of self-play", known=lambda settings: "arena_games" in settings and not settings.get("games_only")
)
REINFORCE = Kind(noun="a run of REINFORCE", known=_named("entropy", "baseline"))
EVALUATION = Kind(noun="an evaluation", known=_named("players", "label_rows"))
KINDS = (TEACHER_GAMES, NETWORK_GAMES, PACKED_BOARDS, TABLES, TRAINING, LOOP, REINFORCE, EVALUATION)

MARKS = (("manifest.json", "identity"), ("run.json", "identity"), ("config.json", None), ("metrics.json", "config"))
"""Files that tell whose a folder is, the most trusted first, and the entry that has the settings; None: all of it."""


def settings_in(names: Iterable[str], read: Callable[[str], bytes]) -> Mapping[str, Any] | None:
    """The settings that the first readable mark among these files names; None where no file tells any."""
    for name, entry in MARKS:
        if name not in names:
            continue
        try:
            stored = json.loads(read(name))
        except (FileNotFoundError, ValueError, RecursionError):
            continue  # gone by now, or damaged: it tells nothing
        if entry is not None:
            stored = stored.get(entry) if isinstance(stored, dict) else None
        if isinstance(stored, dict):
            return stored
    return None


def noun_of(settings: Mapping[str, Any]) -> str:
    """What a folder with these settings holds, in words."""
    return next((kind.noun for kind in KINDS if kind.known(settings)), "something else")


def require(folder: Path, kind: Kind, *, own: Sequence[str], restart: bool = False) -> None:
    """Raise UserError unless a folder is free for what a command writes, or of its kind. Nothing is changed.

    Args:
      folder: need not be there.
      own: names of the files and folders that will be written.
      restart: whether what is there will be deleted; then a folder with files must be known to be of the kind.
    """
    refuse_file(folder)
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    visible = [name for name in names if not name.startswith(".")]
    in_the_way = visible if restart else [name for name in visible if name in own or name == "config.json"]
    judge(folder, kind, settings_in(names, lambda name: (folder / name).read_bytes()), in_the_way)


def judge(place: object, kind: Kind, settings: Mapping[str, Any] | None, in_the_way: Sequence[str]) -> None:
    """Raise UserError where a place has settings of another kind, or none and files that are in the way."""
    if settings is not None:
        if not kind.known(settings):
            raise UserError(f"{place}: holds {noun_of(settings)}, not {kind.noun}; name another --out")
    elif in_the_way:
        first = in_the_way[0] + (", ..." if len(in_the_way) > 1 else "")
        raise UserError(f"{place}: holds files that tell of no run ({first}); name another --out")


# Deleting and replacing -----------------------------------------------------------------------------------------------


def clear(folder: Path, own: Sequence[str]) -> None:
    """Delete a run's own files and folders, for --restart: in this order, a folder all at once.

    Named first is the file that declares the end; named never the one that says whose folder it is, which is replaced:
    a process that is killed in here leaves an unfinished run of the same kind.
    """
    for name in own:
        path, gone = folder / name, folder / f".gone.{name}"
        shutil.rmtree(gone, ignore_errors=True)
        if path.is_dir() and not path.is_symlink():
            os.rename(path, gone)
            shutil.rmtree(gone)
        else:
            path.unlink(missing_ok=True)
    cli.had_its_effect("--restart")


@contextmanager
def replaced(place: Path) -> Iterator[Path]:
    """Where to make a new folder: it takes `place` as a whole once the body has ended well.

    What stands there stays until then. Beside the new folder is room for what is needed on the way; both lie in a
    hidden folder that goes in the end. The caller holds a lock against others that would replace the same.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place)
    workplace = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=PARTIAL, dir=place.parent))
    try:
        yield workplace / "new"
        if place.exists():
            os.rename(place, workplace / "old")
        os.rename(workplace / "new", place)
    finally:
        _remove(workplace, place)


def sweep(place: Path) -> None:
    """Remove what killed processes left of replacing a folder."""
    for entry in place.parent.iterdir():
        if entry.name.startswith(f".{place.name}.") and entry.name.endswith(PARTIAL) and entry.is_dir():
            _remove(entry, place)


def _remove(workplace: Path, place: Path) -> None:
    """Remove a workplace; where it ends between the two renamings, what had stood at `place` comes back first."""
    if (workplace / "old").exists() and not place.exists():
        os.rename(workplace / "old", place)
    shutil.rmtree(workplace, ignore_errors=True)

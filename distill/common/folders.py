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
import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import portalocker

from distill.common import cli
from distill.common.errors import UserError
from distill.common.files import HALF_WRITTEN, PARTIAL, behind_links

LOCK = ".lock"
"""The file whose lock is held, empty, in the folder that is written."""
LITTER = {"$RECYCLE.BIN", "@eaDir", "System Volume Information", "Thumbs.db", "desktop.ini", "lost+found"}
"""What systems put into any folder, beside hidden names such as `.DS_Store`."""
DEEPEST = 3
"""Levels below a run's folder on which it writes: `iterations/0001/games`."""


def visible(names: Iterable[str]) -> list[str]:
    """The names that a user or a program has put there: not hidden, and no litter."""
    return [name for name in names if not name.startswith(".") and name not in LITTER]


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


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
    place = behind_links(folder)  # where a link leads need not be there yet
    path = place.with_name(f".{place.name}{LOCK}") if beside else place / LOCK
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
    """Remove what killed processes left half-written, but not where another one may write now.

    The folder may be somebody's home: other programs' files stay, and it is not searched to the bottom.
    """
    for place, inside, files in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        if LOCK in files and depth:
            inside.clear()
            continue
        if depth == DEEPEST:
            inside.clear()
        for name in filter(HALF_WRITTEN.fullmatch, files):
            Path(place, name).unlink(missing_ok=True)


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
WALK = Kind(noun="a walk", known=_named("replies", "most_stones"))
KINDS = (TEACHER_GAMES, NETWORK_GAMES, PACKED_BOARDS, TABLES, TRAINING, LOOP, REINFORCE, EVALUATION, WALK)

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
    names = _names(folder)
    there = visible(names)
    in_the_way = there if restart else [name for name in there if name in own or name == "config.json"]
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
    a process that is killed in here leaves an unfinished run of the same kind. A link is removed, not what it leads to.
    """
    for name in own:
        path, gone = folder / name, folder / f".gone.{name}"
        shutil.rmtree(gone, ignore_errors=True)
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        elif os.path.ismount(path):
            _empty(path)
        else:
            _set_aside(path, gone)
            shutil.rmtree(gone)
    cli.had_its_effect("--restart")


def _empty(folder: Path) -> None:
    """Delete what a mounted volume holds; it cannot be renamed or removed itself."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=entry.name in LITTER)
        else:
            entry.unlink()


Own: TypeAlias = Callable[[Path], Collection[str]]
"""Takes a folder that may be replaced; returns the names in it that the program wrote. Everything else is kept."""


def all_visible(folder: Path) -> list[str]:
    """All names but hidden ones and litter, as an `Own`."""
    return visible(_names(folder))


def check_replaceable(place: Path, own: Own = all_visible) -> None:
    """Raise UserError or OSError where `replaced` could not put a new folder in its place, before the work on one."""
    refuse_file(place)
    place = behind_links(place)
    if os.path.ismount(place):
        raise UserError(_mounted(place))
    for entry in (place / name for name in own(place)):
        if os.path.ismount(entry):
            raise UserError(_mounted(entry))
        if entry.is_symlink():
            raise UserError(f"{entry}: a link, which a new {place.name} would replace; make {place} itself the link")
    parent = next(each for each in place.parents if each.exists())  # where a link leads it may be somebody else's
    tempfile.TemporaryDirectory(prefix=f".{place.name}.", suffix=PARTIAL, dir=parent).cleanup()


def _mounted(place: Path) -> str:
    return f"{place}: a mounted volume, which cannot be replaced as a whole; mount the folder above it instead"


@contextmanager
def replaced(place: Path, own: Own = all_visible) -> Iterator[Path]:
    """Where to make a new folder: it takes `place` as a whole once the body has ended well.

    Where `place` is a link, the folder it leads to is replaced, and the link stays. What stands there stays until then,
    and what is not `own` stays for good. Beside the new folder is room for what is needed on the way; both lie in a
    hidden folder that goes in the end. The caller holds a lock against others that would replace the same.
    """
    place = behind_links(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place, own)
    workplace = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=PARTIAL, dir=place.parent))
    try:
        yield workplace / "new"
        if place.exists():
            _set_aside(place, workplace / "old")
        os.rename(workplace / "new", place)
    finally:
        _remove(workplace, place, own)


def _set_aside(folder: Path, aside: Path) -> None:
    """Rename a folder. Raises UserError for a mounted volume that looks like a plain folder."""
    try:
        os.rename(folder, aside)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise UserError(_mounted(folder)) from None
        if error.errno != errno.EXDEV:
            raise
        # In a container, a folder that came with the image: its file system (overlayfs) renames no such folder.
        shutil.copytree(folder, aside, symlinks=True)
        shutil.rmtree(folder)


def sweep(place: Path, own: Own = all_visible) -> None:
    """Remove what killed processes left of replacing a folder."""
    for entry in place.parent.iterdir():
        if entry.name.startswith(f".{place.name}.") and entry.name.endswith(PARTIAL) and entry.is_dir():
            _remove(entry, place, own)


def _remove(workplace: Path, place: Path, own: Own) -> None:
    """Remove a workplace. First restore from the old folder what is not `own` to `place`.

    If the process was stopped between the two renames, nothing is at `place`: then restore the whole old folder.
    """
    old = workplace / "old"
    if old.exists() and not place.exists():
        os.rename(old, place)
    elif old.exists():
        for name in {*_names(old)} - {*own(old)} - {*_names(place)}:
            os.rename(old / name, place / name)
    shutil.rmtree(workplace, ignore_errors=True)

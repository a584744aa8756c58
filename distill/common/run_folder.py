"""The folder that a run writes: one record, one writer at a time, one comparison.

    with run_folder.opened(out, "training run", identity, settings=..., files=FILES, restart=config.restart) as run:
        if run.result is not None:     # the same run is finished
            return ...
        ...                            # check everything else: nothing has been changed so far
        run.begin()                    # deletes the old run's files after --restart, and writes the record
        ...                            # write the files; a killed run resumes here
        run.finish({"loss": 0.5})      # last, because the result marks the run as complete

The record says what kind of run the folder holds, what the run's outcome depends on (`identity`), the settings that
`--config` reads, and which files belong to the run. Only those files are ever deleted. Its name starts with "_", so
that pandas, polars and others skip it in a folder of Parquet files.

Readers need no lock, because files are renamed into place when they are complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import portalocker
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from distill.common import provenance
from distill.common.errors import DataError, UserError, first_line, listed
from distill.common.files import PARTIAL, canonical_json, json_bytes
from distill.common.settings import by_path
from distill.common.storage import Folder, Place, Storage, storage_of

RECORD = "_run.json"
LOCK = ".lock"
"""Name of the empty file that is locked while its folder is written; it stays."""
LIBRARIES = ("distill", "keras", "tensorflow", "jax", "torch", "numba", "numpy", "pyarrow")
"""Libraries whose versions are recorded where they are installed."""


class Record(BaseModel):
    """What `_run.json` says.

    Attributes:
      kind: what the folder holds, in words, such as "games".
      identity: everything that the run's outcome depends on; empty while --restart deletes the old files.
      settings: of the command, as `--config` reads them.
      files: names of the run's files and folders; a record from elsewhere must not reach outside its folder.
      result: None until the run is finished.
    """

    model_config = ConfigDict(frozen=True, strict=True)
    kind: str
    identity: dict[str, Any]
    settings: dict[str, Any]
    files: list[Annotated[str, Field(pattern=r"^[^/\\]*[^/\\.][^/\\]*$")]]
    versions: dict[str, Any]
    commit: str | None = None
    result: dict[str, Any] | None = None


def read(place: Place) -> Record | None:
    """The record of a folder; None where there is none. Raises DataError for one that is damaged."""
    storage = storage_of(place)
    try:
        return Record.model_validate_json(storage.read(RECORD))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"damaged ({'.'.join(map(str, first['loc']))}: {first['msg']})"
        raise DataError(f"{storage}/{RECORD}: {problem}; restore it, or delete {storage}") from error


def finished(place: Place, *kinds: str) -> Record:
    """The record of a finished run of one of these kinds. Raises DataError where there is none."""
    record = read(place)
    if record is None:
        raise DataError(f"{place}: no {RECORD}, so no run of distill was finished here")
    if record.kind not in kinds:
        raise DataError(f"{place}: holds {record.kind}, not {' or '.join(kinds)}")
    if record.result is None:
        raise DataError(f"{place}: the run is not finished; start its command again to resume it")
    return record


def result_of(place: Place) -> dict[str, Any]:
    """The result of a run; empty where there is no finished one."""
    record = read(place)
    return (record.result or {}) if record else {}


@dataclass(kw_only=True)
class Run:
    """A folder that this process may write.

    Attributes:
      ours: the record that `begin` writes.
      restart: whether `begin` deletes what the folder holds.
      record: the record in the folder, None in a new one.
    """

    storage: Storage
    ours: Record
    restart: bool
    record: Record | None = None

    def check(self) -> None:
        """Read the record. Raises UserError unless this run may be written where it is."""
        self.record, ours = read(self.storage), self.ours
        if self.record and self.record.kind != ours.kind:
            raise UserError(f"{self.storage}: holds {self.record.kind}, not {ours.kind}; name another folder")
        recorded = self.record.files if self.record else []
        if strangers := [name for name in self.storage.names() if name in ours.files and name not in recorded]:
            what = f"holds files that no run recorded ({listed(strangers)})"
            raise UserError(f"{self.storage}: {what}; name another folder, or delete them")
        if not self.starts and self.record and (different := differences(self.record.identity, ours.identity)):
            what = f"holds {ours.kind} with other settings ({listed(different)})"
            raise UserError(f"{self.storage}: {what}; name another folder, or --restart to delete it")

    @property
    def starts(self) -> bool:
        """Whether `begin` starts from scratch; a killed deletion has left a record without an identity."""
        return self.restart or self.record is None or not self.record.identity

    @property
    def result(self) -> dict[str, Any] | None:
        """The result of the finished run; None for a run to start, to start again or to resume."""
        return None if self.starts or self.record is None else self.record.result

    def begin(self, files: Collection[str] = ()) -> None:
        """Delete the old run's files after --restart, and record the run as unfinished, with these further files."""
        kept = self.record.files if self.record else []
        if self.record and self.starts:
            self._write(self.record.model_copy(update={"identity": {}, "result": None}))
            for name in kept:
                self.storage.delete(name)
            kept = []
        self.restart = False
        self.ours = self.ours.model_copy(update={"files": sorted({*kept, *self.ours.files, *files})})
        self._write(self.ours)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Record the result, which completes the run."""
        assert self.record is not None
        self._write(self.record.model_copy(update={"result": dict(result)}))

    def _write(self, record: Record) -> None:
        self.storage.write(RECORD, json_bytes(record.model_dump()))
        self.record = record


@contextmanager
def opened(
    place: Place,
    kind: str,
    identity: Mapping[str, Any],
    *,
    settings: Mapping[str, Any],
    files: Collection[str],
    restart: bool = False,
    wait: bool = False,
) -> Iterator[Run]:
    """Hold a folder for one writer. Nothing in it is changed before `Run.begin`.

    Args:
      place: a folder, created where missing, or a URL, which has no lock: two writers of one run write the same bytes.
      kind, identity, settings, files: as in `Record`.
      restart: whether `begin` deletes the run in the folder.
      wait: wait for another writer instead of raising UserError.

    Raises UserError where the folder holds a run of another kind or with another identity, or files of these names
    that no run recorded.
    """
    ours = Record(
        kind=kind, identity=json.loads(canonical_json(identity)), settings=dict(settings), files=[*files],
        versions=provenance.versions(*LIBRARIES), commit=provenance.commit(),
    )  # fmt: skip
    run = Run(storage=storage_of(place), ours=ours, restart=restart)
    run.check()  # before a folder is created for the lock
    folder = run.storage.path if isinstance(run.storage, Folder) else None
    with locked(folder, wait=wait) if folder else nullcontext():
        run.check()
        yield run
        if folder:
            for path in folder.glob(f".*{PARTIAL}"):  # of files of the run, left by killed processes
                if path.stem[1:].rpartition(".")[0] in {*files, RECORD}:
                    path.unlink(missing_ok=True)


@contextmanager
def replaced(folder: Path, kind: str, files: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder, whose files replace those of the run in `folder` once the body has ended without an error.

    A process that is killed before leaves the old files; while they are replaced, an unfinished run, which the next
    call deletes. Raises UserError as `opened` does.
    """
    with opened(folder, kind, {}, settings={}, files=files, restart=True) as run:
        new = folder / f".new{PARTIAL}"  # on the same disk
        shutil.rmtree(new, ignore_errors=True)  # left by a killed process
        new.mkdir()
        try:
            yield new
            run.begin()
            for path in new.iterdir():
                path.rename(folder / path.name)
            run.finish({})
        finally:
            shutil.rmtree(new, ignore_errors=True)


def differences(recorded: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Each entry that differs, in words: "seed 1 there, 2 here"; entries of nested objects by dotted names."""
    old, new = by_path(recorded), by_path(ours)
    names = [name for name in {**new, **old} if new.get(name) != old.get(name)]
    return [f"{name} {old.get(name)} there, {new.get(name)} here" for name in names]


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder, which is created where missing, for one writer; the system releases the lock of a killed process.

    Raises UserError where another process holds it and `wait` is not set.
    """
    path = folder.resolve() / LOCK  # the target of a link need not exist yet
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = portalocker.Lock(path, "a", timeout=1e9 if wait else 0, check_interval=0.1, fail_when_locked=not wait)
    try:
        lock.acquire()
    except portalocker.AlreadyLocked as error:
        raise UserError(f"{folder}: another process is writing here; wait for it, or name another folder") from error
    except portalocker.LockException as error:
        raise UserError(f"{folder}: no file can be locked here ({first_line(error)}); name another disk") from error
    try:
        yield
    finally:
        lock.release()

"""Where the files of a run are: a folder, or a URL that fsspec understands (extra `remote`).

Storage holds whole files by name. In a folder a file appears by a rename, elsewhere by one upload.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from distill.common import DataError, UserError, first_line, write_atomically
from distill.common.provenance import extra


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of this machine, or one that many machines share."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """Names of all files and folders, sorted, hidden ones too; none where there is no folder yet."""
        return sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises FileNotFoundError."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        write_atomically(self.path / name, content)

    def delete(self, name: str) -> None:
        """Remove a file or a folder, if it exists; of a link the link alone."""
        path = self.path / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Remote:
    """The same under a URL of fsspec, most often an object store. Its library finds the credentials."""

    url: str

    def __str__(self) -> str:
        return self.url

    def names(self) -> list[str]:
        with self._system() as (system, root):
            system.invalidate_cache()
            try:
                paths = system.ls(root, detail=False)
            except FileNotFoundError:
                return []
        # A console marks an empty folder by an object with the folder's name.
        return sorted(Path(path).name for path in paths if path.rstrip("/") != root)

    def read(self, name: str) -> bytes:
        with self._system() as (system, root):
            return bytes(system.cat_file(f"{root}/{name}"))

    def write(self, name: str, content: bytes) -> None:
        with self._system() as (system, root):
            system.pipe_file(f"{root}/{name}", content)

    def delete(self, name: str) -> None:
        with self._system() as (system, root), contextlib.suppress(FileNotFoundError):
            system.rm_file(f"{root}/{name}")

    @contextlib.contextmanager
    def _system(self) -> Iterator[tuple[Any, str]]:
        """The file system and the root in it; any error of its library becomes one line that names the URL."""
        with extra("remote", self.url):
            import fsspec
        try:
            yield fsspec.url_to_fs(self.url)
        except (FileNotFoundError, UserError):
            raise
        except Exception as error:  # any storage has errors of its own
            raise DataError(f"{self.url}: {first_line(error)}") from error


Storage: TypeAlias = Folder | Remote
"""Whole files by name; `str` of it is what users call it."""
Place: TypeAlias = str | Path | Storage
"""A folder, a URL such as s3://bucket/games, or storage."""


def storage_of(place: Place) -> Storage:
    """The storage of a path or of a URL; storage is returned as it is."""
    if not isinstance(place, str | Path):
        return place
    text = str(place).removeprefix("file://")
    return Remote(url=text.rstrip("/")) if "://" in text else Folder(path=Path(text))

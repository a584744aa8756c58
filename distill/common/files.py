"""Atomic files and folders, canonical JSON and hashes."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PARTIAL = ".partial"
"""Suffix of hidden files and folders that are not complete; a killed process leaves them behind."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by `content`; readers see the old file or the new one. A link stays a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # A hidden file beside the target, on the same disk, then a rename: it appears whole or not at all.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # a full disk is named, too
        raise


@contextmanager
def swapped(place: Path, written: Callable[[Path], Collection[str]]) -> Iterator[Path]:
    """Yield an empty folder beside `place`, which takes its place once the body has ended without an error.

    Two renames put it in place, so readers see all of the old folder or all of the new one. What a killed process left
    between them is put right by the next call. Where `place` is a link, the folder that it leads to is replaced.

    Args:
      written: maps a folder to the names in it that the program wrote; empty unless the folder is complete. Everything
        else at `place` moves into the new folder. The caller holds a lock.
    """
    place = place.resolve()
    new, old = (place.with_name(f".{place.name}.{which}{PARTIAL}") for which in ("new", "old"))
    _settle(place, old, written)
    shutil.rmtree(new, ignore_errors=True)  # left by a killed process
    new.mkdir(parents=True)
    try:
        yield new
        if place.exists():
            place.rename(old)
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        _settle(place, old, written)


def _settle(place: Path, old: Path, written: Callable[[Path], Collection[str]]) -> None:
    """Finish a swap whose new folder is in place, or else bring the old one back; remove the old one last."""
    if not old.exists():
        return
    if not written(place):
        old.rename(place)
        return
    for name in {path.name for path in old.iterdir()} - {*written(old)}:
        if not os.path.lexists(place / name):
            (old / name).rename(place / name)
    shutil.rmtree(old)


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """The content of a JSON file, indented."""
    return (json.dumps(content, indent=1) + "\n").encode()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically."""
    write_atomically(path, json_bytes(content))


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if the file is missing or holds something else."""
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def canonical_json(value: Any) -> str:
    """The same text for equal values: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Atomic files, canonical JSON and hashes."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
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


def json_hash(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""The row, the prepared row and the manifest: types, meanings, and the only code that reads or writes them.

A shard is one Parquet file of raw rows, one row a labelled position, sorted by (game_id, ply). Its
file metadata carry the run's identity, so a shard explains itself; no time, host or path is in it.
`manifest.json` is written last: a folder that has one is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill.cli import UserError

SCHEMA_VERSION = 1
"""Raised whenever a column changes meaning, of raw or of prepared rows."""

ROW = pa.schema(
    [
        ("game_id", pa.int64()),  # index of the game in the run
        ("ply", pa.int8()),  # stones on the board
        ("current", pa.uint64()),  # stones of the side to move
        ("mask", pa.uint64()),  # all stones
        ("votes", pa.list_(pa.int8())),  # column each search chose; -1 for a vote that was skipped
        ("label", pa.int8()),  # the majority of the votes
        ("visits", pa.list_(pa.int32(), 7)),  # root visits summed over the searches; 0 on full columns
        ("simulations", pa.int32()),  # simulations executed, all votes together
        ("value", pa.float32()),  # root value in [-1, 1] for the side to move, mean over the searches
        ("move", pa.int8()),  # column played
        ("outcome", pa.int8()),  # the game's result for the side to move here: 1, 0, -1
    ]
)

PREPARED_ROW = pa.schema(
    [
        ("current", pa.uint64()),  # canonical board: the smaller of it and its mirror
        ("mask", pa.uint64()),
        ("visits", pa.list_(pa.int64(), 7)),  # summed over the merged rows
        ("label", pa.int8()),  # most rows, then most visits, then nearest the centre, then lower column
        ("value", pa.float32()),  # mean over the merged rows
        ("outcome", pa.float32()),  # mean over the merged rows
        ("count", pa.int32()),  # raw rows merged
        ("split", pa.int8()),  # 0 training, 1 validation
    ]
)
TRAINING, VALIDATION = 0, 1

MANIFEST = "manifest.json"


class DataError(UserError):
    """Data on disk that cannot be used; the message is one line that names the file and what to do."""


def canonical_json(value: Any) -> str:
    """One fixed text for equal values: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def table_writer(sink: Any, schema: pa.Schema, metadata: Mapping[str, Any]) -> pq.ParquetWriter:
    """A writer into a path or stream, with page checksums and `metadata` under the key "distill"."""
    writer = pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True, store_schema=False)
    writer.add_key_value_metadata({"distill": canonical_json(metadata)})  # store_schema=False drops the schema's own
    return writer


def write_table(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    """Write one Parquet file atomically, with page checksums and `metadata` under the key "distill"."""
    sink = pa.BufferOutputStream()
    with table_writer(sink, table.schema, metadata) as writer:
        writer.write_table(table)
    write_atomically(path, sink.getvalue().to_pybytes())


def read_metadata(path: Path) -> dict[str, Any]:
    """The "distill" metadata of a Parquet file. Raises DataError where there is none."""
    try:
        stored = (pq.read_schema(path).metadata or {}).get(b"distill")
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None
    if stored is None:
        raise DataError(f"{path}: not written by distill (no metadata)")
    metadata: dict[str, Any] = json.loads(stored)
    return metadata


def read_table(path: Path, schema: pa.Schema = ROW) -> tuple[pa.Table, dict[str, Any]]:
    """A table and its metadata, checksums and schema verified.

    Raises DataError for a file that is truncated, damaged, foreign, of another schema version or
    without a column.
    """
    metadata = read_metadata(path)
    check_schema(path, metadata, schema)
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: damaged ({_first_line(error)})") from None
    return table.select(schema.names).cast(schema), metadata


def check_schema(path: Path, metadata: Mapping[str, Any], schema: pa.Schema = ROW) -> None:
    """Raise DataError unless a file has this schema version and every column of `schema`, in its type."""
    version = metadata.get("schema_version")
    if version != SCHEMA_VERSION:
        advice = "update distill" if isinstance(version, int) and version > SCHEMA_VERSION else "generate it again"
        raise DataError(f"{path}: schema version {version}, this distill reads {SCHEMA_VERSION}; {advice}")
    found = pq.read_schema(path)
    for field in schema:
        if field.name not in found.names:
            raise DataError(f"{path}: column {field.name!r} is missing")
        if not _same_type(found.field(field.name).type, field.type):
            raise DataError(
                f"{path}: column {field.name!r} has type {found.field(field.name).type}, expected {field.type}"
            )


def _same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_list(found) or pa.types.is_fixed_size_list(found):
        return bool(hasattr(expected, "value_type") and found.value_type == expected.value_type)
    return bool(found == expected)


def matrix(column: pa.ChunkedArray, width: int = 7) -> NDArray[Any]:
    """A list column whose lists all have `width` entries, as an array (B, width)."""
    flat: NDArray[Any] = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, width)


def numbers(array: pa.Array) -> NDArray[Any]:
    """The values of a numeric array without nulls. (`to_numpy` imports pandas: 40 MB in every worker.)"""
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


def content_hash(table: pa.Table) -> str:
    """SHA-256 over the columns' values alone: equal for equal rows, whatever wrote the file."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        digest.update(f"{name}:{column.type}:{len(column)};".encode())
        if pa.types.is_list(column.type):
            digest.update(np.diff(numbers(column.offsets)).astype("<i4").tobytes())
        array = numbers(column.flatten() if pa.types.is_nested(column.type) else column)
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Declare a folder complete."""
    write_atomically(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a complete folder. Raises DataError where it is missing or cannot be read."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{folder}: no {MANIFEST}, so the run that writes it is not finished; start it again") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({_first_line(error)})") from None
    if not isinstance(manifest, dict) or manifest.get("schema_version") != SCHEMA_VERSION:
        version = manifest.get("schema_version") if isinstance(manifest, dict) else None
        raise DataError(f"{path}: schema version {version}, this distill reads {SCHEMA_VERSION}")
    return manifest


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

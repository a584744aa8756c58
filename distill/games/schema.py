"""The row, the prepared row and the shard: types, meanings, and the only code that reads or writes them.

A shard is one Parquet file of raw rows, one row a labelled position, sorted by (game_id, ply). Its
file metadata carry the run's identity, so a shard explains itself; no time, host or path is in it.
The result in the folder's record lists the shards (`common/run_folder.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill.common import DataError, canonical_json, first_line, write_atomically
from distill.common.run_folder import RECORD
from distill.game.rules import COLUMNS

SCHEMA_VERSION = 1
"""Raised whenever a column changes meaning, of raw or of prepared rows."""

ROW = pa.schema(
    [
        ("game_id", pa.int64()),  # index of the game in the run
        ("ply", pa.int8()),  # stones on the board
        ("current", pa.uint64()),  # stones of the side to move
        ("mask", pa.uint64()),  # all stones
        ("votes", pa.list_(pa.int8())),  # column that each search chose; -1: skipped by a user's labeller
        ("label", pa.int8()),  # the majority of the votes; a user's labeller may give another
        ("visits", pa.list_(pa.int32(), 7)),  # root visits, all searches together; of a Gumbel root its policy · 1000
        ("simulations", pa.int32()),  # executed, all votes together; of a user's labeller the sum of `visits`
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
PACKED_ROW = pa.schema(
    [
        ("key", pa.uint64()),  # canonical board: current + mask
        ("visits", pa.list_(pa.uint8(), 7)),  # as prepared; where the largest is above 255, scaled down to that
        ("value", pa.int8()),  # VALUE_STEPS times the mean over the merged rows
        ("outcome", pa.int8()),  # the mean over the merged rows, rounded
    ]
)
"""A prepared row in about 7 bytes, as `datasets/packed.py` writes it; `reader.read` gives raw columns of it."""

VALUE_STEPS = 127

PACKED = "packed"
"""The kind of such files in their metadata."""

DISTINCT = ("current", "mask", "key", "value")
"""Columns with few equal entries: a dictionary of them takes more than they do, a fifth of a file."""
TRAINING, VALIDATION = 0, 1

GAMES, PACKED_BOARDS = "games", "packed boards"
"""The kinds of folders that hold shards, in their records."""

SHARD_ROWS = 100_000 * 42
"""Most rows and most games of a shard. A file may come from anywhere: a larger number is refused before it is used."""

ROWS_A_BYTE = 100
"""Most rows that a file may declare for a byte of its size; the same game a thousand times has 13."""

LIMITS = {
    "label": (0, 6), "move": (0, 6), "votes": (-1, 6), "visits": (0, np.inf), "simulations": (0, np.inf),
    "ply": (0, 42), "value": (-1, 1), "outcome": (-1, 1), "count": (1, np.inf), "moves_to_end": (0, 42),
}  # fmt: skip
"""The smallest and the largest value of a column; of packed boards VALUE_STEPS times those of `value`."""

_SHARD = re.compile(r"shard-\d{5,}\.parquet")


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.parquet"


def is_shard(name: str) -> bool:
    """Whether a file is a shard, by its name."""
    return _SHARD.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True)
class Shard:
    """What a record says of one shard, a file beside it: games `first_game` to `first_game + games - 1`."""

    name: str
    first_game: int
    games: int
    rows: int
    simulations: int
    sha256: str
    content_hash: str


def shard_of(entry: Mapping[str, Any]) -> Shard:
    """A record's entry of a shard. Raises LookupError, TypeError, ValueError or ArithmeticError for what is none."""
    numbers = {key: int(entry[key]) for key in ("first_game", "games", "rows", "simulations")}
    if min(numbers.values()) < 0 or max(numbers["games"], numbers["rows"]) > SHARD_ROWS:
        raise ValueError(f"a shard of {numbers['games']} games and {numbers['rows']} rows")
    name = str(entry["name"])
    if not is_shard(name):  # a record from elsewhere must not reach outside its folder
        raise ValueError(f"{name!r} is no shard's name")
    return Shard(name=name, sha256=str(entry["sha256"]), content_hash=str(entry["content_hash"]), **numbers)


def run_name(identity: Mapping[str, Any]) -> str:
    """Name of a run of games: BLAKE2b-128 over the canonical JSON of what its games depend on, in hex.

    The size of shards is no part of the identity, so that the same games have the same name, however they are stored.
    """
    return hashlib.blake2b(canonical_json(identity).encode(), digest_size=16).hexdigest()


def table_of(columns: Mapping[str, NDArray[Any]], schema: pa.Schema = ROW) -> pa.Table:
    """A table of arrays by name, (B,) or (B, width), cast to the types of the schema."""
    return pa.table([_arrow(columns[field.name], field.type) for field in schema], schema=schema)


def _arrow(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array, from buffers, because `pa.array` imports pandas: 40 MB in every worker."""
    if values.ndim == 2:
        items = _arrow(values.ravel(), kind.value_type)
        if pa.types.is_fixed_size_list(kind):
            return pa.FixedSizeListArray.from_arrays(items, kind.list_size)
        offsets = np.arange(len(values) + 1) * values.shape[1]
        return pa.ListArray.from_arrays(_arrow(offsets, pa.int32()), items)
    typed = np.ascontiguousarray(values, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(typed), [None, pa.py_buffer(typed)])


def write_table(path: Path, table: pa.Table, metadata: Mapping[str, Any], group_rows: int | None = None) -> str:
    """Write one Parquet file atomically, as `table_bytes` describes it; returns the SHA-256 of its bytes."""
    content = table_bytes(table, metadata, group_rows)
    write_atomically(path, content)
    return hashlib.sha256(content).hexdigest()


def table_bytes(table: pa.Table, metadata: Mapping[str, Any], group_rows: int | None = None) -> bytes:
    """A Parquet file with page checksums and `metadata` under the key "distill"; `group_rows` rows in each group."""
    repeating = [field for field in table.schema if field.name not in DISTINCT]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=[f"{field.name}.list.element" if field.type.num_fields else field.name for field in repeating],
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        writer.add_key_value_metadata({"distill": canonical_json(metadata)})  # store_schema=False drops the schema's
        writer.write_table(table, group_rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


class DamagedError(DataError):
    """A damaged file, which may be replaced: it is not somebody's edit."""


class ForeignError(DataError):
    """A sound Parquet file that another program has written."""


@contextmanager
def opened(path: Path | str, content: bytes | None = None) -> Iterator[pq.ParquetFile]:
    """A Parquet file, its pages verified as they are read; `content` are its bytes where they were read before.

    Arrow gets bytes and never a path, which it takes for a URL where it has a colon. Read with use_threads=False: a
    thread of Arrow's that lets go of Python's bytes when the interpreter has begun to end kills the process with
    SIGABRT (apache/arrow#49942).

    Raises DamagedError for what Arrow cannot read, here and inside the `with` block, and for a small file that declares
    large contents; DataError where memory runs out.
    """
    unreadable = (OSError, pa.ArrowException, OverflowError, ValueError, KeyError)  # found by fuzzing
    what = "not a readable Parquet file"
    try:
        content = Path(path).read_bytes() if content is None else content
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
            if (rows := file.metadata.num_rows) > ROWS_A_BYTE * len(content):  # columns' metadata may crash Arrow
                raise ValueError(f"{len(content):,} bytes declare {rows:,} rows")
            what = "damaged"
            yield file
    except MemoryError as error:  # Arrow's too; a damaged file may ask for any amount
        raise DataError(f"{path}: cannot be read ({first_line(error)})") from error
    except unreadable as error:
        raise DamagedError(f"{path}: {what} ({first_line(error)})") from error


def metadata_of(path: Path | str, file: pq.ParquetFile) -> dict[str, Any]:
    """The "distill" metadata of an open file. Raises ForeignError where there is none, DamagedError for other bytes."""
    stored = (file.schema_arrow.metadata or {}).get(b"distill")
    if stored is None:
        raise ForeignError(f"{path}: not written by distill (no metadata)")
    try:
        metadata = json.loads(stored)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise DamagedError(f"{path}: damaged (its metadata are no JSON object)")
    return metadata


def read_metadata(path: Path, content: bytes | None = None) -> dict[str, Any]:
    """The "distill" metadata of a Parquet file. Raises DataError where there is none."""
    with opened(path, content) as file:
        return metadata_of(path, file)


def read_table(
    path: Path | str, schema: pa.Schema | None = ROW, content: bytes | None = None
) -> tuple[pa.Table, dict[str, Any]]:
    """A table and its metadata, checksums and schema verified.

    Args:
      schema: its columns; None: raw rows or packed ones, as the metadata say.
      content: the bytes of the file, where they were read before.

    Raises DataError for a file that is truncated, damaged, not written by distill, of another schema version, or
    without a column.
    """
    with opened(path, content) as file:
        metadata = metadata_of(path, file)
        schema = schema or row_of(metadata)
        check_schema(path, metadata, file, schema)
        table = file.read(columns=schema.names, use_threads=False).select(schema.names)
        return table.cast(schema), metadata


def arrays(path: Path | str, table: pa.Table, *, bounded: bool = True) -> dict[str, NDArray[Any]]:
    """The columns of a table by name: (B,), texts as str, lists as (B, length).

    Raises DamagedError, which names the file and the column, for missing values, lists of different lengths and, where
    `bounded`, values outside LIMITS, such as NaN.
    """
    columns = {}
    for name, chunks in zip(table.column_names, table.columns, strict=True):
        column = chunks.combine_chunks()
        values = column.flatten() if pa.types.is_nested(column.type) else column
        if column.null_count or values.null_count:
            raise DamagedError(f"{path}: a value of {name} is missing (null)")
        array = values.to_numpy(zero_copy_only=False)
        low, high = LIMITS.get(name, (-np.inf, np.inf))
        scale = VALUE_STEPS if name == "value" and pa.types.is_integer(values.type) else 1
        if bounded and name in LIMITS and not ((low * scale <= array) & (array <= high * scale)).all():
            raise DamagedError(f"{path}: column {name!r} has values outside [{low * scale:g}, {high * scale:g}]")
        if pa.types.is_list(column.type):
            lengths = np.unique(np.diff(numbers(column.offsets)))
            if len(lengths) > 1 or 0 in lengths:
                raise DamagedError(f"{path}: {name} of different lengths, or empty")
        if values is not column:
            array = array.reshape(len(column), -1 if len(column) else COLUMNS)
        columns[name] = array.astype(np.str_) if pa.types.is_string(column.type) else array
    return columns


def row_of(metadata: Mapping[str, Any]) -> pa.Schema:
    """The columns of a shard: of raw rows or of packed ones."""
    return PACKED_ROW if metadata.get("kind") == PACKED else ROW


def check_schema(path: Path | str, metadata: Mapping[str, Any], file: pq.ParquetFile, schema: pa.Schema = ROW) -> None:
    """Raise DataError unless a file has this schema version and every column of `schema`, in its type and size."""
    version = metadata.get("schema_version")
    if version != SCHEMA_VERSION:
        advice = "update distill" if isinstance(version, int) and version > SCHEMA_VERSION else "generate it again"
        raise DataError(f"{path}: schema version {version}, this distill reads {SCHEMA_VERSION}; {advice}")
    found = file.schema_arrow
    for field in schema:
        if field.name not in found.names:
            raise DamagedError(f"{path}: column {field.name!r} is missing")
        if not _same_type(found.field(field.name).type, field.type):
            raise DamagedError(
                f"{path}: column {field.name!r} has type {found.field(field.name).type}, expected {field.type}"
            )
    if schema is not PREPARED_ROW and file.metadata.num_rows > SHARD_ROWS:
        raise DamagedError(f"{path}: declares {file.metadata.num_rows:,} rows, a shard holds {SHARD_ROWS:,} at most")


def _same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_list(found) or pa.types.is_fixed_size_list(found):
        return bool(hasattr(expected, "value_type") and found.value_type == expected.value_type)
    return bool(found == expected)


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


def shards_of(place: object, result: Mapping[str, Any]) -> list[Shard]:
    """The shards in the result of a run of games. Raises DataError for another result."""
    try:
        if not re.fullmatch("[0-9a-f]{16,}", result["run"]):  # the split of games is computed from it
            raise ValueError(f"run {result['run']!r}")
        return [shard_of(entry) for entry in result["shards"]]
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise DataError(f"{place}/{RECORD}: not the result of a run of games ({error})") from error

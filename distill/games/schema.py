"""The row, the prepared row and the shard: types, meanings, and the only code that reads or writes them.

A shard is one Parquet file of raw rows, one row a labelled position, sorted by (game_id, ply). Its
file metadata carry the run's identity, so a shard explains itself; no time, host or path is in it.
The result in the folder's record lists the shards (`common/run_folder.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from distill.common import DataError, canonical_json, first_line, write_atomically
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


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.parquet"


class Shard(BaseModel):
    """What a record says of one shard, a file in `folder`: games `first_game` to `first_game + games - 1`."""

    model_config = ConfigDict(frozen=True)
    folder: Path = Field(Path(), exclude=True)
    name: str = Field(pattern=r"^shard-\d{5,}\.parquet$")  # a record from elsewhere must not reach outside its folder
    first_game: int = Field(ge=0)
    games: int = Field(ge=0)
    rows: int = Field(ge=0)
    simulations: int = Field(ge=0)
    sha256: str
    content_hash: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name

    def content(self, advice: str | None = None) -> bytes:
        """Its bytes, as `content_of`; `advice` says what a user can do, by default to make the games again."""
        # `generate` does not overwrite rows that somebody changed, so the file must go first.
        again = f"delete it, and start the command that wrote {self.folder} again"
        return content_of(self.path, self.sha256, advice or again)


def shard_of(name: str, table: pa.Table, metadata: Mapping[str, Any], content: bytes) -> Shard:
    """A shard's entry for a record; packed boards have no simulations."""
    simulations = sum(table["simulations"].to_pylist()) if "simulations" in table.column_names else 0
    return Shard(
        name=name, first_game=metadata["first_game"], games=metadata["games"], rows=len(table),
        simulations=simulations, sha256=hashlib.sha256(content).hexdigest(), content_hash=content_hash(table),
    )  # fmt: skip


def run_name(identity: Mapping[str, Any]) -> str:
    """Name of a run of games: BLAKE2b-128 over the canonical JSON of what its games depend on, in hex.

    The size of shards is no part of it, so that the same games have the same name, however they are stored.
    """
    games = {name: value for name, value in identity.items() if name != "shard_games"}
    return hashlib.blake2b(canonical_json(games).encode(), digest_size=16).hexdigest()


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
    return sink.getvalue().to_pybytes()


def content_of(path: Path, sha256: str | None, advice: str) -> bytes:
    """The bytes of a file. Raises DataError unless their SHA-256 is that of the record; `advice` says what to do."""
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        what = "not the file that the record describes (missing, damaged or changed)"
        raise DataError(f"{path}: {what}; {advice}")
    return content


def read_table(
    path: Path | str, schema: pa.Schema | None = None, content: bytes | None = None, *, ours: bool = True
) -> tuple[pa.Table, dict[str, Any]]:
    """A table and its metadata, checksums and schema verified.

    Args:
      schema: its columns; None: raw rows or packed ones, as the metadata say.
      content: the bytes of the file, where they were read before.
      ours: whether the file must be one of distill's, of this schema version.

    Arrow gets bytes and never a path, which it takes for a URL where it has a colon. It reads without threads: a thread
    of Arrow's that lets go of Python's bytes when the interpreter has begun to end kills the process with SIGABRT
    (apache/arrow#49942).

    Raises DataError for what Arrow cannot read, for a missing column and for a file that is not `ours`.
    """
    try:
        content = Path(path).read_bytes() if content is None else content
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
            metadata = dict(json.loads((file.schema_arrow.metadata or {}).get(b"distill", "{}")))
            if ours and (version := metadata.get("schema_version")) != SCHEMA_VERSION:
                raise DataError(f"{path}: schema version {version}, this distill reads {SCHEMA_VERSION}")
            schema = schema or (PACKED_ROW if metadata.get("kind") == PACKED else ROW)
            return file.read(columns=schema.names, use_threads=False).select(schema.names).cast(schema), metadata
    except MemoryError as error:  # Arrow's too; a damaged file may ask for any amount
        raise DataError(f"{path}: cannot be read ({first_line(error)})") from error
    except (OSError, pa.ArrowException, OverflowError, ValueError, KeyError, RecursionError) as error:
        what = f"damaged, or not a Parquet file with these columns ({first_line(error)})"
        raise DataError(f"{path}: {what}") from error


def arrays(path: Path | str, table: pa.Table) -> dict[str, NDArray[Any]]:
    """The columns of a table by name: (B,), texts as str, lists of one length as (B, length).

    Raises DataError, which names the file and the column, for missing values.
    """
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        values = column.flatten() if pa.types.is_nested(column.type) else column
        if column.null_count or values.null_count:
            raise DataError(f"{path}: a value of {name} is missing (null)")
        array = values.to_numpy(zero_copy_only=False)
        if values is not column:
            array = array.reshape(len(column), -1 if len(column) else COLUMNS)
        columns[name] = array.astype(np.str_) if pa.types.is_string(column.type) else array
    return columns


def content_hash(table: pa.Table) -> str:
    """SHA-256 over the columns' values alone: equal for equal rows, whatever wrote the file.

    Values are read by DLPack, because `to_numpy` imports pandas: 40 MB in every worker.
    """
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        digest.update(f"{name}:{column.type}:{len(column)};".encode())
        if pa.types.is_list(column.type):
            digest.update(np.diff(np.from_dlpack(column.offsets)).astype("<i4").tobytes())
        array = np.from_dlpack(column.flatten() if pa.types.is_nested(column.type) else column)
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()

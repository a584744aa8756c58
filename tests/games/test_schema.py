"""The row on disk: what is written comes back, and what is not whole is refused by name.

- a table and its metadata come back as written, from bytes that do not depend on when they were written
- a truncated file, a file of another program, a missing column and a column of another type are each refused with one
  line that names the file (`test_inspect`: other schema versions, and manifests)
- a write that fails leaves the old file and no litter
- the content hash depends on values and their order alone, and is pinned
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import make_games

from distill.common import DataError
from distill.games import schema

METADATA = {"schema_version": schema.SCHEMA_VERSION, "run": "ab" * 32}


@pytest.fixture
def table():
    return make_games(5, seed=1)


@pytest.fixture
def shard(tmp_path, table):
    path = tmp_path / "shard-00000.parquet"
    schema.write_table(path, table, METADATA)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        schema.read_table(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_a_table_comes_back_with_its_metadata(shard, table):
    found, metadata = schema.read_table(shard)
    assert found.equals(table)
    assert found.schema.equals(schema.ROW)
    assert metadata == METADATA


def test_the_same_rows_give_the_same_bytes(shard, table):
    again = shard.with_name("again.parquet")
    schema.write_table(again, pa.concat_tables([table.slice(0, 7), table.slice(7)]).combine_chunks(), METADATA)
    assert again.read_bytes() == shard.read_bytes()


def test_a_truncated_or_missing_shard_is_named(shard):
    whole = shard.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        shard.write_bytes(whole[:length])
        assert "not a readable Parquet file" in refusal(shard)
    shard.unlink()
    refusal(shard)


def test_a_column_that_is_missing_or_of_another_type_and_a_file_of_another_program_are_named(shard, table):
    for column in schema.ROW.names:
        schema.write_table(shard, table.drop_columns([column]), METADATA)
        assert f"column '{column}' is missing" in refusal(shard)
    place = table.schema.get_field_index("label")
    schema.write_table(shard, table.set_column(place, "label", table["label"].cast(pa.int64())), METADATA)
    assert "column 'label' has type int64, expected int8" in refusal(shard)
    pq.write_table(table, shard)
    assert "not written by distill" in refusal(shard)


def test_a_failed_write_leaves_the_old_file_and_no_litter(shard, table, monkeypatch):
    before = shard.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        schema.write_table(shard, table.slice(1), METADATA)
    assert shard.read_bytes() == before
    assert os.listdir(shard.parent) == [shard.name]


def test_the_content_hash_notices_any_change(table):
    def with_votes(votes: list[list[int]]) -> pa.Table:
        return pa.table({"votes": pa.array(votes, pa.list_(pa.int8()))})

    assert schema.content_hash(with_votes([[1, 2], [3]])) != schema.content_hash(with_votes([[1], [2, 3]]))
    assert schema.content_hash(pa.concat_tables([table, table]).slice(len(table))) == schema.content_hash(table)
    hashes = {schema.content_hash(table), schema.content_hash(table.take(np.arange(len(table))[::-1]))}
    for index, field in enumerate(table.schema):
        column = table[field.name].to_pylist()
        column[3] = [*column[3][:-1], column[3][-1] + 1] if isinstance(column[3], list) else column[3] + 1
        hashes.add(schema.content_hash(table.set_column(index, field, pa.array(column, field.type))))
    assert len(hashes) == 2 + len(table.schema)


def test_the_content_hash_is_pinned():
    row = dict.fromkeys(schema.ROW.names, 0) | {"game_id": 7, "votes": [3, 2, 3], "visits": list(range(7))}
    row["value"] = 0.5
    assert schema.content_hash(pa.Table.from_pylist([row], schema.ROW)) == (
        "dd48631d2ca0cc33dbc3b145ab3c9326b8ebcbc8c309738ac05bebae3cf80f17"
    )

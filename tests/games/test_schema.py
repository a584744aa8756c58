"""The row on disk: what is written comes back, and what is not whole is refused by name.

- a table and its metadata come back as written, from bytes that do not depend on when they were written
- a truncated file, a file of another program, a missing column and a column of another type are each refused with one
  line that names the file (`test_inspect`: other schema versions, and records)
- a write that fails leaves the old file and no litter
- missing values, NaN and values out of range, in columns of any kind of row, are refused by file and column
- a small file that declares large contents is refused before it is read
- the content hash depends on values and their order alone, and is pinned
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import make_games

from distill.common import DataError
from distill.games import reader, schema

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


@pytest.mark.parametrize("column", schema.ROW.names)
def test_a_flipped_bit_in_any_column_is_noticed(shard, column):
    group = pq.read_metadata(shard).row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    chunk = next(chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] == column)
    content = bytearray(shard.read_bytes())
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    content[start + chunk.total_compressed_size - 1] ^= 1
    shard.write_bytes(content)
    assert "damaged (" in refusal(shard)


def test_another_schema_version_is_refused(shard, table):
    schema.write_table(shard, table, METADATA | {"schema_version": schema.SCHEMA_VERSION + 1})
    assert "this distill reads" in refusal(shard)


def test_a_column_that_is_missing_or_of_another_type_and_a_file_of_another_program_are_named(shard, table):
    for column in schema.ROW.names:
        schema.write_table(shard, table.drop_columns([column]), METADATA)
        assert column in refusal(shard)
    place = table.schema.get_field_index("label")
    for other in (pa.array(["x"] * len(table)), pa.array([1000] * len(table))):
        schema.write_table(shard, table.set_column(place, "label", other), METADATA)
        assert "damaged (" in refusal(shard)
    pq.write_table(table, shard)
    assert "not written by distill" in refusal(shard)


def with_column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.array(values, table.schema.field(name).type))


def test_missing_nan_and_impossible_values_are_refused_by_file_and_column(shard, table):
    reader.columns_of(shard, table, METADATA)
    packed = schema.table_of(
        {"key": np.zeros(9), "visits": np.ones((9, 7)), "value": np.full(9, 127), "outcome": np.ones(9)},
        schema.PACKED_ROW,
    )
    for rows, name, value, what in [
        *((table, name, None, "is missing (null)") for name in schema.ROW.names),
        (table, "visits", [1, None, 1, 1, 1, 1, 1], "is missing (null)"),
        *((table, "value", value, "outside [-1, 1]") for value in (float("nan"), float("inf"), -1.5)),
        (table, "label", 7, "outside [0, 6]"),
        (table, "visits", [-1] * 7, "outside [0, inf]"),
        (packed, "value", -128, "outside [-1, 1]"),
    ]:
        changed = with_column(rows, name, [*rows[name].to_pylist()[:-1], value])
        about = METADATA | ({"kind": schema.PACKED, "first_game": 0} if rows is packed else {})
        with pytest.raises(DataError, match=re.escape(f"{shard}: ") + f".*{name}.*" + re.escape(what)):
            reader.columns_of(shard, changed, about)


def test_a_small_file_that_declares_large_contents_is_refused_before_it_is_read(shard, table):
    pq.write_table(pa.table({"value": pa.repeat(0.5, 4_000_000)}), shard, data_page_size=1 << 30)  # one entry, repeated
    assert len(shard.read_bytes()) < 20_000
    assert "declare 4,000,000 rows" in refusal(shard)


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

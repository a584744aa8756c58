"""The row on disk: what is not whole is refused by name (`test_fuzz`: what is written comes back).

Flipped bits, other columns, versions and programs, and missing values are refused in one line that names the file. The
content hash depends on values and their order, and is pinned.
"""

import re
from pathlib import Path

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


@pytest.mark.parametrize("column", schema.ROW.names)
def test_a_flipped_bit_in_any_column_is_noticed(shard, column):
    group = pq.read_metadata(shard).row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    chunk = next(chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] == column)
    content = bytearray(shard.read_bytes())
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    content[start + chunk.total_compressed_size - 1] ^= 1
    shard.write_bytes(content)
    assert "damaged, or not" in refusal(shard)


def test_other_columns_versions_and_programs_are_refused(shard, table):
    schema.write_table(shard, table, METADATA | {"schema_version": schema.SCHEMA_VERSION + 1})
    assert "this distill reads" in refusal(shard)
    for column in schema.ROW.names:
        schema.write_table(shard, table.drop_columns([column]), METADATA)
        assert column in refusal(shard)
    place = table.schema.get_field_index("label")
    for other in (pa.array(["x"] * len(table)), pa.array([1000] * len(table))):
        schema.write_table(shard, table.set_column(place, "label", other), METADATA)
        assert "damaged, or not" in refusal(shard)
    pq.write_table(table, shard)
    assert "schema version None, this distill reads" in refusal(shard)


def test_missing_values_are_refused_by_file_and_column(shard, table):
    for name, value in [*dict.fromkeys(schema.ROW.names).items(), ("visits", [1, None, 1, 1, 1, 1, 1])]:
        place, values = table.schema.get_field_index(name), [*table[name].to_pylist()[:-1], value]
        changed = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
        with pytest.raises(DataError, match=re.escape(f"{shard}: a value of {name} is missing (null)")):
            reader.columns_of(shard, changed, METADATA)


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

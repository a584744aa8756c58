"""Reading finished games: only whole runs are read, and a game's split is a number anyone can compute.

The split follows a second implementation in plain integers (published outputs of SplitMix64: `test_mixing`). Raw rows
come back in the orientation played, in the order written. What is missing or changed is refused by name.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import make_games, write_games
from hypothesis import given
from hypothesis import strategies as st

from distill.common import DataError
from distill.games import reader, schema
from distill.games.schema import TRAINING, VALIDATION

RUN = "0123456789abcdef" * 4


@pytest.fixture
def folder(tmp_path):
    write_games(tmp_path / "games", make_games(30, seed=1))
    return tmp_path / "games"


def number_of(run: str, game_id: int) -> float:
    """The formula of `in_validation`, in plain integers."""
    bits = 2**64
    s = (int(run[:16], 16) + (game_id + 1) * 0x9E3779B97F4A7C15) % bits
    s = (s ^ (s >> 30)) * 0xBF58476D1CE4E5B9 % bits
    s = (s ^ (s >> 27)) * 0x94D049BB133111EB % bits
    return ((s ^ (s >> 31)) >> 11) / 2**53


@given(st.integers(0, 2**256 - 1), st.lists(st.integers(0, 2**62), min_size=1, max_size=20), st.floats(0, 1))
def test_the_split_equals_the_formula_in_plain_integers(name, ids, fraction):
    run = f"{name:064x}"
    found = reader.in_validation(run, np.array(ids, np.int64), fraction)
    assert found.tolist() == [number_of(run, game_id) < fraction for game_id in ids]


def test_raw_rows_come_back_as_they_were_played(folder):
    table = make_games(30, seed=1)
    rows = reader.raw_rows([folder], None, 0.15)
    assert len(rows) == len(table)
    for name in ("current", "mask", "label", "ply"):
        np.testing.assert_array_equal(getattr(rows, name), table[name].to_numpy())
        assert getattr(rows, name).dtype == table[name].type.to_pandas_dtype()
    np.testing.assert_array_equal(rows.game, table["game_id"].to_numpy())
    some = rows[rows.ply > 20]
    np.testing.assert_array_equal(some.label, table["label"].to_numpy()[table["ply"].to_numpy() > 20])


def test_the_splits_part_the_games(folder):
    table = make_games(30, seed=1)
    run = reader.open_run(folder)
    validation = np.array([number_of(run.name, game_id) < 0.3 for game_id in table["game_id"].to_pylist()])
    assert 0 < validation.sum() < len(table)
    for split, chosen in ((TRAINING, ~validation), (VALIDATION, validation)):
        rows = reader.raw_rows([folder], split, 0.3)
        np.testing.assert_array_equal(rows.current, table["current"].to_numpy()[chosen])


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        reader.raw_rows([folder], None, 0.15)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_several_runs_are_read_in_the_order_of_their_names_and_none_twice(tmp_path):
    one, two, copy = (tmp_path / name for name in ("1", "2", "copy"))
    for folder, seed in ((one, 1), (two, 2), (copy, 1)):
        write_games(folder, make_games(5, seed=seed), identity={"seed": seed})
    forward, backward = reader.raw_rows([one, two], None, 0.15), reader.raw_rows([two, one], None, 0.15)
    assert len(forward) == reader.open_run(one).rows + reader.open_run(two).rows
    np.testing.assert_array_equal(forward.current, backward.current)
    with pytest.raises(DataError, match="the same run as"):
        reader.open_runs([one, copy])


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: schema.write_table(path, *one_row_less(path)),
        lambda path: shutil.copy(path.with_name("shard-00000.parquet"), path),
        lambda path: path.unlink(),
    ],
    ids=["truncated", "one row less", "swapped", "deleted"],
)
def test_a_harmed_shard_is_named_when_it_is_read_and_before(folder, harm):
    path, run = folder / "shard-00001.parquet", reader.open_run(folder)
    reader.verify([run])
    harm(path)
    assert refusal(folder).startswith(f"{path}: not the file that the record describes")
    with pytest.raises(DataError, match="not the file that the record describes"):
        reader.verify([run])


def one_row_less(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    table, metadata = schema.read_table(path)
    return table.slice(1), metadata

"""Random input, much of it nearly valid: each reader of foreign bytes or text reads it correctly or refuses it.

`pytest -m slow tests/project/test_fuzz.py -s` runs for 5 minutes (DISTILL_FUZZ_SECONDS), with other seeds each hour
(DISTILL_FUZZ_SEED).
"""

import contextlib
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from helpers import game_at_random, make_games
from hypothesis import given, settings
from hypothesis import strategies as st

from distill.common import DataError, run_folder
from distill.common.storage import storage_of
from distill.game import rules
from distill.games import inspection, reader, schema

METADATA = {"schema_version": schema.SCHEMA_VERSION, "run": "ab" * 16, "first_game": 0, "games": 2, "identity": {}}
TABLE = make_games(2, seed=1)
WHOLE = schema.table_bytes(TABLE, METADATA)
SHARD = schema.shard_of("shard-00000.parquet", TABLE, METADATA, WHOLE)
FOOTER = int.from_bytes(WHOLE[-8:-4], "little") + 8
"""Bytes of Parquet's footer, which holds the offsets: damage here is hardest to handle."""


def damaged(dice: random.Random) -> bytes:
    """The shard with one to four changes, half of them in the footer."""
    content = bytearray(WHOLE)
    for _ in range(dice.randint(1, 4)):
        start = max(len(content) - FOOTER, 0) if dice.random() < 0.5 else 0
        place = dice.randrange(start, len(content))
        size = dice.choice([1, 1, 1, 2, 4, 8, 64])
        part = content[place : place + size]
        content[place : place + size] = dice.choice(
            [
                bytes([part[0] ^ 1 << dice.randrange(8)]) + part[1:],  # a flipped bit
                dice.randbytes(size),
                b"",  # cut out
                part + part,
                dice.choice([b"\x00", b"\xff", b"\x7f", b"\x80"]) * size,
            ]
        )
    return bytes(content)


def read_or_refuse(content: bytes, folder: Path) -> bool:
    """Whether the bytes were read. They must be refused by name, or be the rows that were written."""
    path = folder / "shard-00000.parquet"
    path.write_bytes(content)
    try:
        table, _ = schema.read_table(path, None, content)
    except DataError as error:
        message = str(error)
    else:
        assert table.equals(TABLE), "wrong rows"
        return True
    assert message.startswith((f"{path}: ", f"{path.name}: "))
    assert "\n" not in message
    return False


def test_a_damaged_shard_is_read_correctly_or_refused_by_name(tmp_path):
    dice = random.Random(1)
    read = [read_or_refuse(damaged(dice), tmp_path) for _ in range(200)]
    assert sum(read) < len(read) / 2


@pytest.mark.slow
def test_many_damaged_shards_are_read_correctly_or_refused_by_name(tmp_path):
    seed = int(os.environ.get("DISTILL_FUZZ_SEED", time.time() // 3600))
    until = time.monotonic() + float(os.environ.get("DISTILL_FUZZ_SECONDS", 300))
    dice, outcomes = random.Random(seed), Counter[str]()
    while time.monotonic() < until:
        outcomes["read" if read_or_refuse(damaged(dice), tmp_path) else "refused"] += 1
    print(f"\nDISTILL_FUZZ_SEED={seed}: {outcomes.total():,} damaged shards: {dict(outcomes)}")
    assert outcomes["read"]
    assert outcomes["refused"]


NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**7), 2**7 - 1]))
ROWS = st.fixed_dictionaries(
    {
        "game_id": st.one_of(st.integers(0, 2), st.integers(-(2**63), 2**63 - 1)),
        "ply": NUMBERS,
        "current": st.integers(0, 2**64 - 1),
        "mask": st.integers(0, 2**64 - 1),
        "votes": st.lists(NUMBERS, min_size=3, max_size=3),
        "label": NUMBERS,
        "visits": st.lists(st.integers(-(2**31), 2**31 - 1), min_size=7, max_size=7),
        "simulations": st.integers(-(2**31), 2**31 - 1),
        "value": st.floats(width=32),
        "move": NUMBERS,
        "outcome": NUMBERS,
    }
)


@given(rows=st.lists(ROWS, max_size=6))
@settings(max_examples=60)
def test_rows_of_random_numbers_are_read_back_unchanged_and_never_accepted(rows):
    table = pa.Table.from_pylist(rows, schema=schema.ROW)
    content = schema.table_bytes(table, METADATA)
    read, metadata = schema.read_table("shard-00000.parquet", content=content)
    assert schema.content_hash(read) == schema.content_hash(table)
    assert metadata == METADATA
    assert schema.table_bytes(read, metadata) == content
    assert list(inspection.faults(reader.columns_of("shard", table, METADATA), {}, SHARD)) or not rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["kind", "files", "result", "run", "games", "rows", "shards", "name", "first_game", "sha256"])


@given(value=st.dictionaries(KEYS, JSON | st.just(schema.SCHEMA_VERSION) | st.lists(st.dictionaries(KEYS, JSON))))
@settings(max_examples=40)
def test_a_record_of_random_json_is_a_record_or_refused(value):
    place = storage_of("memory://fuzz")
    about = {"kind": schema.GAMES, "identity": {}, "settings": {}, "files": [], "versions": {}}
    for record in (about | {"result": value}, about | value, value):
        place.write(run_folder.RECORD, json.dumps(record).encode())
        with contextlib.suppress(DataError):
            assert run_folder.read(place)
    assert place.names() == [run_folder.RECORD]


LINES = st.text(alphabet="XO. ", min_size=6, max_size=9)
BOARD_LINES = st.text(alphabet="XO.", min_size=7, max_size=7)


def changed(seed: int, most: int, place: int, text: str) -> str:
    """A random game with one of its moves replaced."""
    moves = game_at_random(seed, most)
    return moves[:place] + text + moves[place + 1 :]


GAMES = st.builds(
    changed, st.integers(0, 2**32), st.integers(0, 42), st.integers(0, 41), st.sampled_from("1234567089x٣")
)


def played(moves: str) -> rules.Position | None:
    """The position after a move string, move by move; None if it is not a game."""
    position = rules.EMPTY
    for text in moves:
        column = "1234567".find(text)
        if column < 0 or rules.is_over(position) or column not in rules.legal_columns(position):
            return None
        position = rules.next_position(position, column)
    return position


@given(
    moves=st.one_of(st.text(alphabet="1234567", max_size=45), st.text(max_size=12), GAMES),
    drawing=st.lists(LINES, min_size=5, max_size=7).map("\n".join)
    | st.lists(BOARD_LINES, min_size=6, max_size=6).map("\n".join)
    | st.text(max_size=60),
)
@settings(max_examples=200)
def test_a_move_string_and_a_drawing_are_positions_or_are_refused(moves, drawing):
    expected = played(moves)
    try:
        assert rules.from_moves(moves) == expected
    except ValueError:
        assert expected is None
    else:
        assert rules.parse_board(rules.draw(expected)) == expected
    with contextlib.suppress(ValueError):
        position = rules.parse_board(drawing)
        assert rules.problem_with(position) is None
        assert "".join(rules.draw(position).split()) == "".join(drawing.split())

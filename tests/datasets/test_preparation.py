"""Raw rows become tables: what merges, what is left out, and that every row is accounted for.

- the tables equal those of a plain Python oracle, on random games and with boards excluded in either orientation
- no validation board is a training board; the counts add up to the rows read
- another order of the folders: the same bytes
- the folder's name follows inputs, settings and exclusions; a finished folder is reused, also by a second process
- changed labels are refused (`test_batching`: changed tables); what a failure or a kill left is written again
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import change_record, low, make_games, one_row_games, state, write_games
from hypothesis import given, settings
from hypothesis import strategies as st

from distill.common import DataError, file_hash, provenance
from distill.datasets import preparation
from distill.game import rules
from distill.game.rules import Position
from distill.games import reader, schema
from distill.games.schema import PREPARED_ROW, ROW, TRAINING, VALIDATION

pytestmark = pytest.mark.usefixtures("nothing_ships")
FRACTION = 0.3
Board = tuple[int, int]


def prepare(folder: Path, out: Path, **changes: Any) -> preparation.Prepared:
    restart = changes.pop("restart", False)
    settings = preparation.TableSettings(**({"data": [folder], "validation_fraction": FRACTION} | changes))
    return preparation.prepare(settings, out, restart=restart)


def tables_of(prepared: preparation.Prepared) -> dict[int, dict[Board, dict[str, Any]]]:
    found = {}
    for split, name in preparation.FILES.items():
        table, metadata = schema.read_table(prepared.folder / name, PREPARED_ROW)
        assert metadata["split"] == split
        assert set(table["split"].to_pylist()) <= {split}
        boards = {(row["current"], row["mask"]): row for row in table.to_pylist()}
        assert len(boards) == len(table)
        assert list(boards) == sorted(boards, key=lambda board: (board[1].bit_count(), *board))
        found[split] = boards
    return found


def canonical(board: Board) -> Board:
    mirrored = rules.mirror(Position(*board))
    return min(board, (mirrored.current, mirrored.mask))


def oracle(folder: Path, fraction: float, excluded: set[Board]) -> dict[int, dict[Board, dict[str, Any]]]:
    """The merged tables, one row at a time, with exact means."""
    run = reader.open_run(folder)
    groups: dict[tuple[int, Board], list[dict[str, Any]]] = defaultdict(list)
    for shard in run.shards:
        for row in schema.read_table(shard.path)[0].to_pylist():
            split = int(reader.in_validation(run.name, np.array([row["game_id"]]), fraction)[0])
            board = (row["current"], row["mask"])
            if canonical(board) not in excluded:
                if canonical(board) != board:
                    row |= {"label": 6 - row["label"], "visits": row["visits"][::-1]}
                groups[split, canonical(board)].append(row)
    tables: dict[int, dict[Board, dict[str, Any]]] = {TRAINING: {}, VALIDATION: {}}
    for (split, board), rows in groups.items():
        if split == VALIDATION and (TRAINING, board) in groups:
            continue
        visits = [sum(row["visits"][column] for row in rows) for column in range(7)]
        votes = [sum(row["label"] == column for row in rows) for column in range(7)]
        if rules.mirror(Position(*board)) == Position(*board):
            visits = [visits[column] + visits[6 - column] for column in range(7)]
            votes = [votes[column] + votes[6 - column] for column in range(7)]
        tables[split][board] = {
            "visits": visits,
            "label": max(range(7), key=lambda c: (votes[c], visits[c], -abs(c - 3), -c)),
            "value": float(sum(Fraction(row["value"]) for row in rows) / len(rows)),
            "outcome": sum(row["outcome"] for row in rows) / len(rows),
            "count": len(rows),
        }
    return tables


@given(seed=st.integers(0, 10**6), count=st.integers(2, 25), share=st.floats(0, 1))
@settings(max_examples=10)
def test_the_tables_equal_those_of_a_plain_python_oracle(tmp_path_factory, seed, count, share):
    folder = tmp_path_factory.mktemp("games")
    table = make_games(count, seed)
    write_games(folder, table, shard_games=7)
    boards = zip_boards(table)
    chosen = np.random.default_rng(seed).random(len(boards)) < share / 2
    excluded = [board for board, take in zip(boards, chosen, strict=True) if take]
    sets, out = tmp_path_factory.mktemp("sets"), tmp_path_factory.mktemp("out")
    for part in range(2):
        write_boards(sets / f"{part}.parquet", excluded[part::2])
    keys = set(map(canonical, excluded))
    if not oracle(folder, FRACTION, keys)[TRAINING]:
        with pytest.raises(DataError, match="no training rows"):
            prepare(folder, out, exclude=[str(sets)])
        return
    prepared, expected = prepare(folder, out, exclude=[str(sets)]), oracle(folder, FRACTION, keys)
    counts, found = prepared.result["counts"], tables_of(prepared)
    rows = {split: sum(row["count"] for row in boards.values()) for split, boards in found.items()}
    assert counts["rows_read"] == len(table) == sum(counts["rows"].values()) + counts["excluded"]["rows"]
    assert counts["excluded"]["boards"] == len(keys)
    assert counts["rows"]["training"] == rows[TRAINING]
    assert counts["rows"]["validation"] == rows[VALIDATION] + counts["removed_from_validation"]["rows"]
    assert counts["boards"] == {"training": len(found[TRAINING]), "validation": len(found[VALIDATION])}
    assert sum(counts["games"].values()) == count
    assert not found[TRAINING].keys() & found[VALIDATION].keys()
    for split in (TRAINING, VALIDATION):
        assert found[split].keys() == expected[split].keys()
        for board, row in expected[split].items():
            merged = found[split][board]
            assert all(merged[name] == row[name] for name in ("visits", "label", "count"))
            # Half a unit in the last place of float32 near 1, plus the grid of 2^-32 on which values are summed.
            assert merged["value"] == pytest.approx(row["value"], abs=2**-24)
            assert merged["outcome"] == pytest.approx(row["outcome"], abs=2**-24)


def zip_boards(table: pa.Table) -> list[Board]:
    return list(zip(table["current"].to_pylist(), table["mask"].to_pylist(), strict=True))


def write_boards(path: Path, boards: list[Board]) -> Path:
    columns = [pa.array([board[index] for board in boards], pa.uint64()) for index in (0, 1)]
    pq.write_table(pa.table(columns, names=["current", "mask"]), path)
    return path


LEFT = low("""
    . O . . . . .
    . X . . . . .
""")
RIGHT = "\n".join(line[::-1] for line in LEFT.splitlines())


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        ([(LEFT, 6, 9), (LEFT, 0, 1), (RIGHT, 6, 1)], 0),
        ([(LEFT, 6, 9), (LEFT, 3, 8)], 6),
        ([(LEFT, 0, 5), (LEFT, 5, 5)], 5),
        ([(LEFT, 4, 5), (LEFT, 2, 5)], 2),
    ],
    ids=["most rows", "then most visits", "then nearest the centre", "then the lower column"],
)
def test_the_label_of_merged_rows(tmp_path, rows, label):
    drawings, labels, visits = map(list, zip(*rows, strict=True))
    write_games(tmp_path / "games", one_row_games([*map(rules.parse_board, drawings)], labels, visits))
    prepared = prepare(tmp_path / "games", tmp_path / "out", validation_fraction=0.0)
    ((board, row),) = tables_of(prepared)[TRAINING].items()
    is_mirrored = Position(*board) != rules.parse_board(LEFT)
    assert (6 - row["label"] if is_mirrored else row["label"]) == label


def content(prepared: preparation.Prepared) -> list[bytes]:
    return [(prepared.folder / name).read_bytes() for name in preparation.FILES.values()]


def test_the_bytes_depend_on_inputs_and_settings_alone(tmp_path, monkeypatch):
    one, two = tmp_path / "1", tmp_path / "2"
    for folder, seed in ((one, 1), (two, 2)):
        write_games(folder, make_games(60, seed), identity={"seed": seed})
    monkeypatch.setattr(preparation, "GROUP_ROWS", 256)
    first = prepare(one, tmp_path / "out", data=[one, two])
    assert pq.read_metadata(first.folder / "training.parquet").num_row_groups > 2
    again = prepare(one, tmp_path / "again", data=[two, one])
    assert again.folder.name == first.folder.name
    assert content(again) == content(first)
    assert again.result["files"] == {name: file_hash(first.folder / name) for name in preparation.FILES.values()}


@pytest.fixture
def games(tmp_path):
    """A folder of 50 random games."""
    write_games(tmp_path / "games", make_games(50, seed=1))
    return tmp_path / "games"


def test_the_folder_follows_inputs_settings_and_exclusions(games, tmp_path):
    out, boards = tmp_path / "out", write_boards(tmp_path / "boards.parquet", [(0, 1 << 21)])
    changes = ({}, {"validation_fraction": 0.4}, {"exclude": [str(boards)]})
    names = [prepare(games, out, **change).folder for change in changes]
    write_games(games, make_games(60, seed=1))
    names.append(prepare(games, out).folder)
    assert len(set(names)) == 4
    assert {path for path in out.iterdir() if not path.name.startswith(".")} == set(names)


def test_a_finished_folder_is_reused_and_restart_rebuilds_it(games, tmp_path):
    first, again = (prepare(games, tmp_path / "out") for _ in range(2))
    assert (first.reused, again.reused) == (False, True)
    assert (again.folder, again.result) == (first.folder, first.result)
    before = content(first)
    (first.folder / preparation.FILES[TRAINING]).write_bytes(b"spoilt")
    assert not prepare(games, tmp_path / "out", restart=True).reused
    assert content(first) == before
    (first.folder / preparation.FILES[VALIDATION]).unlink()
    assert not prepare(games, tmp_path / "out").reused, "without one of its files"
    assert content(first) == before


def test_changed_labels_are_refused_also_where_tables_were_made_of_the_old_ones(games, tmp_path):
    first, shard = prepare(games, tmp_path / "out"), games / "shard-00000.parquet"
    before, (table, metadata) = content(first), schema.read_table(shard)
    rows = table.to_pylist()
    for row in rows:
        if 0 in rules.legal_columns(Position(row["current"], row["mask"])):
            row |= {"label": 0, "visits": [9, 0, 0, 0, 0, 0, 0]}
    schema.write_table(shard, pa.Table.from_pylist(rows, schema=ROW), metadata)
    with pytest.raises(DataError, match=rf"{shard}: not the file that the record describes"):
        prepare(games, tmp_path / "out")
    assert content(first) == before


def test_of_two_that_prepare_at_once_the_second_waits_and_reuses(games, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: prepare(games, tmp_path / "out"), range(2)))
    assert sorted(each.reused for each in both) == [False, True]
    assert tables_of(both[0]) == tables_of(both[1])


def test_excluded_boards_must_be_positions_and_not_behind_links(games, tmp_path):
    tables = tables_of(prepare(games, tmp_path / "out"))
    board = max(tables[TRAINING])
    for name in ("real", "linked"):
        (tmp_path / name).mkdir()
    write_boards(tmp_path / "real" / "some.parquet", [board])
    (tmp_path / "linked" / "below").symlink_to(tmp_path / "real")
    write_boards(tmp_path / "linked" / "other.parquet", [])
    with pytest.raises(DataError, match="linked/below is a link to a folder, which is not followed"):
        prepare(games, tmp_path / "out", exclude=[str(tmp_path / "linked")])
    current, mask = board
    write_boards(tmp_path / "sides.parquet", [(current, mask ^ current)])  # two sides instead of a side and all
    with pytest.raises(DataError, match=r"sides\.parquet: row 0 is no position: stones of the side to move"):
        prepare(games, tmp_path / "out", exclude=[str(tmp_path / "sides.parquet")])


def test_the_shipped_benchmark_is_excluded_by_default_and_named_if_it_is_missing(games, tmp_path, monkeypatch, capsys):
    board = max(tables_of(prepare(games, tmp_path / "out", exclude=["benchmark"]))[TRAINING])
    assert "data/benchmark are missing" in capsys.readouterr().err
    (tmp_path / "benchmark").mkdir()
    write_boards(tmp_path / "benchmark" / "dev.parquet", [board])
    shipped = {"data/benchmark": tmp_path / "benchmark"}
    monkeypatch.setattr(provenance, "shipped", shipped.get)
    prepared = prepare(games, tmp_path / "out")
    assert board not in tables_of(prepared)[TRAINING]
    assert prepared.result["counts"]["excluded"]["boards"] == 1


def test_what_a_killed_run_left_is_written_again(games, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(preparation, "_merge", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prepare(games, out)
    assert not list(out.glob("*/*.parquet")), "a failure leaves nothing"
    whole = prepare(games, out)
    expected = state(whole.folder)
    change_record(whole.folder, lambda record: record.update(result=None))
    (whole.folder / preparation.FILES[schema.TRAINING]).write_bytes(b"half")
    (whole.folder / "._run.json.abcd_123.partial").touch()
    assert not prepare(games, out).reused
    assert state(whole.folder) == expected

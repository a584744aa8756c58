"""`distill inspect`: real games pass, and each thing that can be wrong is named with file and game.

The games of the search, of the tests' helpers and those that ship pass. Every column, changed in one row, is noticed.
Counts are those of plain Python, with a board and its mirror as one. A sample of labels is graded where the solver is
installed, and labelled again by a teacher that is a search.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import SIMULATIONS, VOTES, change_record, make_games, write_games

from distill import generate, inspect
from distill.common import provenance, run_folder
from distill.common.settings import build
from distill.common.storage import storage_of
from distill.evaluation import labels
from distill.evaluation.report import percent
from distill.game import rules
from distill.game.rules import Position, mirror
from distill.games import inspection, reader, schema
from distill.games.settings import RunSettings, SelfPlaySettings
from distill.players import solver
from distill.players.intervals import share

SMALL = ["--games", "10", "--simulations", "60", "--shard-games", "4", "--workers", "1", "--seed", "3"]
VICTIM = "shard-00001.parquet"
TEACHER = build(RunSettings, {"simulations": SIMULATIONS, "votes": VOTES, "opening_moves": (1, 2), "seed": 5})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten small games of the teacher in three shards."""
    folder = tmp_path_factory.mktemp("sound") / "games"
    assert generate.main([*SMALL, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    shutil.copytree(sound, tmp_path / "the games")
    return tmp_path / "the games"


def lines(folder: Path) -> list[str]:
    return [line for _, violations, _ in inspection.inspect(storage_of(folder)) for line in violations]


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """The shard with its rows changed, and with it the record, page checksums and all."""
    table, metadata = schema.read_table(path)
    rows = table.to_pylist()
    change(rows)
    sha256 = schema.write_table(path, pa.Table.from_pylist(rows, schema=schema.ROW), metadata)

    def record(run: dict[str, Any]) -> None:
        next(shard for shard in run["result"]["shards"] if shard["name"] == path.name)["sha256"] = sha256

    change_record(path.parent, record)


def test_games_of_the_teacher_and_the_shipped_ones_pass(sound, capsys):
    assert inspect.main([str(sound), "--labels", "0"]) == 0
    rows = run_folder.result_of(sound)["rows"]
    assert f"{sound}: 3 shards, {rows:,} rows, no violation" in capsys.readouterr().out
    assert lines(provenance.ROOT / "data" / "reference" / "validation") == []


@pytest.mark.parametrize("flags", [["--set", "search.mcts_solver=on"], ["--votes", "1"], ["--noise-at", "move"]])
def test_games_of_other_searches_pass(flags, tmp_path):
    assert generate.main([*SMALL, *flags, "--simulations", "150", "--out", str(tmp_path)]) == 0
    assert lines(tmp_path) == []


def set_row(place: int, **values: Any) -> Callable[[list[dict[str, Any]]], None]:
    """A change of one row; a function computes its value from the row."""

    def change(rows: list[dict[str, Any]]) -> None:
        row = rows[place]
        row.update({name: value(row) if callable(value) else value for name, value in values.items()})

    return change


def other_owners(row: dict[str, Any]) -> int:
    """Two stones change owners: legal to look at, but not where the move before leads."""
    own, other = row["current"], row["current"] ^ row["mask"]
    return (own ^ (own & -own)) | (other & -other)


def visits_on_a_full_column(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        legal = rules.legal_columns(Position(row["current"], row["mask"]))
        if 1 < len(legal) < 7:
            row["visits"][int(np.argmax(row["visits"]))] -= 1
            row["visits"][next(column for column in range(7) if column not in legal)] += 1
            return
    raise AssertionError("no row with a full column")


def minority(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The label of a unanimous row becomes another column; returns the row."""
    row = next(row for row in rows[5:] if len(set(row["votes"])) == 1)
    other = next(c for c in rules.legal_columns(Position(row["current"], row["mask"])) if c != row["label"])
    row["label"] = other
    return row


def first_game(keep: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[[list[dict[str, Any]]], None]:
    """Of the first game's rows only those that `keep` takes from them."""

    def change(rows: list[dict[str, Any]]) -> None:
        length = [row["game_id"] for row in rows].count(rows[0]["game_id"])
        rows[:length] = keep(rows[:length])

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_row(10, ply=3), "ply is not the number of stones on the board"),
        (set_row(10, mask=1 << 63), "stones outside the 42 cells"),
        (set_row(2, current=other_owners), "not the position that the move before leads to"),
        (set_row(10, current=0b1111, mask=0b1111 | 0b1111 << 7), "the game is over in this position"),
        (set_row(10, votes=[3, -1, 3]), "a vote that was skipped"),
        (visits_on_a_full_column, "visits on a full column"),
        (set_row(10, simulations=179), "simulations is not the sum of visits"),
        (set_row(10, visits=[10] * 7, simulations=70), "the run has 3 votes of 60 simulations"),
        (minority, "label is not the majority of the votes"),
        (set_row(10, label=7), "label is an illegal column"),
        (set_row(10, move=7), "move is an illegal column"),
        (set_row(10, votes=[3, 9, 3]), "a vote for an illegal column"),
        (set_row(10, visits=[-1] * 7), "visits below 0"),
        (set_row(10, value=float("nan")), "value is not in [-1, 1]"),
        (set_row(10, outcome=2), "outcome is not the result"),
        (set_row(10, game_id=99), "a game outside 4 to 7, the games of the shard"),
        (lambda rows: rows.insert(3, rows.pop(4)), "not sorted by game and ply"),
        (lambda rows: rows.insert(3, dict(rows[3])), "not sorted by game and ply"),
        (lambda rows: rows.pop(7), "not the position that the move before leads to"),
        (first_game(lambda rows: rows[:-1]), "the game's last row, but the move does not end the game"),
        (first_game(lambda rows: []), "game 4: the game has no rows"),
        (
            first_game(lambda rows: [row for row in rows if row["ply"] > 8]),
            "the game starts at a ply that its opening cannot reach",
        ),
        (
            first_game(lambda rows: [row | {"outcome": -row["outcome"] or 1} for row in rows]),
            "outcome is not the result",
        ),
    ],
)
def test_a_row_that_is_not_true_is_named(folder, change, expected):
    rewrite(folder / VICTIM, change)
    found = [line for line in lines(folder) if ": game " in line]
    assert any(expected in line for line in found), found
    assert all(line.startswith(f"{VICTIM}: game ") for line in found)


def test_a_move_that_is_not_the_label_is_wrong_where_the_run_plays_its_labels(folder):
    table, metadata = schema.read_table(folder / VICTIM)
    rows = table.to_pylist()
    row = minority(rows)
    row["votes"] = [row["label"]] * 3
    table = pa.Table.from_pylist(rows, schema=schema.ROW)

    def found(identity: dict[str, Any]) -> list[str]:
        return [*inspection.faults(reader.columns_of("shard", table, metadata), identity, shard)]

    shard = schema.shard_of(VICTIM, table, metadata, b"")
    what = f"game {row['game_id']}, ply {row['ply']}: move is not the label, which the run plays"
    assert found(metadata["identity"]) == [what]
    assert found(metadata["identity"] | {"noise_at": "move", "noise_fraction": 0.25}) == []
    assert found({"network": "0123", "simulations": 60}) == []


def test_the_command_lists_files_that_are_not_those_of_the_record(folder, capsys):
    (folder / VICTIM).rename(folder / "shard-00007.parquet")
    assert inspect.main([str(folder), "--labels", "0"]) == 1
    out, err = capsys.readouterr()
    assert f"{folder}/{VICTIM}: not the file that the record describes (missing, damaged or changed)" in out
    assert f"{folder}/shard-00007.parquet: not in the record" in out
    assert err.endswith("; delete the files that are wrong and start the command that wrote them again\n")


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *flags: str) -> dict[str, str]:
    """The table of a sound folder."""
    assert inspect.main([str(folder), "--workers", "1", *flags]) == 0
    rows = [line.strip("| ").split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    return {name.strip(): value.strip() for name, value in rows[2:]}


def canonical(row: dict[str, Any]) -> Position:
    position = Position(row["current"], row["mask"])
    return min(position, mirror(position), key=lambda one: (one.current, one.mask))


def test_every_count_is_that_of_plain_python(tmp_path, capsys):
    write_games(tmp_path / "games", make_games(40, seed=1), identity=TEACHER.games_identity())
    rows = make_games(40, seed=1).to_pylist()
    table = printed(capsys, tmp_path / "games", "--labels", "0")
    assert (table["games"], table["rows"]) == ("40", f"{len(rows):,}")
    assert table["distinct boards, up to mirror"] == f"{len({*map(canonical, rows)}):,}"
    assert table["rows with 9 to 16 stones"] == f"{sum(9 <= row['ply'] <= 16 for row in rows):,}"
    last = {row["game_id"]: row for row in rows}.values()
    results = Counter(row["outcome"] * (-1) ** row["ply"] for row in last)
    assert table["results of the first player"] == f"{results[1]} wins, {results[0]} draws, {results[-1]} losses"


def test_a_sample_of_labels_is_graded_and_the_teacher_labels_it_again(tmp_path, monkeypatch, capsys):
    write_games(tmp_path / "games", make_games(20, seed=1), identity=TEACHER.games_identity())
    graded = {"optimal": share([1.0, 0.0]), "outcome": share([1.0, 1.0])}
    monkeypatch.setattr(labels, "quality", lambda rows, workers: graded)
    monkeypatch.setattr(solver, "is_installed", lambda: True)
    table = printed(capsys, tmp_path / "games", "--labels", "30")
    assert table["labels, optimal, %"] == f"{percent(graded['optimal'])} of 2 games"
    rows = labels.sample(reader.raw_rows([tmp_path / "games"]), 30, seed=0)
    teacher = labels.teacher_of(TEACHER.games_identity())
    assert teacher is not None
    ceiling = labels.noise_ceiling(rows, teacher, seed=0)
    assert ceiling.units == len(np.unique(rows.game)) < 30
    assert table["noise ceiling, %"] == f"{percent(ceiling)} of {ceiling.units} games"
    for other in ({"search_version": 0}, {"votes": 10**9}):
        assert labels.teacher_of(TEACHER.games_identity() | other) is None, other


def test_the_labels_of_a_network_are_not_repeated_and_without_the_solver_none_is_graded(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    settings = build(SelfPlaySettings, {"simulations": 7, "noise_fraction": 0.0, "opening_moves": (1, 2)})
    write_games(tmp_path / "games", make_games(12, seed=3), identity=settings.games_identity("0123abcd-bfloat16"))
    table = printed(capsys, tmp_path / "games")
    assert table["labels"].startswith("not graded, because the solver is missing: python -m pip install ")
    assert "noise ceiling, %" not in table

"""Labels that were changed in place, and `validate --accept-labels`. Properties:

- every command that reads games refuses changed files in one line that names the file and the command
- accepted, they are another run: other tables, another split, `generate` leaves them alone, the card says so
- whatever wrote the files (pandas, pyarrow), of games and of packed boards; unchanged labels stay the same run
- boards, moves, results, legal columns and ranges must be true; then nothing is written
- a process killed in the middle leaves what no command takes, and what can be accepted again
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import make_games, state, write_games

from distill import describe, generate, prepare, train, validate
from distill.common import DataError
from distill.datasets import preparation, relabelling
from distill.evaluation import noise_ceiling
from distill.game import rules
from distill.game.rules import Position
from distill.games import reader, schema
from distill.games.storage import Folder, storage_of

SHARDS = ("shard-00000.parquet", "shard-00001.parquet", "shard-00002.parquet")
FLAGS = ["--games", "10", "--simulations", "40", "--shard-games", "4", "--workers", "1", "--seed", "5"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten small games of the teacher in three shards."""
    folder = tmp_path_factory.mktemp("played") / "games"
    assert generate.main([*FLAGS, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def mine(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(played, "mine"))


def relabelled(rows: list[dict[str, Any]]) -> None:
    """Another engine's labels: always the leftmost open column, with all visits on it."""
    for row in rows:
        best = rules.legal_columns(Position(row["current"], row["mask"]))[0]
        row |= {"label": best, "visits": [100 * (column == best) for column in range(7)], "value": 0.5}


def change(folder: Path, how: Callable[[list[dict[str, Any]]], Any] = relabelled, names: Any = SHARDS) -> None:
    for name in names:
        table, metadata = schema.read_table(folder / name)
        rows = table.to_pylist()
        how(rows)
        schema.write_table(folder / name, pa.Table.from_pylist(rows, schema=schema.ROW), metadata)


@pytest.mark.parametrize(
    "command",
    [
        (prepare, ["--data", "mine"]),
        (train, ["--data", "mine"]),
        (describe, ["mine", "--label-rows", "0", "--top1-rows", "0"]),
    ],
    ids=["prepare", "train", "describe"],
)
def test_changed_labels_are_refused_in_one_line_that_names_the_file_and_the_command(
    command: Any, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, words = command
    change(mine)
    before = state(mine)
    assert module.main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "mine/shard-00000.parquet: not the file the manifest describes (damaged or changed)" in err
    accept, otherwise = err.split("; ")[1:]
    assert accept == "to train on changed labels, as a new run: python -m distill.validate mine --accept-labels"
    again = "delete the file, then: python -m distill.generate --config mine/config.json --out mine"
    assert otherwise == f"to discard changed labels: {again}\n"
    assert state(mine) == before


def test_accepted_labels_are_another_run(mine: Path, played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = reader.open_run(played)
    before = preparation.prepare([played], Path("prepared"), exclude=())
    change(mine)
    assert validate.main(["mine"]) == 1
    assert "python -m distill.validate mine --accept-labels" in capsys.readouterr().err
    assert validate.main(["mine", "--accept-labels"]) == 0
    assert "mine: changed labels accepted; run " in capsys.readouterr().out
    assert validate.main(["mine"]) == 0
    new = reader.open_run(mine)
    assert new.name != old.name
    assert (new.games, new.rows) == (old.games, old.rows)
    after = preparation.prepare([mine], Path("prepared"), exclude=())
    assert after.folder != before.folder
    rows = schema.read_table(mine / SHARDS[2])[0].to_pylist()
    assert all(row["label"] == rules.legal_columns(Position(row["current"], row["mask"]))[0] for row in rows)
    accepted = state(mine)
    assert validate.main(["mine", "--accept-labels"]) == 0
    assert "changed labels accepted" in capsys.readouterr().out
    assert state(mine) == accepted, "what was accepted stays what it is"
    assert generate.main([*FLAGS, "--out", "mine"]) == 1
    assert "holds a run with other settings (relabelled " in capsys.readouterr().err
    assert noise_ceiling.teacher_of(mine) is None, "nobody can ask the other engine again"
    assert describe.main(["mine", "--label-rows", "0", "--workers", "1"]) == 0
    card = Path("mine/README.md").read_text(encoding="utf-8")
    assert "labels changed since" in card
    assert "--relabelled" not in card


@pytest.mark.parametrize("writer", ["pandas", "pyarrow"])
def test_whatever_wrote_the_files_they_can_be_accepted(writer: str, mine: Path, played: Path) -> None:
    for name in SHARDS:
        if writer == "pandas":
            frame = pd.read_parquet(mine / name)
            frame["value"] = -0.25
            frame.to_parquet(mine / name)
        else:
            table = pq.read_table(mine / name)
            pq.write_table(table.set_column(8, "value", pa.array([-0.25] * len(table), pa.float32())), mine / name)
    assert validate.main(["mine", "--accept-labels"]) == 0
    assert validate.main(["mine"]) == 0
    table, _ = schema.read_table(mine / SHARDS[1])
    assert set(table["value"].to_pylist()) == {-0.25}
    assert table["votes"] == schema.read_table(played / SHARDS[1])[0]["votes"]


def test_unchanged_labels_stay_the_same_run(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = reader.open_run(mine).name
    change(mine, lambda rows: None)
    pq.write_table(pq.read_table(mine / SHARDS[0]), mine / SHARDS[0], compression="gzip")
    assert validate.main(["mine", "--accept-labels"]) == 0
    assert "mine: labels are unchanged" in capsys.readouterr().out
    assert reader.open_run(mine).name == name
    assert validate.main(["mine"]) == 0


def set_row(place: int, **values: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[place].update(values)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (set_row(3, label=7), "label 7 is no legal column"),
        (set_row(3, visits=[0] * 7), "no visits"),
        (set_row(3, visits=[-1, 2, 0, 0, 0, 0, 0]), "below zero"),
        (set_row(3, value=1.25), "value 1.25 outside [-1, 1]"),
        (set_row(3, value=float("nan")), "value nan outside [-1, 1]"),
        (set_row(3, votes=[7, 7, 7]), "votes 7 7 7 with one for no legal column"),
        (set_row(3, outcome=2), "outcome 2 is none of 1, 0, -1"),
        (set_row(3, mask=1 << 63), "stones outside the 42 cells"),
        (lambda rows: rows.pop(3), "but the move does not end the game"),
        (lambda rows: rows.clear(), "the game has no rows"),
    ],
)
def test_boards_moves_results_and_ranges_must_be_true(
    how: Callable[..., Any], expected: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(mine, names=SHARDS[:2])
    change(mine, how, SHARDS[1:2])
    before = state(mine)
    assert validate.main(["mine", "--accept-labels"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("distill validate: mine/shard-00001.parquet, game ")
    assert expected in error
    assert error.count("\n") == 1
    assert state(mine) == before


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda folder: (folder / SHARDS[1]).unlink(), "shard-00001.parquet: missing, though the manifest names it"),
        (lambda folder: shutil.copy(folder / SHARDS[1], folder / "shard-00009.parquet"), "not in the manifest"),
        (lambda folder: (folder / schema.MANIFEST).unlink(), "so the run is not finished"),
        (lambda folder: (folder / SHARDS[1]).write_bytes(b"PAR1"), "not a readable Parquet file"),
        (lambda folder: pd.DataFrame({"label": [1]}).to_parquet(folder / SHARDS[1]), "column 'game_id' is missing"),
    ],
)
def test_a_run_with_missing_parts_is_not_accepted(
    harm: Callable[..., Any], expected: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(mine)
    assert validate.main(["mine", "--accept-labels"]) == 1
    assert expected in capsys.readouterr().err


def test_a_killed_process_leaves_what_can_be_accepted_again(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(mine)
    shutil.copytree(mine, "whole")
    expected = relabelling.accept(storage_of("whole"))
    write = Folder.write

    def killed(place: Folder, name: str, content: bytes) -> None:
        if name == SHARDS[1]:
            raise KeyboardInterrupt
        write(place, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            relabelling.accept(storage_of(mine))
    with pytest.raises(DataError, match="--accept-labels"):
        reader.verify([reader.open_run(mine)])
    assert relabelling.accept(storage_of(mine)) == expected


def test_packed_boards_can_be_relabelled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_games(tmp_path / "games", make_games(30, seed=1))
    assert prepare.main(["--data", "games", "--packed", "boards", "--exclude"]) == 0
    (path,) = Path("boards").glob("shard-*.parquet")
    table, metadata = schema.read_table(path, schema.PACKED_ROW)
    place = schema.PACKED_ROW.get_field_index("value")
    values = pa.array([7] * len(table), pa.int8())
    schema.write_table(path, table.set_column(place, schema.PACKED_ROW.field("value"), values), metadata)
    name = reader.open_run(Path("boards")).name
    assert validate.main(["boards", "--accept-labels"]) == 0
    assert reader.open_run(Path("boards")).name != name
    assert validate.main(["boards"]) == 0
    assert prepare.main(["--data", "boards", "--exclude"]) == 0

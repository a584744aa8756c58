"""Packed boards: `prepare --packed`, and the folder in the place of one of games.

- they are the prepared boards of both splits, each once: visits exact up to 255, shares within one part in 255 beyond,
  value within half a step, outcome rounded; the label is the column with most visits
- a second command does nothing; boards of other tables and other folders stay
- `inspect` and `prepare` take them for games, which never count twice
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import change_record, make_games, state, write_games

import distill
from distill import generate, inspect, prepare, train
from distill.common import provenance, run_folder
from distill.datasets import preparation
from distill.game import rules
from distill.game.rules import canonical_keys
from distill.games import reader, schema
from distill.games.schema import TRAINING, VALIDATION


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with games, some of which meet often, and their packed boards."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "shipped", lambda _: None)
        patch.chdir(folder)
        write_games(folder / "data" / "games", make_games(200, seed=1, first_plies=1))
        assert prepare.main(["--packed", "boards", "--validation-fraction", "0.3"]) == 0
    return folder


@pytest.fixture
def workplace(made, nothing_ships, tmp_path, monkeypatch):
    """A working directory of each test's own, a copy of that."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_the_prepared_boards_of_both_splits(workplace):
    (folder,) = (path for path in Path("data/prepared").iterdir() if not path.name.startswith("."))
    tables = reader.joined([vars(preparation.load(folder, split)) for split in (TRAINING, VALIDATION)])
    keys = tables["current"] + tables["mask"]
    boards = reader.chosen(tables, np.argsort(keys))
    (run,) = reader.open_runs([Path("boards")])
    reader.verify([run])
    (shard,) = run.shards
    rows = reader.read(shard, ("game_id", "ply", "current", "mask", "label", "visits", "value", "outcome"))
    for name in ("current", "mask"):
        assert np.array_equal(rows[name], boards[name]), name
    assert np.array_equal(np.unique(keys), canonical_keys(rows["current"], rows["mask"]))
    assert len(keys) == run.rows == run.games
    assert rows["game_id"].tolist() == list(range(run.rows))
    assert np.array_equal(rows["ply"], np.bitwise_count(rows["mask"]))
    visits, largest = rows["visits"], boards["visits"].max(1, keepdims=True)
    small = largest[:, 0] <= 255
    assert 0 < small.mean() < 1
    assert np.array_equal(visits[small], boards["visits"][small])
    assert np.array_equal(visits.max(1, keepdims=True), np.minimum(largest, 255))
    assert np.abs(visits / visits.max(1, keepdims=True) - boards["visits"] / largest).max() <= 0.5 / 255 + 1e-9
    assert (visits[np.arange(len(visits)), rows["label"]] == visits.max(1)).all()
    np.testing.assert_allclose(rows["value"], boards["value"], atol=0.5 / 127 + 1e-6)
    np.testing.assert_allclose(rows["outcome"], boards["outcome"], atol=0.5)


def test_a_second_command_does_nothing_and_other_boards_stay(workplace, capsys):
    def times() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in Path("boards").iterdir()}

    before = times()
    assert prepare.main(["--packed", "boards", "--validation-fraction", "0.3"]) == 0
    assert prepare.main(["--packed", "boards"]) == 1
    assert "boards: holds packed boards with other settings (rows " in capsys.readouterr().err
    assert prepare.main(["--data", "boards", "--packed", "./boards", "--restart"]) == 2
    assert "--packed boards must not be a folder of --data" in capsys.readouterr().err
    assert times() == before
    assert prepare.main(["--packed", "boards", "--restart"]) == 0
    after = run_folder.finished(Path("boards"), schema.PACKED_BOARDS)
    (shard,) = Path("boards").glob("shard-*.parquet")
    content = shard.read_bytes()
    for lose in (lambda: change_record(Path("boards"), lambda record: record.update(result=None)), shard.unlink):
        lose()  # as after a kill, and as somebody deletes a file
        assert prepare.main(["--packed", "boards"]) == 0
        assert (run_folder.read(Path("boards")), shard.read_bytes()) == (after, content)
    shard.write_bytes(content[:-1])
    assert prepare.main(["--packed", "boards"]) == 1
    assert f"{shard}: " in capsys.readouterr().err


def test_the_same_games_never_count_twice(workplace, complaint):
    for size in ("4", "3"):
        words = ["--games", "8", "--simulations", "20", "--votes", "1", "--shard-games", size, "--out", f"size-{size}"]
        assert generate.main(words) == 0
    assert prepare.main(["--packed", "packed", "--exclude", "data/games/shard-00000.parquet"]) == 0
    assert prepare.main(["--data", "boards", "--packed", "again", "--exclude"]) == 0
    twice = (("size-4", "size-3"), ("boards", "packed"), ("boards", "data/games"), ("again", "data/games"))
    for one, other in twice:
        before = state(workplace)
        for command, out in ((prepare, "out"), (train, "model")):
            assert "games of the same run as in" in complaint(command, "--data", one, other, "--out", out)
        assert state(workplace) == before


def test_inspect_and_prepare_take_them_for_games(workplace, capsys):
    shipped = Path(distill.__file__).parents[1] / "data/reference/labels-200"
    assert inspect.main(["boards", str(shipped), "--labels", "0"]) == 0
    (run,) = reader.open_runs([Path("boards")])
    assert f"| {run.rows:,} |" in " ".join(capsys.readouterr().out.split()), "the number of distinct boards"
    again = preparation.prepare(preparation.TableSettings(data=["boards"], validation_fraction=0.2), Path("again"))
    assert sum(len(preparation.load(again.folder, split)) for split in (TRAINING, VALIDATION)) == run.rows


def test_every_key_gives_its_board_back():
    rng = np.random.default_rng(0)
    heights = rng.integers(0, rules.ROWS, (5000, rules.COLUMNS), endpoint=True)
    mask = ((1 << heights) - 1 << 7 * np.arange(rules.COLUMNS)).sum(1).astype(np.uint64)
    current = rng.integers(0, 1 << 49, 5000, dtype=np.uint64) & mask
    found_current, found_mask = rules.from_keys(current + mask)
    assert np.array_equal(found_current, current)
    assert np.array_equal(found_mask, mask)

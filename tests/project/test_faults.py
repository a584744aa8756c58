"""Faults of a command's surroundings, in every stage: one line, nothing broken, and the same command then works.

tests/FAULTS.md lists all faults and where each is tested.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import change_record, imports_of, make_games, no_file_larger_than, write_games

import distill
from distill import evaluate, export, generate, inspect, prepare, train
from distill.common import run_folder

PACKAGE = Path(distill.__file__).parent
TINY = ["--games", "2", "--simulations", "30", "--shard-games", "1", "--workers", "1"]
STAGES = ["generate", "prepare", "train", "export", "evaluate"]


@pytest.fixture(scope="module")
def done(tmp_path_factory, tiny_networks, checked_here, undrawn_here) -> Path:
    """A folder with games, tables and a trained network; its path has spaces and non-Latin letters."""
    base = tmp_path_factory.mktemp("Méine Dâten ✓ 数据")
    write_games(base / "random", make_games(20, seed=2))
    assert [run(stage, base) for stage in STAGES] == [0] * 5
    return base


def run(stage: str, base: Path, out: Path | None = None, inputs: Path | None = None) -> int:
    """One stage at its smallest, in this process. It reads `inputs` and writes into `out`, by default both `base`."""
    out, inputs = out or base, inputs or base
    data = ["--data", str(inputs / "random")]
    learn = ["--preset", "smoke", "--arch", "pillar", "--epochs", "1", "--batch-size", "100000", "--no-export"]
    learn += ["--prepared", str(inputs / "prepared"), *data, "--exclude", "--out", str(out / "net")]
    grade = ["random", "--boards", "2", "--workers", "1", "--out", str(out / "evaluation")]
    main, flags = {
        "generate": (generate.main, [*TINY, "--out", str(out / "games")]),
        "prepare": (prepare.main, [*data, "--out", str(out / "prepared"), "--validation-fraction", "0.5", "--exclude"]),
        "train": (train.main, learn),
        "export": (export.main, [str(inputs / "net" / "best.keras"), "--out", str(out / "product")]),
        "evaluate": (evaluate.main, grade),
    }[stage]
    return main(flags)


def last_line(capsys, stage: str) -> str:
    """The message of a failed command: the last line on stderr, without a traceback."""
    error = capsys.readouterr().err
    assert "Traceback" not in error, error
    line = error.splitlines()[-1]
    assert line.startswith(f"distill {stage}: "), error
    return line


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.usefixtures("own_processes")
def test_a_full_disk_is_one_line_and_the_command_works_afterwards(stage, done, tmp_path, capsys):
    with no_file_larger_than(600):
        assert run(stage, tmp_path, inputs=done) == 1
    line = last_line(capsys, stage)
    assert str(tmp_path) in line, "the file is named"
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size == 600]
    assert not left, "a partial file stays"
    if stage != "export":  # keeps nothing to resume from, and takes longest
        assert run(stage, tmp_path, inputs=done) == 0


def test_every_stage_works_under_a_path_with_spaces_and_non_latin_letters(done):
    assert "✓ 数据" in str(done)
    assert inspect.main([str(done / "games"), "--labels", "0"]) == 0
    assert run_folder.result_of(done / "net")["steps"] == 1, "in its one epoch a batch has all boards"
    assert (done / "product" / "saved_model" / "1" / "saved_model.pb").is_file()
    assert (done / "evaluation" / "report.md").is_file()


def test_nothing_is_pickled_and_nothing_that_is_stored_or_decided_depends_on_the_time_of_day():
    """NumPy files are read without pickle. (The pool, the cluster and Numba's cache pickle their own.)"""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = {entry.name.split(".")[0] for entry in imports_of(path, "distill")}
        assert not names & {"pickle", "cloudpickle", "dill", "shelve", "marshal"}, path
        assert not [word for word in ("allow_pickle", "safe_mode=False", "joblib.load") if word in text], path
        if path.relative_to(PACKAGE).parts[0] in ("mcts", "games", "datasets"):
            assert not [word for word in ("time.time(", "st_mtime", "datetime") if word in text], path


def test_a_single_game_is_a_run_and_too_little_to_train_on(tmp_path, capsys):
    flags = ["--games", "1", "--simulations", "30", "--workers", "1", "--out", str(tmp_path / "random")]
    assert generate.main(flags) == 0
    assert inspect.main([str(tmp_path / "random"), "--labels", "0"]) == 0
    capsys.readouterr()
    assert run("train", tmp_path) == 1
    assert "generate more games" in last_line(capsys, "train")


# Untrusted files


def test_an_array_of_objects_is_no_checkpoint(tmp_path, done, capsys):
    shutil.copytree(done / "net", tmp_path / "net")
    change_record(tmp_path / "net", lambda record: record.update(result=None))
    np.savez(tmp_path / "net" / "checkpoint.npz", state=np.array([{"step": 1}], dtype=object))
    assert run("train", tmp_path, inputs=done) == 1
    expected = "checkpoint.npz: damaged (Object arrays cannot be loaded when allow_pickle=False)"
    assert expected in last_line(capsys, "train")


@pytest.mark.parametrize("name", ["../elsewhere", "{elsewhere}", "a/../../elsewhere"])
def test_a_run_from_others_cannot_name_files_outside_its_folder(name, tmp_path, capsys):
    folder, elsewhere = tmp_path / "random", tmp_path / "elsewhere"
    write_games(folder, make_games(5, seed=1))
    shutil.move(folder / "shard-00000.parquet", elsewhere)
    other = {"name": name.format(elsewhere=elsewhere)}
    change_record(folder, lambda record: record["result"]["shards"][0].update(other))
    assert run("prepare", tmp_path) == 1
    assert "not the result of a run of games (name: " in last_line(capsys, "prepare")

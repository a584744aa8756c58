"""What can go wrong around a command, in every stage: one line, nothing broken, and the same command goes on.

The table in docs/faults.md lists all faults and where each is tested; here are those of the surroundings:

- disk full (a real limit on the size of files) and read-only folders, in generate, prepare, train, export, evaluate
- rows that do not fit in memory, in prepare and describe: no room to spill them, and less memory than the work needs
- address space in which TensorFlow finds no room
- paths with spaces and Unicode; an ASCII-only locale; no home directory; a damaged or unusable cache of compiled code
- a clock that was moved back, files from the future
- no games, one game, more rows in a batch than there are
- half-written files left by a killed process
- no pickle: not imported, not allowed in NumPy files
- shards and manifests from elsewhere: sizes are bounded before memory is taken, names stay in their folder
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import imports_of, make_games, same_manifest, write_games

import distill
from distill import describe, evaluate, export, generate, prepare, train, validate
from distill.common import DataError, file_hash
from distill.game import rules
from distill.games import games, schema
from distill.mcts.engine import jit

PACKAGE = Path(distill.__file__).parent
TINY = ["--games", "2", "--simulations", "30", "--shard-games", "1", "--workers", "1"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, tiny_networks: None, checked_here: None, undrawn_here: None) -> Path:
    """A folder with games, tables and a trained network, under a path with blanks and letters of other scripts."""
    base = tmp_path_factory.mktemp("Méine Dâten ✓ 数据")
    assert run("generate", base) == 0
    (base / "random").mkdir()
    write_games(base / "random", make_games(20, seed=2))
    for stage in ("prepare", "train", "export", "evaluate"):
        assert run(stage, base) == 0
    return base


def run(stage: str, base: Path, out: Path | None = None, inputs: Path | None = None) -> int:
    """One stage at its smallest, in this process; it reads `inputs` and writes below `out`, both `base` if left out."""
    out, inputs = out or base, inputs or base
    data = ["--data", str(inputs / "random")]
    if stage == "generate":
        return generate.main([*TINY, "--out", str(out / "games")])
    if stage == "prepare":
        return prepare.main([*data, "--out", str(out / "prepared"), "--validation-fraction", "0.5", "--exclude"])
    if stage == "train":
        flags = ["--preset", "smoke", "--arch", "pillar", "--epochs", "1", "--prepared", str(inputs / "prepared")]
        flags += ["--batch-size", "100000"]
        return train.main([*flags, *data, "--out", str(out / "net"), "--exclude", "--no-export"])
    if stage == "export":
        return export.main([str(inputs / "net" / "best.keras"), "--out", str(out / "product")])
    words = ["random", "--boards", "2", "--no-latency", "--workers", "1"]
    return evaluate.main([*words, "--out", str(out / "evaluation")])


def last_line(capsys: pytest.CaptureFixture[str], stage: str) -> str:
    """The message of a failed command: the last line of its errors, without a traceback."""
    error = capsys.readouterr().err
    assert "Traceback" not in error, error
    line = error.splitlines()[-1]
    assert line.startswith(f"distill {stage}: "), error
    return line


STAGES = ["generate", "prepare", "train", "export", "evaluate"]


@contextlib.contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """What a full disk looks like from inside: writing fails, for this process and those it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_is_one_line_and_the_command_goes_on_afterwards(
    stage: str, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with no_file_larger_than(600):
        assert run(stage, tmp_path, inputs=done) == 1
    last_line(capsys, stage)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size == 600]
    assert not left, "a part of a file stays"
    if stage != "export":  # which keeps nothing to go on from, and takes longest
        assert run(stage, tmp_path, inputs=done) == 0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 250,000 rows of random bits, which DuckDB cannot keep in 15 MiB."""
    dice, count = np.random.default_rng(1), 250_000
    mask = dice.integers(0, rules.FULL_BOARD, count, np.uint64) & np.uint64(rules.FULL_BOARD)
    label = dice.integers(0, 7, count)
    rows = {"game_id": np.arange(count) // 16, "mask": mask, "current": mask & dice.permutation(mask), "move": label}
    rows |= {"ply": np.bitwise_count(mask), "label": label, "votes": label[:, None].tolist(), "simulations": label * 0}
    rows |= {"visits": np.eye(7)[label].tolist(), "value": label / 7, "outcome": label // 3 - 1}
    folder = tmp_path_factory.mktemp("many")
    write_games(folder, pa.table(rows).select(schema.ROW.names).cast(schema.ROW), 8000, {"simulations": 1})
    return folder


@pytest.mark.parametrize(
    ("stage", "memory", "reason"),
    [
        ("prepare", "0.015 --threads 1", "File too large"),
        ("prepare", "0.01 --threads 1", "Out of Memory Error"),
        ("describe", "0.01 --workers 1", "File too large"),
        ("describe", "0.01 --workers 64", "Out of Memory Error"),
    ],
)
def test_rows_that_find_room_neither_in_memory_nor_on_the_disk_are_one_line(
    stage: str, memory: str, reason: str, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    command, out = (prepare.main, "prepared") if stage == "prepare" else (describe.main, "card.md")
    given = ["--data", str(many)] if stage == "prepare" else [str(many), "--label-rows", "0", "--top1-rows", "0"]
    given += ["--out", str(tmp_path / out)]
    room = tmp_path / ("prepared" if stage == "prepare" else "spill")
    with no_file_larger_than(2_000_000) if "large" in reason else contextlib.nullcontext():
        assert command([*given, "--memory-gib", *memory.split()]) == 1
    line = last_line(capfd, stage)
    assert reason in line
    assert f"free space in {room}, where rows lie that do not fit into {memory.split()[0]} GiB" in line
    assert "--memory-gib" in line
    assert [path.name for path in tmp_path.rglob("*")] == ["spill"], "something stays"
    if "large" in reason:
        assert command([*given, "--memory-gib", *memory.split()]) == 0, (
            "it was the disk: with room the rows are spilled"
        )


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that cannot be written to; for root, whom no permission stops, a file system that is mounted so."""
    folder.mkdir()
    if os.geteuid():
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("root without the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("stage", STAGES)
def test_a_read_only_folder_is_named_in_one_line(
    stage: str, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with read_only(tmp_path / "fixed"):
        assert run(stage, tmp_path, out=tmp_path / "fixed", inputs=done) == 1
        line = last_line(capsys, stage)
    assert str(tmp_path / "fixed") in line
    assert "Read-only" in line or "Permission denied" in line


def test_every_stage_works_under_a_path_with_blanks_and_letters_of_other_scripts(done: Path) -> None:
    assert "✓ 数据" in str(done)
    assert validate.main([str(done / "games")]) == 0
    assert (done / "product" / "saved_model" / "1" / "saved_model.pb").is_file()
    assert (done / "evaluation" / "report.md").is_file()


def started(arguments: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, in a folder; variables replace those of this process."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_an_ascii_locale_hides_letters_and_nothing_else(tmp_path: Path) -> None:
    made = started(["distill.generate", *TINY, "--out", "games"], tmp_path, **ASCII)
    assert made.returncode == 0, made.stderr
    assert "2 games" in made.stdout
    prepared = started(["distill.prepare", "--data", "games", "--exclude", "--out", "tables"], tmp_path, **ASCII)
    assert "Traceback" not in prepared.stderr
    accented = started(["distill.generate", *TINY, "--out", "Dâten"], tmp_path, **ASCII)
    assert accented.returncode == 2
    assert accented.stderr == (
        "distill generate: D??ten cannot be read in this locale; set LC_ALL=C.UTF-8, or PYTHONUTF8=1 "
        "(--help lists the flags)\n"
    )


def test_without_a_home_the_work_is_the_same(tmp_path: Path, done: Path) -> None:
    nowhere = "/dev/null/nowhere"
    made = started(["distill.generate", *TINY, "--out", "games"], tmp_path, HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert made.returncode == 0, made.stderr
    for name in ("shard-00000.parquet", "shard-00001.parquet"):
        assert (tmp_path / "games" / name).read_bytes() == (done / "games" / name).read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space by ulimit -v")
def test_an_address_space_without_room_for_tensorflow_is_one_line(tmp_path: Path) -> None:
    network = PACKAGE.parent / "models" / "reference" / "pillar"
    line = f"ulimit -v 3000000; {sys.executable} -m distill.export {network} --out {tmp_path / 'out'}"
    made = subprocess.run(["bash", "-c", line], cwd=PACKAGE.parent, capture_output=True, text=True)
    assert made.returncode == 1
    assert made.stderr.startswith(
        "distill export: not enough memory for TensorFlow: ulimit -v is 3000000, raise it to "
    )
    assert made.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def thrice(word: int) -> int:
    return word * 3


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_cache_of_compiled_code_is_made_anew(
    tmp_path: Path, suffix: str, content: bytes | None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """None: the file is cut in half."""
    monkeypatch.setattr(jit, "FOLDER", str(tmp_path))
    assert jit.jit(thrice)(14) == 42
    files = list(tmp_path.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    for error in ("is damaged", ""):  # compiled anew, then found in the cache
        again = jit.jit(thrice)
        assert again(14) == 42
        said = capsys.readouterr().err
        assert error in said if error else not said
    assert again.stats.cache_hits, "the cache was not asked"


@pytest.mark.slow
def test_a_read_only_install_without_any_cache_compiles_each_time(tmp_path: Path) -> None:
    """The package on a file system mounted read-only (or of another user), no home, no cache folder."""
    install = tmp_path / "install"
    shutil.copytree(PACKAGE, tmp_path / "copy" / "distill", ignore=shutil.ignore_patterns("__pycache__"))
    nowhere = {"HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x", "PYTHONPATH": str(install)}
    install.mkdir()
    bound = subprocess.run(["mount", "--bind", str(tmp_path / "copy"), str(install)], capture_output=True).returncode
    if os.geteuid() or bound or subprocess.run(["mount", "-o", "remount,ro,bind", str(install)]).returncode:
        pytest.skip("needs the right to mount")
    try:
        made = started(["distill.generate", *TINY, "--out", "games"], tmp_path, **nowhere)
    finally:
        subprocess.run(["umount", str(install)], check=True)
    assert made.returncode == 0, made.stderr
    assert "compiling takes seconds each time" in made.stderr


@pytest.mark.parametrize("year", [1970, 2100])
def test_a_clock_that_was_moved_changes_nothing(
    year: int, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files from the past or the future: what is finished stays so, what is missing is made."""
    shutil.copytree(done / "games", tmp_path / "games")
    shutil.copytree(done / "random", tmp_path / "random")
    shutil.copytree(done / "prepared", tmp_path / "prepared")
    for path in tmp_path.rglob("*"):
        os.utime(path, ((year - 1970) * 31_556_952.0,) * 2)
    assert run("generate", tmp_path) == 0
    assert "finished before" in capsys.readouterr().out
    (tmp_path / "games" / "shard-00001.parquet").unlink()
    (tmp_path / "games" / schema.MANIFEST).unlink()
    assert run("generate", tmp_path) == 0
    assert same_manifest(tmp_path / "games", done / "games")
    assert run("prepare", tmp_path) == 0
    assert ": reused tables of " in capsys.readouterr().out


def test_nothing_that_is_stored_or_decided_depends_on_the_time_of_day() -> None:
    files = [path for package in ("mcts", "games", "datasets") for path in (PACKAGE / package).rglob("*.py")]
    assert len(files) > 10
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "time.time(" not in text, path
        assert "st_mtime" not in text, path
        assert "datetime" not in text, path


def test_a_single_game_is_a_run_and_too_little_to_train_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--games", "1", "--simulations", "30", "--workers", "1", "--out", str(tmp_path / "random")]
    assert generate.main(flags) == 0
    assert validate.main([str(tmp_path / "random")]) == 0
    capsys.readouterr()
    assert run("train", tmp_path) == 1
    assert "generate more games" in last_line(capsys, "train")


def test_no_games_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "random").mkdir()
    write_games(tmp_path / "random", schema.ROW.empty_table())
    for stage in ("prepare", "train"):
        assert run(stage, tmp_path) == 1
        assert "generate more games" in last_line(capsys, stage)


def test_a_batch_larger_than_the_data_holds_all_of_them(done: Path) -> None:
    assert json.loads((done / "net" / "metrics.json").read_text())["steps"] == 1  # in its one epoch


@pytest.mark.parametrize(
    ("stage", "name", "message"),
    [
        ("prepare", "prepared/*/manifest.json", "manifest.json"),
        ("train", "net/metrics.json", "metrics.json"),
        ("train", "net/run.json", "run.json: cannot be read; --restart begins anew"),
    ],
)
def test_half_a_file_of_settings_or_of_an_end_is_named(
    stage: str, name: str, message: str, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("random", "prepared", "net"):
        shutil.copytree(done / folder, tmp_path / folder)
    (path,) = tmp_path.glob(name)
    path.write_bytes(path.read_bytes()[:20])
    assert run(stage, tmp_path) == 1
    assert message in last_line(capsys, stage)


# Untrusted files


def test_nothing_is_pickled() -> None:
    """Not by us, and NumPy's files are read without. (Pool, cluster and Numba's cache carry their own, of our own.)"""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = {entry.name.split(".")[0] for entry in imports_of(path, "distill")}
        assert not names & {"pickle", "cloudpickle", "dill", "shelve", "marshal"}, path
        assert "allow_pickle" not in text, path
        assert "safe_mode=False" not in text, path
        assert "joblib.load" not in text, path


def test_an_array_of_objects_is_no_checkpoint(tmp_path: Path, done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(done / "net", tmp_path / "net")
    (tmp_path / "net" / "metrics.json").unlink()
    np.savez(tmp_path / "net" / "checkpoint.npz", state=np.array([{"step": 1}], dtype=object))
    assert run("train", tmp_path, inputs=done) == 1
    assert "checkpoint.npz: damaged (Object arrays cannot be loaded when allow_pickle=False)" in last_line(
        capsys, "train"
    )


def forged(path: Path, table: pa.Table, metadata: dict[str, object]) -> None:
    """A file as an attacker makes it: small on the disk, no checksums, sorted and true it need not be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with schema.table_writer(path, table.schema, metadata) as writer:
        writer.write_table(table)


def repeated(row: dict[str, object], count: int) -> pa.Table:
    return pa.concat_tables([pa.Table.from_pylist([row], schema=schema.ROW)] * count).combine_chunks()


ABOUT = {"schema_version": schema.SCHEMA_VERSION, "identity": {}, "run": "ab" * 16, "first_game": 0, "games": 1}


@pytest.mark.parametrize("what", ["rows", "votes"])
def test_a_shard_that_would_fill_the_memory_is_refused_before_it_is_read(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make_games(1, seed=1).slice(0, 1).to_pylist()[0]
    if what == "rows":
        monkeypatch.setattr(schema, "SHARD_ROWS", 100_000)
        table = repeated(row, 200_000)
    else:
        table = repeated(row | {"votes": [3] * 50_000}, 200)
    path = tmp_path / "shard-00000.parquet"
    forged(path, table, dict(ABOUT))
    assert path.stat().st_size < table.nbytes / 50
    del table
    used = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="at most" if what == "rows" else "more than they can take"):
        schema.read_table(path)
    assert pa.total_allocated_bytes() - used < 1 << 20
    write_games(tmp_path / "run", make_games(1, seed=1))
    shutil.copy(path, tmp_path / "run" / "shard-00000.parquet")
    manifest = schema.read_manifest(tmp_path / "run")
    manifest["shards"][0]["sha256"] = file_hash(path)
    schema.write_manifest(tmp_path / "run", manifest)
    with pytest.raises(DataError, match="declares"):
        games.verify([games.open_run(tmp_path / "run")])


def linked(folder: Path, target: Path) -> None:
    shard = folder / "shard-00000.parquet"
    shutil.move(shard, target)
    shard.symlink_to(target)


def named(name: str) -> Callable[[Path, Path], None]:
    def change(folder: Path, target: Path) -> None:
        shutil.move(folder / "shard-00000.parquet", target)
        manifest = schema.read_manifest(folder)
        manifest["shards"][0]["name"] = name.replace("TARGET", str(target))
        schema.write_manifest(folder, manifest)

    return change


@pytest.mark.parametrize("change", [named("../elsewhere"), named("TARGET"), named("a/../../elsewhere"), linked])
def test_a_run_from_elsewhere_cannot_name_files_outside_its_folder(
    change: Callable[[Path, Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "random"
    write_games(folder, make_games(5, seed=1))
    change(folder, tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere").is_file()
    assert run("prepare", tmp_path) == 1
    line = last_line(capsys, "prepare")
    assert "no plain file name" in line or "leads out of the folder" in line


def test_a_folder_may_itself_be_a_link(done: Path, tmp_path: Path) -> None:
    (tmp_path / "random").symlink_to(done / "random")
    assert run("prepare", tmp_path) == 0

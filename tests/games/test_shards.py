"""Shards and the `generate` command, with real processes and real faults.

- rows are true of the games they record, and the first 200 games are those from which shipped networks learned
- any number of workers writes the same bytes, also after a kill, after Ctrl-C and when a run is extended
- a file that is not a shard of the run as it was written is named and stays; a run never shrinks
- a shard that kills every worker is named, and all others are made; a result is recorded of all games or not at all
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import change_record, die_always, same_record, shard_hashes, state

from distill import generate, inspect
from distill.common import DataError, executors, run_folder
from distill.games import playing, schema, shards
from distill.games.settings import RunSettings
from distill.mcts.settings import UctSettings

SMALL = ["--games", "10", "--simulations", "60", "--shard-games", "4"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A finished run of ten small games by one worker."""
    folder = tmp_path_factory.mktemp("reference")
    assert generate.main([*SMALL, "--workers", "1", "--out", str(folder)]) == 0
    return folder


def rows_of(folder: Path) -> pa.Table:
    return pa.concat_tables([schema.read_table(path)[0] for path in sorted(folder.glob("shard-*.parquet"))])


def test_rows_are_true_of_the_games_they_record(reference):
    """As `inspect` has it, and `test_inspect` shows for each untruth that it is found."""
    assert inspect.main([str(reference), "--labels", "0"]) == 0
    rows = rows_of(reference)
    result = run_folder.result_of(reference)
    assert (result["games"], result["rows"]) == (10, len(rows))
    assert {shard["name"]: shard["sha256"] for shard in result["shards"]} == shard_hashes(reference)
    assert sorted(set(rows["game_id"].to_pylist())) == list(range(10))
    assert {len(votes) for votes in rows["votes"].to_pylist()} == {3}
    assert set(rows["simulations"].to_pylist()) == {3 * 60}


@pytest.mark.slow
def test_the_first_200_games_are_those_that_shipped_networks_learned_from(tmp_path):
    """The first of the 100 shards of data/README.md, which says how to make all of them."""
    assert generate.main(["--games", "200", "--out", str(tmp_path)]) == 0
    (shard,) = run_folder.result_of(tmp_path)["shards"]
    assert (shard["rows"], shard["simulations"]) == (5752, 172_560_000)
    assert shard["content_hash"] == "b4d59a174c1372cefbc1d9131aac7134196a3b4cbb4030202469c481fdcc491d"


def test_openings_are_random_and_not_labelled():
    openings = [playing.random_opening((1, 8), 0, game) for game in range(800)]
    plies = [*map(len, openings)]
    counts = np.bincount(plies, minlength=9)
    assert counts[0] == 0
    assert (abs(counts[1:] - 100) < 40).all()  # about four standard deviations of 800 / 8
    assert playing.random_opening((1, 8), 0, 5) == openings[5]
    assert len({*map(tuple, openings)}) > 500


def test_three_workers_write_the_bytes_of_one(reference, tmp_path):
    assert generate.main([*SMALL, "--workers", "3", "--out", str(tmp_path)]) == 0
    assert shard_hashes(tmp_path) == shard_hashes(reference)


def test_a_run_is_extended_and_never_shrinks(reference, tmp_path, capsys):
    def generated(games: int) -> None:
        assert generate.main(["--games", f"{games}", *SMALL[2:], "--workers", "1", "--out", str(tmp_path)]) == 0

    generated(6)
    assert run_folder.result_of(tmp_path)["games"] == 6
    for fewer in (10, 3):
        generated(fewer)
        assert same_record(tmp_path, reference)
    assert "finished before: 10 games" in capsys.readouterr().out
    # An extension that was cut off leaves no result.
    change_record(tmp_path, lambda record: record.update(result=None))
    (tmp_path / "shard-00001.parquet").unlink()
    generated(3)
    assert same_record(tmp_path, reference)


def other_rows(path: Path) -> None:
    table, metadata = schema.read_table(path)
    schema.write_table(path, table.slice(1), metadata)


@pytest.mark.parametrize(
    ("finished", "harm", "line"),
    [
        (True, lambda path: path.write_bytes(path.read_bytes()[:-200]), "damaged, or not a Parquet file"),
        (False, lambda path: path.write_bytes(b""), "damaged, or not a Parquet file"),
        (False, lambda path: pq.write_table(schema.read_table(path)[0], path), "schema version None"),  # by pandas
        (False, lambda path: shutil.copy(path.with_name("shard-00000.parquet"), path), "another shard, or changed"),
        (True, other_rows, "another shard, or changed after the run was finished"),
    ],
    ids=["truncated", "empty", "rewritten", "another", "one row less"],
)
def test_a_file_that_is_no_shard_of_the_run_is_named_and_stays(reference, tmp_path, finished, harm, line, complaint):
    folder = tmp_path / "games"
    shutil.copytree(reference, folder)
    if not finished:
        change_record(folder, lambda record: record.update(result=None))
    harm(folder / "shard-00001.parquet")
    before = state(folder)
    words = [*SMALL, "--workers", "1", "--out", str(folder)]
    message = complaint(generate, *words)
    assert message.startswith(f"distill generate: {folder}/shard-00001.parquet: {line}")
    assert message.endswith("; delete the file to rebuild it")
    assert state(folder) == before
    (folder / "shard-00001.parquet").unlink()
    assert generate.main(words) == 0
    assert same_record(folder, reference)
    assert shard_hashes(folder) == shard_hashes(reference)


def test_other_settings_are_refused_with_the_difference(reference, complaint):
    before = shard_hashes(reference)
    line = complaint(generate, *SMALL, "--seed", 7, "--set", "search.exploration=2", "--out", reference)
    assert "exploration 1.0 there, 2.0 here" in line
    assert "seed 0 there, 7 here" in line
    assert shard_hashes(reference) == before


def test_games_take_the_pairs_of_opening_moves_in_turn(tmp_path):
    config = tmp_path / "pairs.json"
    config.write_text('{"opening_moves": [[0, 0], [3, 3], [24, 24]]}')
    assert generate.main([*SMALL, "--config", str(config), "--out", str(tmp_path / "games")]) == 0
    first = rows_of(tmp_path / "games").to_pandas().groupby("game_id")["ply"].min()
    assert first.tolist() == [(0, 3, 24)[game % 3] for game in range(10)]
    assert inspect.main([str(tmp_path / "games"), "--labels", "0"]) == 0


def start(folder: Path, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "distill.generate", *flags, "--out", str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


LONGER = ["--games", "20", "--simulations", "1000", "--shard-games", "2", "--workers", "2"]
IN_PEACE = [*LONGER, "--workers", "1"]


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("longer")
    assert generate.main([*IN_PEACE, "--out", str(folder)]) == 0
    return folder


def until_a_shard_is_there(process: subprocess.Popen[str], folder: Path, more_than: int) -> None:
    until = time.monotonic() + 120
    while len(list(folder.glob("shard-*.parquet"))) <= more_than:
        assert process.poll() is None, "ended before its next shard"
        assert time.monotonic() < until, "no shard in two minutes"
        time.sleep(0.01)


def test_a_stopped_run_loses_nothing_and_says_how_to_go_on(longer, tmp_path):
    stops = [(os.kill, signal.SIGINT, 130), (os.kill, signal.SIGTERM, 143), (os.killpg, signal.SIGKILL, -9)]
    for stop, number, code in stops:
        process = start(tmp_path, *LONGER)
        until_a_shard_is_there(process, tmp_path, len(shard_hashes(tmp_path)))
        stop(process.pid, number)
        _, message = process.communicate(timeout=60)
        assert process.returncode == code
        assert "Traceback" not in message
        assert run_folder.result_of(tmp_path) == {}
        assert shard_hashes(tmp_path).items() <= shard_hashes(longer).items()
        if code > 0:
            assert "to continue: python -m distill.generate --games 20" in message
            assert not list(tmp_path.glob(".shard-*"))
    for name in (".shard-00005.parquet.abcd_123.partial", "._run.json.abcd_123.partial"):
        (tmp_path / name).write_bytes(b"half of it")
    assert generate.main([*IN_PEACE, "--out", str(tmp_path)]) == 0
    assert shard_hashes(tmp_path) == shard_hashes(longer)
    assert [path.name for path in tmp_path.glob(".*")] == [".lock"]


RUN = RunSettings(search=UctSettings(simulations=60), shard_games=4)


def test_a_shard_that_always_kills_is_reported_and_the_rest_is_made(reference, tmp_path):
    with shards.opened(tmp_path, RUN, 10, RUN.games_identity()) as folder, executors.started(2) as workers:
        plan, work = shards.plan(folder, 10), partial(die_always, RUN, RUN.games_identity())
        calls = [([task],) for task in plan.todo]
        with pytest.raises(DataError, match=r"shard-00001\.parquet: worker processes died at every try of a task"):
            shards.complete(folder, plan, workers, work, calls)
    expected = shard_hashes(reference)
    del expected["shard-00001.parquet"]
    assert shard_hashes(tmp_path) == expected

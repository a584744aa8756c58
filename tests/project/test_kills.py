"""kill -9, Ctrl-C and SIGTERM at random moments of `generate`, `train` and `selfplay`: nothing is lost or repeated.

A strike starts the command and, after a random time, kills it with all its workers or interrupts it. The folder stays,
so that strikes hit every stage of a run: the first start, half a shard, the result, a resumed run. After each strike
all earlier shards must be unchanged; the finished run must have the bytes of an uninterrupted one. Time is processor
time (Linux), which does not depend on other load.

`pytest -m slow tests/project/test_kills.py -s` prints which stages were hit.
"""

import contextlib
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import make_games, same_record, shard_hashes, write_games
from network_helpers import same
from selfplay_helpers import metrics_of, repeat_of

from distill import inspect
from distill.common import run_folder
from distill.games import schema
from distill.networks import saved
from distill.training import checkpoint, identity

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]
STOPPED = {-number for number in SIGNALS} | {128 + signal.SIGINT, 128 + signal.SIGTERM}
"""Exit codes of a stopped command. Negative: the signal came before the command handled signals."""

EARLY = 0.2
"""Share of the strikes before a run's first result, during imports, planning and preparation."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A command that is struck repeatedly.

    Attributes:
      command: the words after `python`, for an output folder.
      result: pattern of the first lasting file of a run, in its folder.
      stage: the stage that a folder's files show.
      stages: the stages that must be hit.
    """

    command: Callable[[Path], list[str]]
    result: str
    stage: Callable[[Path], str]
    stages: set[str]


def started(command: Sequence[str]) -> subprocess.Popen[str]:
    """A command in a session of its own."""
    line = [sys.executable, *command]
    return subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    )


def processor_time(session: int) -> float:
    """Processor seconds used so far by a session's processes and their finished children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def uninterrupted(command: Sequence[str], folder: Path, result: str) -> tuple[float, float]:
    """Run a command to its end; processor seconds up to its first result, and in total."""
    first = now = 0.0
    with started(command) as process:
        while process.poll() is None:
            now = max(now, processor_time(process.pid))
            if not first and any(folder.glob(result)):
                first = now
            time.sleep(0.01)
    assert process.returncode == 0
    assert first
    return first, now


def strike(command: Sequence[str], moment: float, number: signal.Signals) -> int:
    """Start a command and stop it after `moment` processor seconds; its exit code, 0 if it ended earlier.

    SIGKILL and SIGINT (a terminal's Ctrl-C) go to all its processes, SIGTERM to the command alone.
    """
    with started(command) as process:
        while process.poll() is None and processor_time(process.pid) < moment:
            time.sleep(0.03)
        if process.poll() is None:
            if number == signal.SIGTERM:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)
        _, error = process.communicate(timeout=600)
    assert process.returncode in {0, *STOPPED}, error
    if process.returncode > 0:
        assert "to continue: python -m distill." in error
    return process.returncode


def shards(folder: Path) -> dict[str, tuple[int, str]]:
    """Modification time and SHA-256 of all finished shards below a folder."""
    return {name: ((folder / name).stat().st_mtime_ns, digest) for name, digest in shard_hashes(folder).items()}


def survive(trial: Trial, folder: Path, count: int) -> tuple[Path, list[Path]]:
    """Strike `count` times, with 20 or more until all stages are hit. A run that ends is followed by a new one.

    Returns the folder of an uninterrupted run, and those of all other runs, the last of which was left to finish.
    """
    whole = folder / "whole"
    # The first run compiles: measured with it, later runs would end before their strike.
    subprocess.run([sys.executable, *trial.command(folder / "compiling")], check=True, capture_output=True)
    first, end = uninterrupted(trial.command(whole), whole, trial.result)
    dice, struck, signals, hits = random.Random(count), 0, Counter[str](), Counter[str]()
    runs, kept = [folder / "0"], dict[str, tuple[int, str]]()
    while struck < count or (count >= 20 and not trial.stages <= set(hits)):
        assert struck < 3 * count, f"not all stages were hit: {dict(hits)}"
        number = dice.choice(SIGNALS)
        early = dice.random() < EARLY
        moment = dice.uniform(0, first) if early else dice.uniform(first, end)
        code = strike(trial.command(runs[-1]), moment, number)
        finished = shards(runs[-1])
        assert kept.items() <= finished.items(), "a finished shard is missing, changed, or was written again"
        if code == 0:
            runs.append(folder / f"{len(runs)}")
            kept = {}
            continue
        struck, kept = struck + 1, finished
        signals[number.name] += 1
        hits[hit := "starting" if early else trial.stage(runs[-1])] += 1
        print(f"{struck}: {number.name}, {hit}", flush=True)
    subprocess.run([sys.executable, *trial.command(runs[-1])], check=True, capture_output=True)
    assert kept.items() <= shards(runs[-1]).items()
    print(f"\n{struck} strikes {dict(signals)} on {len(runs)} runs of {end:.1f} s: {dict(hits)}")
    return whole, runs


def check_networks(name: str, whole: Path, runs: list[Path]) -> None:
    """The runs' networks have the weights of the uninterrupted run's, to the last bit."""
    expected = saved.load_core(whole / name).get_weights()
    for folder in runs:
        assert same(saved.load_core(folder / name).get_weights(), expected)


def hidden(folder: Path) -> list[str]:
    """Names of hidden files: a finished run keeps its lock, and nothing half-written."""
    return [path.name for path in folder.glob(".*")]


def generated(folder: Path) -> str:
    count = len(shards(folder))
    if run_folder.result_of(folder):
        return "finished"
    return "no shard" if not count else "all shards" if count == 20 else "some shards"


@pytest.mark.slow
def test_generate_survives_100_strikes(tmp_path):
    flags = ["--games", "40", "--simulations", "400", "--shard-games", "2", "--workers", "2"]
    trial = Trial(
        command=lambda folder: ["-m", "distill.generate", *flags, "--out", str(folder)],
        result="shard-*",
        stage=generated,
        stages={"starting", "some shards"},
    )
    whole, runs = survive(trial, tmp_path, 100)
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)
        assert same_record(folder, whole)
        assert inspect.main([str(folder), "--labels", "0"]) == 0
        assert hidden(folder) == [".lock"]


def test_inspecting_a_shard_starts_no_thread_that_could_outlive_the_interpreter(tmp_path):
    """Arrow's own threads made some finished runs end with SIGABRT, which the strikes found."""
    write_games(tmp_path, make_games(2, seed=1))
    inspect = """
import os, pathlib, sys
from distill.common import storage
from distill.games import inspection
path = pathlib.Path(sys.argv[1])
before = os.listdir("/proc/self/task")
assert not any(violations for _, violations, _ in inspection.inspect(storage.storage_of(path.parent)))
assert os.listdir("/proc/self/task") == before
"""
    subprocess.run([sys.executable, "-c", inspect, str(tmp_path / "shard-00000.parquet")], check=True)


def trained(folder: Path) -> str:
    names = {path.name for path in folder.glob("net/*")}
    if "_run.json" not in names:
        return "before its first file"
    return "has a network" if "saved_model" in names else "has a checkpoint" if "checkpoint.npz" in names else "claimed"


@pytest.mark.slow
def test_train_survives_20_strikes(tmp_path):
    """The first start also prepares the tables."""
    write_games(tmp_path / "games", make_games(60, seed=1))
    train = ["-m", "distill.train", "--preset", "smoke", "--arch", "pillar", "--epochs", "8", "--exclude"]
    train += ["--data", str(tmp_path / "games")]
    trial = Trial(
        command=lambda folder: [*train, "--prepared", str(folder / "prepared"), "--out", str(folder / "net")],
        result="net/checkpoint.npz",
        stage=trained,
        stages={"starting", "has a checkpoint"},
    )
    whole, runs = survive(trial, tmp_path, 20)
    check_networks(f"net/{identity.LAST}", whole, runs)
    for folder in runs:
        assert (folder / "net" / "saved_model" / "1" / "saved_model.pb").is_file()
        assert run_folder.result_of(folder / "net")
        assert hidden(folder / "net") == [".lock"]


def played(folder: Path) -> str:
    """The phase of the current iteration."""
    iterations = sorted(folder.glob("iterations/*"))
    if not iterations:
        return "before its first game"
    if not run_folder.result_of(iterations[-1] / "games"):
        return "self-play"
    _, state = checkpoint.load(folder) or ([], {"finished": []})
    if len(state["finished"]) == len(iterations):
        return "after an iteration"
    return "arena" if (iterations[-1] / "candidate.keras").exists() else "training"


@pytest.mark.slow
def test_selfplay_survives_20_strikes(tmp_path):
    """Two iterations. The network always evaluates batches of one size, so games are equal to the last bit."""
    flags = shlex.split(
        "--preset smoke --games 24 --simulations 4 --set lanes=6 --set replay.boards=128 --set arena.games=20 "
        "--set eval_boards=5"
    )
    trial = Trial(
        command=lambda folder: ["-m", "distill.selfplay", *flags, "--out", str(folder)],
        result="iterations/*/games/shard-*",
        stage=played,
        stages={"self-play", "training", "arena"},
    )
    whole, runs = survive(trial, tmp_path, 20)
    check_networks("best.keras", whole, runs)
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)
        assert metrics_of(folder) == metrics_of(whole)
        for games in sorted(folder.glob("iterations/*/games")):
            tables = [schema.read_table(path)[0].to_pandas() for path in sorted(games.glob("shard-*"))]
            rows = [(row.game_id, row.ply) for table in tables for row in table.itertuples()]
            assert len(rows) == len({*rows}), "a game is there twice"
            assert {game for game, _ in rows} == {*range(24)}
            assert inspect.main([str(games), "--labels", "0"]) == 0
            assert hidden(games) == [".lock"]


def repeated(folder: Path) -> str:
    """The phase of a run that learns while others play."""
    if not run_folder.result_of(folder / "iterations/0001/games"):
        return "teacher"
    iterations = sorted(folder.glob("iterations/*"))
    _, state = checkpoint.load(folder) or ([], {"finished": []})
    if len(state["finished"]) == len(iterations):
        return "after an iteration"
    return "playing" if (iterations[-1] / "candidate.keras").exists() else "learning"


@pytest.mark.slow
def test_a_repetition_survives_20_strikes(tmp_path):
    """`pillar`, with a process that trains and one that plays: weights equal to the last bit."""
    counts = [{"games": games, "steps": steps} for games, steps in ((40, 0), (20, 8), (20, 8), (20, 8), (0, 8))]
    flags = ["--preset", "hour", "--set", "teacher_simulations=20000", "--set", "eval_boards=5"]
    flags += ["--set", "shard_games=4", "--set", "lanes=8", "--set", "batch_size=32"]
    flags += ["--set", 'stages=[{"start": 0, "root": "gumbel", "simulations": 8, "noise_fraction": 0.25}]']
    words = repeat_of(counts, tmp_path / "record.json", *flags)
    trial = Trial(
        command=lambda folder: ["-m", "distill.selfplay", *words, "--out", str(folder)],
        result="iterations/*/games/shard-*",
        stage=repeated,
        stages={"teacher", "learning", "playing"},
    )
    whole, runs = survive(trial, tmp_path / "runs", 20)
    check_networks("best.keras", whole, runs)
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)

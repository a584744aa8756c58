"""kill -9, Ctrl-C and SIGTERM at random moments, in `generate`, `train` and `selfplay`: nothing lost, nothing twice.

A round starts the command, lets it work for a random time, and kills it with all its workers, or interrupts it. The
folder stays, so rounds hit all stages of a run: the first start, half a shard, the manifest, a resumed run. After each
of them, every shard that was there before lies there untouched; in the end, the bytes are those of a run that nobody
disturbed. Time is the processors' (Linux), which a busy machine does not stretch.

They are slow: `pytest -m slow tests/project/test_kills.py -s` prints what was hit.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import make_games, same_manifest, shard_hashes, write_games

from distill import validate
from distill.common import file_hash
from distill.games import schema

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]
STOPPED = {-number for number in SIGNALS} | {128 + signal.SIGINT, 128 + signal.SIGTERM}
"""Exit codes: negative ones are of signals that came before the command took notice of signals."""

EARLY = 0.2
"""Share of the strikes that come before the time of a run's first result: imports, plan, preparation."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A command that is struck again and again.

    Attributes:
      command: what runs in a folder.
      result: pattern of the first lasting file of a run, in its folder.
      stage: how far what lies in a folder has come, in words.
      stages: those that must be hit.
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


def worked(session: int) -> float:
    """Processor seconds that a session's processes and their children that have ended took so far."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def undisturbed(command: Sequence[str], folder: Path, result: str) -> tuple[float, float]:
    """Run a command to its end; processor seconds up to its first result, and in all."""
    first = now = 0.0
    with started(command) as process:
        while process.poll() is None:
            now = max(now, worked(process.pid))
            if not first and any(folder.glob(result)):
                first = now
            time.sleep(0.01)
    assert process.returncode == 0
    assert first
    return first, now


def strike(command: Sequence[str], moment: float, number: signal.Signals) -> int:
    """Start a command, stop it once it has worked for so many seconds; its exit code, 0 where it was done before.

    SIGKILL and SIGINT, as a terminal's Ctrl-C, go to the command and all its processes, SIGTERM to it alone.
    """
    with started(command) as process:
        while process.poll() is None and worked(process.pid) < moment:
            time.sleep(0.03)
        if process.poll() is None:
            if number == signal.SIGTERM:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)
        _, error = process.communicate(timeout=600)
    assert process.returncode in {0, *STOPPED}, error
    if process.returncode > 0:
        assert "to go on: python -m distill." in error
    return process.returncode


def shards(folder: Path) -> dict[str, tuple[int, str]]:
    """Time of change and SHA-256 of all finished shards under a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, file_hash(path))
        for path in folder.rglob("shard-*.parquet")
    }


def survive(trial: Trial, folder: Path, count: int) -> list[Path]:
    """Strike `count` times; a run that ends is followed by one in a new folder. 20 strikes or more go on to all stages.

    Returns the folders of all runs, the last one finished in peace, after `folder / "whole"`, which nobody disturbed.
    """
    whole = folder / "whole"
    first, end = undisturbed(trial.command(whole), whole, trial.result)
    dice, struck, signals, found = random.Random(count), 0, Counter[str](), Counter[str]()
    runs, kept = [folder / "0"], dict[str, tuple[int, str]]()
    while struck < count or (count >= 20 and not trial.stages <= set(found)):
        assert struck < 3 * count, f"not all stages were hit: {dict(found)}"
        number = dice.choice(SIGNALS)
        early = dice.random() < EARLY
        moment = dice.uniform(0, first) if early else dice.uniform(first, end)
        code = strike(trial.command(runs[-1]), moment, number)
        there = shards(runs[-1])
        assert kept.items() <= there.items(), "a finished shard is gone, other, or was made again"
        if code == 0:
            runs.append(folder / f"{len(runs)}")
            kept = {}
            continue
        struck, kept = struck + 1, there
        signals[number.name] += 1
        found[hit := "starting" if early else trial.stage(runs[-1])] += 1
        print(f"{struck}: {number.name}, {hit}", flush=True)
    subprocess.run([sys.executable, *trial.command(runs[-1])], check=True, capture_output=True)
    assert kept.items() <= shards(runs[-1]).items()
    print(f"\n{struck} strikes {dict(signals)} on {len(runs)} runs of {end:.1f} s: {dict(found)}")
    return [whole, *runs]


# generate


def generated(folder: Path) -> str:
    made = len(shards(folder))
    if (folder / schema.MANIFEST).is_file():
        return "manifest"
    return "no shard" if not made else "all shards" if made == 20 else "some shards"


GENERATE = Trial(
    command=lambda folder: [
        *("-m", "distill.generate", "--games", "40", "--simulations", "400", "--shard-games", "2", "--workers", "2"),
        *("--out", str(folder)),
    ],
    result="shard-*",
    stage=generated,
    stages={"starting", "some shards"},
)


def kill_generate(tmp_path: Path, count: int) -> None:
    whole, *runs = survive(GENERATE, tmp_path, count)
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)
        assert same_manifest(folder, whole)
        assert validate.main([str(folder)]) == 0
        assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == [".lock"]


@pytest.mark.slow
def test_generate_survives_100_strikes(tmp_path: Path) -> None:
    kill_generate(tmp_path, 100)


def test_looking_through_a_shard_starts_no_thread_that_could_outlive_the_interpreter(tmp_path: Path) -> None:
    """Arrow's own threads made one finished run in many end with SIGABRT, which the strikes found."""
    write_games(tmp_path, make_games(2, seed=1))
    look = """
import os, pathlib, sys
from distill.games import inspection, places, schema
path = pathlib.Path(sys.argv[1])
before = os.listdir("/proc/self/task")
assert not inspection.inspect_shard(places.place_of(path.parent), path.name).violations
schema.read_table(path, content=path.read_bytes())
assert os.listdir("/proc/self/task") == before
"""
    subprocess.run([sys.executable, "-c", look, str(tmp_path / "shard-00000.parquet")], check=True)


# train


def trained(folder: Path) -> str:
    names = {path.name for path in folder.glob("net/*")}
    if "run.json" not in names:
        return "before its first file"
    return "has a network" if "saved_model" in names else "has a checkpoint" if "checkpoint.npz" in names else "claimed"


@pytest.mark.slow
def test_train_survives_20_strikes(tmp_path: Path) -> None:
    """Preparation is part of it: the first start makes the tables."""
    from distill.networks import saved
    from distill.training import run_folder

    write_games(tmp_path / "games", make_games(60, seed=1))
    train = ["-m", "distill.train", "--preset", "smoke", "--arch", "pillar", "--epochs", "8", "--exclude"]
    train += ["--data", str(tmp_path / "games")]
    trial = Trial(
        command=lambda folder: [*train, "--prepared", str(folder / "prepared"), "--out", str(folder / "net")],
        result="net/checkpoint.npz",
        stage=trained,
        stages={"starting", "has a checkpoint"},
    )
    whole, *runs = survive(trial, tmp_path, 20)
    expected = saved.load_core(whole / "net" / run_folder.LAST).get_weights()
    for folder in runs:
        net = folder / "net"
        found = saved.load_core(net / run_folder.LAST).get_weights()
        assert all((one == other).all() for one, other in zip(expected, found, strict=True))
        assert (net / "saved_model" / "1" / "saved_model.pb").is_file()
        assert (net / "metrics.json").is_file()
        assert [path.name for path in net.glob(".*")] == [".lock"], "nothing half-written stays"


# selfplay


def played(folder: Path) -> str:
    """The phase of the iteration that is under way: each leaves a file of its own at its end."""
    iterations = sorted(folder.glob("iterations/*"))
    if not iterations:
        return "before its first game"
    for phase, file in {
        "self-play": "games/manifest.json",
        "training": "candidate.keras",
        "arena": "metrics.json",
    }.items():
        if not (iterations[-1] / file).is_file():
            return phase
    return "after an iteration"


def iterations_of(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run's iterations, without the time they took."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("iterations/*/metrics.json"))]
    return [{name: value for name, value in each.items() if name != "seconds"} for each in found]


@pytest.mark.slow
def test_selfplay_survives_20_strikes(tmp_path: Path) -> None:
    """Two iterations. The network is always asked in batches of one size: games equal to the last bit."""
    from distill.networks import saved

    flags = ["--preset", "smoke", "--games", "24", "--lanes", "6", "--simulations", "4", "--train-boards", "128"]
    flags += ["--arena-games", "20", "--eval-boards", "5"]
    trial = Trial(
        command=lambda folder: ["-m", "distill.selfplay", *flags, "--out", str(folder)],
        result="iterations/*/games/shard-*",
        stage=played,
        stages={"self-play", "training", "arena"},
    )
    whole, *runs = survive(trial, tmp_path, 20)
    expected = saved.load_core(whole / "best.keras").get_weights()
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)
        assert iterations_of(folder) == iterations_of(whole)
        for games in sorted(folder.glob("iterations/*/games")):
            tables = [schema.read_table(path)[0].to_pandas() for path in sorted(games.glob("shard-*"))]
            rows = [(row.game_id, row.ply) for table in tables for row in table.itertuples()]
            assert len(rows) == len({*rows}), "a game is there twice"
            assert {game for game, _ in rows} == {*range(24)}
            assert validate.main([str(games)]) == 0
            assert [path.name for path in games.glob(".*")] == [".lock"]
        found = saved.load_core(folder / "best.keras").get_weights()
        assert all((one == other).all() for one, other in zip(expected, found, strict=True))


def planned(folder: Path) -> str:
    """The phase of a run by a plan: what lies in its folder last."""
    if not (folder / "iterations/0000/games/manifest.json").is_file():
        return "teacher"
    last = max(folder.glob("iterations/*"))
    if not (last / "checkpoint.npz").is_file():
        return "learning"
    return "after an iteration" if (last / "metrics.json").is_file() else "playing"


@pytest.mark.slow
def test_a_run_by_a_plan_survives_20_strikes(tmp_path: Path) -> None:
    """The network that ships, in the process that learns and in the one that plays: weights equal to the last bit."""
    from distill.alphazero import plan
    from distill.networks import saved

    search: dict[str, Any] = {"root": "gumbel", "simulations": 8, "noise_fraction": 0.25}
    steps = [plan.Step(games=games, steps=8, **search) for games in (20, 20, 20, 0)]
    plan.write(
        tmp_path / "plan.json",
        plan.Plan(minutes=1, workers=1, teacher_games=40, iterations=tuple(steps), measured={}),
    )
    flags = ["--preset", "hour", "--plan", str(tmp_path / "plan.json"), "--teacher-simulations", "200"]
    flags += ["--shard-games", "4", "--lanes", "8", "--batch-size", "32", "--eval-boards", "5"]
    trial = Trial(
        command=lambda folder: ["-m", "distill.selfplay", *flags, "--out", str(folder)],
        result="iterations/*/games/shard-*",
        stage=planned,
        stages={"teacher", "learning", "playing"},
    )
    whole, *runs = survive(trial, tmp_path / "runs", 20)
    expected = saved.load_core(whole / "best.keras").get_weights()
    for folder in runs:
        assert shard_hashes(folder) == shard_hashes(whole)
        found = saved.load_core(folder / "best.keras").get_weights()
        assert all((one == other).all() for one, other in zip(expected, found, strict=True))

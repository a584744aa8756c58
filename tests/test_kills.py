"""kill -9 and Ctrl-C at random moments, in `generate` and `train`: nothing lost, nothing twice, the same bytes.

A round starts the command, waits a random time, and kills it with all its workers, or interrupts it. The folder stays,
so rounds hit all stages of a run: the first start, half a shard, the manifest, a resumed run. The short tests do a few
rounds; the slow ones many (`pytest -m slow tests/test_kills.py -s` prints how often each moment was hit).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers import make_games, same_manifest, write_games

from distill import validate
from distill.data import schema

GENERATE = ["-m", "distill.generate", "--games", "60", "--simulations", "300", "--shard-games", "3", "--workers", "2"]


def seconds_to_finish(command: Sequence[str]) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return time.monotonic() - began


def strike(command: Sequence[str], delay: float, number: signal.Signals) -> int:
    """Start a command, and after a delay kill it with all its processes, or interrupt it; the exit code."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, error = process.communicate(timeout=delay)
        except subprocess.TimeoutExpired:
            if number == signal.SIGKILL:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            _, error = process.communicate(timeout=120)
        if number != signal.SIGKILL and process.returncode == 128 + number:
            assert "to go on: python -m distill." in error
    return process.returncode


def rounds(
    count: int, dice: random.Random, longest: float, command: Callable[[int], list[str]], state: Callable[[int], str]
) -> Counter[str]:
    """So many kills and interrupts at random moments; a run that ends is followed by one in the next folder.

    Returns how often each state was found right after a strike.
    """
    struck, run, found = 0, 0, Counter[str]()
    while struck < count:
        number = dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        code = strike(command(run), dice.uniform(0, longest), number)
        if code == 0:
            run += 1
            continue
        assert code in (-signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM, 128 + number), code
        struck += 1
        found[state(run)] += 1
    found["finished runs between"] = run
    subprocess.run([sys.executable, *command(run)], check=True, capture_output=True)
    return found


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: schema.file_hash(path) for path in sorted(folder.glob("shard-*.parquet"))}


def kill_generate(tmp_path: Path, count: int) -> None:
    whole = tmp_path / "whole"
    longest = seconds_to_finish([*GENERATE, "--out", str(whole)])

    def state(run: int) -> str:
        made = len(hashes(tmp_path / f"{run}"))
        return "no shard" if not made else "all shards" if made == 20 else "some shards"

    found = rounds(
        count, random.Random(count), longest, lambda run: [*GENERATE, "--out", str(tmp_path / f"{run}")], state
    )
    print(f"generate, {count} strikes: {dict(found)}")
    for run in range(found["finished runs between"] + 1):
        folder = tmp_path / f"{run}"
        assert hashes(folder) == hashes(whole)
        assert same_manifest(folder, whole)
        assert validate.main([str(folder)]) == 0
        assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == [".lock"]


def test_generate_survives_a_few_strikes(tmp_path: Path) -> None:
    kill_generate(tmp_path, 3)


@pytest.mark.slow
def test_generate_survives_100_strikes(tmp_path: Path) -> None:
    kill_generate(tmp_path, 100)


@pytest.mark.slow
def test_train_survives_20_strikes(tmp_path: Path) -> None:
    """Preparation is part of it: the first start makes the tables."""
    from distill.nets import saved

    write_games(tmp_path / "games", make_games(60, seed=1))
    train = ["-m", "distill.train", "--preset", "smoke", "--arch", "column", "--epochs", "8", "--exclude"]
    train += ["--data", str(tmp_path / "games")]

    def command(run: int | str) -> list[str]:
        return [*train, "--prepared", str(tmp_path / f"{run}" / "prepared"), "--out", str(tmp_path / f"{run}" / "net")]

    def state(run: int) -> str:
        names = {path.name for path in (tmp_path / f"{run}" / "net").glob("*")}
        if not names:
            return "before its first file"
        return "trained" if "saved_model" in names else "has a checkpoint" if "checkpoint.npz" in names else "claimed"

    longest = seconds_to_finish(command("whole"))
    found = rounds(20, random.Random(20), longest, command, state)
    print(f"train, 20 strikes: {dict(found)}")
    whole = saved.load_core(tmp_path / "whole" / "net" / saved.LAST).get_weights()
    for run in range(found["finished runs between"] + 1):
        net = tmp_path / f"{run}" / "net"
        weights = saved.load_core(net / saved.LAST).get_weights()
        assert all((one == other).all() for one, other in zip(whole, weights, strict=True))
        assert (net / "saved_model" / "1" / "saved_model.pb").is_file()
        assert (net / "metrics.json").is_file()
        assert not list(net.glob(".*")), "nothing half-written stays"

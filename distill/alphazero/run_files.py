"""The files of a self-play run.

    _run.json  best.keras  checkpoint.npz  history.csv  curves.png
    iterations/0001/games/    iterations/0001/candidate.keras

The checkpoint holds the learner and the metrics of the finished iterations.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, cores, executors, file_hash, json_hash, run_folder
from distill.games import reader
from distill.mcts import puct
from distill.networks import finding
from distill.training import history, identity

KIND = "self-play run"
"""The kind of folder, in its record."""
FILES = ("iterations", "checkpoint.npz", finding.BEST, "history.csv", "curves.png", "tensorboard")
"""What --restart deletes."""
FREE = (
    "init", "out", "restart", "games_only", "schedule.iterations", "schedule.repeat",
    "machine.workers", "machine.cluster", "machine.lanes", "machine.log",
)  # fmt: skip
"""Settings left out of a run's identity: they may change when it is resumed, or are hashed instead."""
DEVICE_VERSION = 2
"""Version of self-play on a device: add 1 when a change, also one in `mcts/device.py`, changes its games or weights."""

PANELS = {
    "loss": ["training_loss"],
    "arena score of the candidate": ["score"],
    "grades, without search": ["optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"],
}

LOST = "the run cannot be resumed: restore it from a copy, or start from scratch with --restart"

Metrics = dict[str, Any]
"""The metrics of one iteration."""


def opened(out: Path, config: SelfPlayConfig) -> AbstractContextManager[run_folder.Run]:
    """Hold the run's folder."""
    file = config.schedule.repeat
    if file and file.resolve().parent == out.resolve():
        raise UserError(f"--repeat {file}: a run cannot be repeated in its own folder; name another --out")
    also = {"puct_version": puct.PUCT_VERSION, "repeat": file_hash(file) if file else None}
    if not (config.machine.workers or config.machine.cluster or config.is_timed):
        also["threads without --workers"] = int(os.environ.get(executors.THREADS) or cores())  # this process plays
    if config.machine.device_lanes:
        also["device_version"] = DEVICE_VERSION
    return identity.opened(config, out, KIND, FILES, FREE, **also)


def candidate(out: Path, number: int) -> Path:
    """The file of an iteration's candidate, which `publish` renames to `best.keras` or deletes."""
    return out / "iterations" / f"{number:04d}" / "candidate.keras"


def games_folder(out: Path, number: int) -> Path:
    """The folder with the games of an iteration; they are counted from 1."""
    return out / "iterations" / f"{number:04d}" / "games"


def verify_games(out: Path, number: int, expected: str) -> None:
    """Raise UserError where the games of an iteration are missing or changed; the hash of their result is expected."""
    folder = games_folder(out, number)
    if expected != json_hash(run_folder.result_of(folder)):
        raise UserError(f"{folder}: missing, or not the games that this iteration played; {LOST}")
    reader.verify([reader.open_run(folder)], LOST)


def publish(folder: run_folder.Run, config: SelfPlayConfig, finished: Sequence[Metrics], count: int) -> None:
    """Bring `best.keras`, curves and record up to the last finished iteration.

    The record of a run by the clock that has finished all its `count` iterations says what `--repeat` repeats, unless
    its games were played on a device.
    """
    out = Path(str(folder.storage))
    new = candidate(out, len(finished))
    if finished[-1]["accepted"] and new.is_file():
        new.replace(out / finding.BEST)
    new.unlink(missing_ok=True)
    history.write(out, finished, PANELS, "iteration")
    result = {"iterations": len(finished), **finished[-1]}
    if len(finished) == count and config.is_timed and not config.machine.device_lanes:
        result["counts"] = [{name: metrics[name] for name in ("games", "steps")} for metrics in finished]
    folder.finish(result)

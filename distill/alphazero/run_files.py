"""The files of a self-play run, and which of them a resumed run needs.

    _run.json  initial.keras  best.keras  history.csv  curves.png
    iterations/0001/    games/  checkpoint.npz  candidate.keras  metrics.json

An iteration is finished once it has its metrics, which are written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, canonical_json, file_hash, read_object, run_folder, write_atomically
from distill.games import reader
from distill.mcts import puct

METRICS, BEST, CANDIDATE, INITIAL = "metrics.json", "best.keras", "candidate.keras", "initial.keras"
GAMES, CHECKPOINT = "games", "checkpoint.npz"
KIND = "self-play run"
"""The kind of folder, in its record."""
FILES = ("iterations", BEST, INITIAL, "history.csv", "curves.png", "tensorboard")
"""What --restart deletes."""
FREE = (
    "init", "out", "restart", "games_only", "schedule.iterations", "schedule.replay",
    "machine.workers", "machine.cluster", "machine.lanes", "machine.log",
)  # fmt: skip
"""Settings that may change when a run is resumed."""

PANELS = {
    "loss": ["training_loss", "policy_loss", "value_error"],
    "arena score of the candidate": ["score"],
    "grades, without search": ["optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"],
}

LOST = "the run cannot be resumed: restore it from a copy, or start from scratch with --restart"

Metrics = dict[str, Any]
"""The metrics of one iteration, as in its `metrics.json`."""


def opened(out: Path, config: SelfPlayConfig) -> AbstractContextManager[run_folder.Run]:
    """Hold the run's folder."""
    from distill.training import identity

    file = config.schedule.replay
    if file and file.resolve().parent == out.resolve():
        raise UserError(f"--replay {file}: a run cannot be repeated in its own folder; name another --out")
    also = {"puct_version": puct.PUCT_VERSION, "replay": file_hash(file) if file else None}
    return identity.opened(config, out, KIND, FILES, FREE, **also)


def iteration_folder(out: Path, number: int) -> Path:
    """The folder of an iteration; they are counted from 1."""
    return out / "iterations" / f"{number:04d}"


def finished_iterations(out: Path) -> list[Metrics]:
    """The metrics of the finished iterations, in order. Raises UserError where those of an earlier one are missing."""
    finished: list[Metrics] = []
    while (path := iteration_folder(out, len(finished) + 1) / METRICS).is_file():
        finished.append(read_object(path))
        if not {"iteration", "accepted", "minutes", "games", "learned_from"} <= finished[-1].keys():
            raise UserError(f"{path}: damaged; {LOST}")
    # A later folder proves that an earlier iteration was finished, even if its metrics are gone.
    begun = [int(folder.name) for folder in out.glob("iterations/[0-9]*") if folder.name.isdecimal()]
    last = max(run_folder.result_of(out).get("iterations", 0), *(number - 1 for number in begun), 0)
    if last > len(finished):
        raise UserError(f"{path}: missing, though the run has finished iteration {last}; {LOST}")
    return finished


def verified_games(out: Path, number: int) -> reader.Run:
    """The games of an iteration, verified. Raises UserError where they are missing or were changed."""
    folder = iteration_folder(out, number) / GAMES
    record = run_folder.read(folder)
    if record is None or record.result is None:
        raise UserError(f"{folder}: the games of this iteration are missing; {LOST}")
    # The metrics hold the hash of the result, and the result those of the shards.
    if read_object(iteration_folder(out, number) / METRICS).get("games_hash") not in (None, games_hash(record.result)):
        raise UserError(f"{folder}: not the games that this iteration played; {LOST}")
    run = reader.open_run(folder)
    reader.verify([run], LOST)
    return run


def games_hash(result: Mapping[str, Any]) -> str:
    """One hash of the shards of finished games, from the result in their record."""
    return hashlib.sha256(canonical_json(result).encode()).hexdigest()


def champion_file(out: Path, finished: Sequence[Metrics]) -> Path:
    """The network that was accepted last, or the initial one."""
    accepted = [metrics["iteration"] for metrics in finished if metrics["accepted"]]
    return iteration_folder(out, accepted[-1]) / CANDIDATE if accepted else out / INITIAL


def publish(folder: run_folder.Run, finished: Sequence[Metrics], iterations: int) -> None:
    """Bring the run's own files up to its last finished iteration: `best.keras`, curves, record.

    The record of a run by the clock that has finished all its `iterations` says what `--replay` repeats.

    Deletes what no resumed run needs: candidates that do not play, and checkpoints but the last.
    """
    out = Path(str(folder.storage))
    if not finished:
        return
    champion = champion_file(out, finished)
    if not champion.is_file():
        raise UserError(f"{champion}: missing; {LOST}")
    if not (out / BEST).is_file() or file_hash(champion) != file_hash(out / BEST):
        write_atomically(out / BEST, champion.read_bytes())
    for number in range(1, len(finished) + 1):
        iteration = iteration_folder(out, number)
        if iteration / CANDIDATE != champion:
            (iteration / CANDIDATE).unlink(missing_ok=True)
        if number < len(finished):
            (iteration / CHECKPOINT).unlink(missing_ok=True)
    report(out, finished)
    result = {"iterations": len(finished), **finished[-1]}
    schedule, on_device = folder.settings["schedule"], folder.settings["machine"]["device_lanes"]
    if len(finished) == iterations and (schedule["minutes"] or schedule["replay"]) and not on_device:
        result["replay"] = [{name: metrics[name] for name in ("games", "steps")} for metrics in finished]
    folder.finish(result)


def report(out: Path, finished: Sequence[Metrics]) -> None:
    """Draw the curves over all iterations."""
    from distill.training import history

    rows = [{name: value for name, value in metrics.items() if name != "games_hash"} for metrics in finished]
    history.write(out, rows, PANELS, "iteration")

"""The files of a self-play run, and which of them a resumed run needs.

    config.json  run.json  plan.json  initial.keras  best.keras  metrics.json  history.csv  curves.png
    iterations/0001/    games/  checkpoint.npz  candidate.keras  metrics.json

An iteration is finished once it has its metrics, which are written last. Iteration 0 has the games that the teacher
plays before a planned run learns.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, file_hash, folders, read_object, write_atomically, write_json
from distill.games import reader, schema
from distill.mcts import puct

if TYPE_CHECKING:
    from distill.training.run_folder import Claim

METRICS, BEST, CANDIDATE, INITIAL = "metrics.json", "best.keras", "candidate.keras", "initial.keras"
GAMES, PLAN, CHECKPOINT = "games", "plan.json", "checkpoint.npz"
OWN_FILES = (METRICS, "iterations", BEST, INITIAL, PLAN, "history.csv", "curves.png")
"""What --restart deletes, in this order."""
FREE = (
    "init",
    "out",
    "restart",
    "iterations",
    "minutes",
    "lanes",
    "games_only",
    "plan",
    "workers",
    "cluster",
    "keep_games",
)
"""Settings that may change when a run is resumed."""

PANELS = {
    "loss": ["training_loss", "policy_loss", "value_error"],
    "arena score of the candidate": ["score"],
    "grades, without search": ["optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"],
}

LOST = "the run cannot be resumed: restore it from a copy, or start from scratch with --restart"

Metrics = dict[str, Any]
"""The metrics of one iteration, as in its `metrics.json`."""


def claim(out: Path, config: SelfPlayConfig) -> Claim:
    """The run's claim to its folder."""
    from distill.training import run_folder

    config = dataclasses.replace(config, cluster=None)  # a place, as in `generate`
    return run_folder.claim(out, folders.SELFPLAY, OWN_FILES, config, FREE, {"puct_version": puct.PUCT_VERSION})


def iteration_folder(out: Path, number: int) -> Path:
    """The folder of an iteration; the first that learns is iteration 1."""
    return out / "iterations" / f"{number:04d}"


def finished_iterations(out: Path) -> list[Metrics]:
    """The metrics of the finished iterations, in order. Raises UserError where those of an earlier one are missing."""
    found: list[Metrics] = []
    while (path := iteration_folder(out, len(found) + 1) / METRICS).is_file():
        with path.open("rb"):  # without permission to read it, nothing is lost
            found.append(read_object(path))
        if not {"iteration", "accepted", "minutes"} <= found[-1].keys():
            raise UserError(f"{path}: damaged; {LOST}")
    # A later folder proves that an earlier iteration was finished, even if its metrics are gone.
    begun = [int(folder.name) for folder in out.glob("iterations/[0-9]*") if folder.name.isdecimal()]
    finished = max(read_object(out / METRICS).get("iterations", 0), *(number - 1 for number in begun), 0)
    if finished > len(found):
        raise UserError(f"{path}: missing, though the run has finished iteration {finished}; {LOST}")
    return found


def still_learns(out: Path, finished: Sequence[Metrics]) -> bool:
    """Whether the next iteration has yet to learn from the games of finished ones."""
    return bool(finished) and not (iteration_folder(out, len(finished) + 1) / CHECKPOINT).is_file()


def verified_games(out: Path, number: int) -> reader.Run:
    """The games of an iteration, verified. Raises UserError where they are missing or were changed."""
    folder = iteration_folder(out, number) / GAMES
    manifest = folder / schema.MANIFEST
    if not manifest.is_file():
        raise UserError(f"{folder}: the games of this iteration are missing; {LOST}")
    # The metrics hold the hash of the manifest, and the manifest those of the shards.
    played = read_object(iteration_folder(out, number) / METRICS).get("manifest")
    if played not in (None, file_hash(manifest)):
        raise UserError(f"{folder}: not the games that this iteration played; {LOST}")
    run = reader.open_run(folder)
    reader.verify([run], LOST)
    return run


def champion_file(out: Path, finished: Sequence[Metrics]) -> Path:
    """The network that was accepted last, or the initial one."""
    accepted = [each["iteration"] for each in finished if each["accepted"]]
    return iteration_folder(out, accepted[-1]) / CANDIDATE if accepted else out / INITIAL


def has_begun(out: Path) -> bool:
    """Whether the run has a network to resume from."""
    return (out / INITIAL).is_file() or champion_file(out, finished_iterations(out)).is_file()


def publish(out: Path, finished: Sequence[Metrics]) -> None:
    """Bring the run's own files up to its last finished iteration: `best.keras`, curves, metrics.

    Deletes what no resumed run needs: candidates that do not play, checkpoints but the last.
    """
    if not finished:
        return
    champion = champion_file(out, finished)
    if not champion.is_file():
        raise UserError(f"{champion}: missing; {LOST}")
    if not (out / BEST).is_file() or file_hash(champion) != file_hash(out / BEST):
        write_atomically(out / BEST, champion.read_bytes())
    # Delete what no resumed run needs.
    for number in range(1, len(finished) + 1):
        folder = iteration_folder(out, number)
        if folder / CANDIDATE != champion:
            (folder / CANDIDATE).unlink(missing_ok=True)
        if number < len(finished):
            (folder / CHECKPOINT).unlink(missing_ok=True)
    report(out, finished)


def report(out: Path, finished: Sequence[Metrics]) -> None:
    """Draw the curves over all iterations and write the latest metrics."""
    from distill.training import history

    def plain(metrics: Metrics) -> dict[str, float]:
        numbers = {
            name: value
            for name, value in metrics.items()
            if name not in ("seconds", "waited", "step_seconds", "manifest")
        }
        return {name: math.nan if value is None else float(value) for name, value in numbers.items()}

    # Leave out panels without a curve, such as the arena of a run without a gate.
    measured = {name for name, value in finished[-1].items() if value is not None}
    panels = {title: [name for name in names if name in measured] for title, names in PANELS.items()}
    shown = {title: names for title, names in panels.items() if names}
    history.write(out, [plain(each) for each in finished], shown, "iteration")
    write_json(out / METRICS, {"iterations": len(finished), **finished[-1]})

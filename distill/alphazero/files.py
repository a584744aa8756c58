"""The files of a self-play run: which is what, what has been finished, what a resumed run will still ask for.

    initial.keras  best.keras  config.json  run.json  plan.json  metrics.json  history.csv  curves.png
    iterations/0001/    games/  checkpoint.npz  candidate.keras  arena.json  metrics.json

An iteration is finished where it has its metrics, which are written last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, file_hash, folders, read_object, write_atomically, write_json
from distill.games import reader, schema
from distill.mcts import puct

if TYPE_CHECKING:
    from distill.training.run_folder import Claim

CONFIG, METRICS, BEST, CANDIDATE = "config.json", "metrics.json", "best.keras", "candidate.keras"
INITIAL, ARENA, GAMES, PLAN = "initial.keras", "arena.json", "games", "plan.json"
OWN_FILES = (METRICS, "iterations", BEST, INITIAL, PLAN, "history.csv", "curves.png", "events")
"""What a restart deletes, in this order."""
FREE = ("init", "out", "restart", "iterations", "minutes", "lanes", "games_only", "plan", "workers", "keep_games")
"""Settings that may change when a run goes on."""

PANELS = {
    "loss": ["training_loss", "policy_loss", "value_error"],
    "arena score of the learner": ["score"],
    "judge, without search": ["optimal", "outcome", "heldout_optimal", "heldout_outcome", "blocked"],
}

LOST = "the run cannot be resumed: restore this from a copy, or start again with --restart"
"""What to do about a missing part: the networks that played earlier iterations are not kept."""

Metrics = dict[str, Any]
"""Of one iteration, as its `metrics.json` holds them."""


def claim(out: Path, config: SelfPlayConfig) -> Claim:
    """The run's claim to its folder."""
    from distill.training import run_folder

    also = {"puct_version": puct.PUCT_VERSION}
    return run_folder.claim(out, folders.SELFPLAY, OWN_FILES, config, FREE, also)


def iteration_folder(out: Path, iteration: int) -> Path:
    """Where an iteration, counted from 1, has its files."""
    return out / "iterations" / f"{iteration:04d}"


def finished_iterations(out: Path) -> list[Metrics]:
    """The metrics of the finished iterations, in order. Raises UserError where those of an earlier one are missing."""
    found: list[Metrics] = []
    while (path := iteration_folder(out, len(found) + 1) / METRICS).is_file():
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            raise UserError(f"{path}: cannot be read; delete it, and this iteration is finished anew") from None
    numbers = [int(folder.name) for folder in out.glob("iterations/[0-9]*") if folder.name.isdecimal()]
    known = max([*numbers, read_object(out / METRICS).get("iterations", 0)], default=0)
    if (out / "iterations").is_dir() and known > len(found) + 1:  # one may be under way
        raise UserError(f"{path}: missing, though the run has come to iteration {known}; {LOST}")
    return found


def still_learns(out: Path, finished: Sequence[Metrics]) -> bool:
    """Whether the next iteration has yet to learn from the games of finished ones."""
    return bool(finished) and not (iteration_folder(out, len(finished) + 1) / "checkpoint.npz").is_file()


def verified_games(
    out: Path, finished: Sequence[Metrics], identity_of: Callable[[int], Mapping[str, Any]], iteration: int
) -> reader.Run:
    """The verified games of an iteration. Raises UserError where they are missing, changed, or of another kind.

    `identity_of(iteration)` is what they were played with; the network is ignored, as it may have been deleted.
    """
    folder = iteration_folder(out, iteration) / GAMES
    if not (folder / schema.MANIFEST).is_file():
        raise UserError(f"{folder}: the games of this iteration are missing; {LOST}")
    run, played = reader.open_run(folder), schema.read_manifest(folder).get("identity", {})
    there, here = ({**each, "network": "network" in each} for each in (played, identity_of(iteration)))
    names = sorted({*there, *here})
    differences = [f"{n} {there.get(n)} there, {here.get(n)} here" for n in names if there.get(n) != here.get(n)]
    if there["network"] != here["network"]:
        differences = [f"{folders.noun_of(folders.kind_of(folder))} are there"]
    differences += [
        f"{finished[iteration - 1][what]} {what} were played, {number} are there"
        for what, number in (("games", run.games), ("rows", run.rows))
        if 0 < iteration <= len(finished) and finished[iteration - 1][what] != number
    ]
    if differences:
        raise UserError(f"{folder}: not the games that this iteration played ({'; '.join(differences)}); {LOST}")
    reader.verify([run], LOST)
    return run


def kept_result(out: Path) -> Metrics:
    """The last metrics of a run whose result alone was kept, without its iterations, so that it cannot go on; or {}."""
    return {} if (out / "iterations").is_dir() else read_object(out / METRICS)


def champion_file(out: Path, finished: Sequence[Metrics]) -> Path:
    """The network that was accepted last, or the initial one."""
    accepted = [each["iteration"] for each in finished if each["accepted"]]
    return iteration_folder(out, accepted[-1]) / CANDIDATE if accepted else out / INITIAL


def has_begun(out: Path) -> bool:
    """Whether the run has a network to go on with."""
    return (out / INITIAL).is_file() or champion_file(out, finished_iterations(out)).is_file()


def settle(out: Path, finished: Sequence[Metrics]) -> None:
    """Bring a run's own files to its last finished iteration, after it or after a kill: network, curves, metrics.

    What no resumed run will ask for goes: candidates that no longer play, checkpoints but the last.
    """
    if not finished:
        return
    kept = champion_file(out, finished)
    if not kept.is_file():
        raise UserError(f"{kept}: missing; {LOST}")
    if not (out / BEST).is_file() or file_hash(kept) != file_hash(out / BEST):
        write_atomically(out / BEST, kept.read_bytes())
    for number in range(1, len(finished) + 1):
        network = iteration_folder(out, number) / CANDIDATE
        if network != kept:
            network.unlink(missing_ok=True)
        if number < len(finished):
            (iteration_folder(out, number) / "checkpoint.npz").unlink(missing_ok=True)
    _report(out, finished)


def _report(out: Path, finished: Sequence[Metrics]) -> None:
    """Draw the curves over all iterations and write the latest metrics."""
    from distill.training import history

    rows = [
        {name: math.nan if value is None else float(value) for name, value in each.items() if name != "seconds"}
        for each in finished
    ]
    measured = {name for name, value in rows[-1].items() if not math.isnan(value)}
    panels = {title: [name for name in names if name in measured] for title, names in PANELS.items()}
    history.write(out, rows, {title: names for title, names in panels.items() if names}, "iteration")
    write_json(out / METRICS, {"iterations": len(finished), **finished[-1]})

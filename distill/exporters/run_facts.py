"""What the files around a network say of it, for its card: settings, result, training games, grades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distill.common import file_hash, read_object
from distill.games import schema
from distill.networks import finding

GRADES = "grades"
"""The fact that holds what `distill.evaluate` found: `player`, `half`, by headline set the share of each metric, and
`mistakes`, the costliest ones."""
TEACHER = "training games"
"""The fact that says how the games were made that the network learned from."""


def facts_of_run(folder: Path) -> dict[str, Any]:
    """The facts by name; empty where the folder is not that of a run.

    Settings and result come from `config.json` and `metrics.json`; of a loop of self-play, whose result is that of its
    last iteration, only how long it was. What made the training games, where `train` has not noted it there, and grades
    are added where the files that say so lie where the commands put them and are sure to belong to this network.
    """
    facts, result, plan = (read_object(folder / name) for name in ("config.json", "metrics.json", "plan.json"))
    if done := result.get("iteration"):
        result = {"iterations": done, "minutes that it took": result.get("minutes")}
    facts |= result
    if done and plan:
        facts[TEACHER] = _planned(plan, facts)
        facts = {name: value for name, value in facts.items() if name not in _PLANNED}
    elif teacher := " · ".join(_training_games(folder, facts)):
        facts[TEACHER] = teacher
    if grades := _grades(folder):
        facts[GRADES] = grades
    return facts


_PLANNED = ("games", "root", "simulations", "noise_fraction")
"""Settings in the place of which a plan's own are followed."""


def _planned(plan: dict[str, Any], settings: dict[str, Any]) -> str:
    """What a planned run, whose plan is what `loop.plan` writes, has done of it."""
    first, *others = plan["iterations"][: settings["iterations"]]
    own = f"{sum(step['games'] for step in others):,} games of the network's own search"
    if others:
        searches = [step["simulations"] for step in others]
        own += f" of {min(searches)} to {max(searches)} simulations"
    return (
        f"{plan['teacher_games'] + first['games']:,} games of the teacher, each position labelled by a search of "
        f"{settings['teacher_simulations']:,} simulations; then {own}; meanwhile "
        f"{sum(step['steps'] for step in (first, *others)):,} steps of {settings['batch_size']} boards, by a plan for "
        f"{plan['minutes']:g} minutes of {len(plan['iterations'])} iterations (`python -m distill.selfplay --plan "
        "plan.json`, which lies in the run's folder, with the settings below)"
    )


def _training_games(folder: Path, facts: dict[str, Any]) -> Iterator[str]:
    """A line for each run of games: the prepared data names the runs, and the manifest of each its settings."""
    prepared_hash = read_object(folder / "run.json").get("identity", {}).get("prepared data")
    prepared, data = facts.get("prepared"), facts.get("data")
    if not (isinstance(prepared_hash, str) and isinstance(prepared, str) and isinstance(data, list)):
        return
    inputs = {
        entry["run"]: entry for entry in read_object(Path(prepared) / prepared_hash / "manifest.json").get("inputs", [])
    }
    for games in data:
        manifest = read_object(Path(games) / "manifest.json")
        made, entry = manifest.get("identity", {}), inputs.get(manifest.get("run"))
        if entry and {"simulations", "votes", "rollout", "seed"} <= set(made):
            searches = f"{made['votes']} searches" if made["votes"] > 1 else "one search"
            yield (
                f"{entry['games']:,} games, {entry['rows']:,} positions, each labelled by {searches} of "
                f"{made['simulations']:,} simulations with {made['rollout']} playouts (`distill.generate --seed "
                f"{made['seed']}`){'; labels changed afterwards' if schema.RELABELLED in made else ''}"
            )
        elif entry and made.get("kind") == schema.PACKED:
            yield f"{entry['rows']:,} labelled boards of {games}, whose card says how they were labelled"


def _grades(folder: Path) -> dict[str, Any]:
    """The grades of this folder's network in a report in it or beside it, unless the report is of another network."""
    network = folder / "best.keras"
    for report in (folder / "evaluation" / "metrics.json", folder.parent / "evaluation" / "metrics.json"):
        found = read_object(report)
        for name, player in found.get("players", {}).items():
            graded = {each: player.get("sets", {}).get(each, {}) for each in ("midgame", "heldout")}
            graded = {each: metrics for each, metrics in graded.items() if {"optimal", "outcome"} <= set(metrics)}
            meant = finding.find(name)
            same = meant is not None and meant.resolve() == folder.resolve()
            if same and graded and _is_of(report, found.get("networks", {}).get(name), network):
                half = found.get("benchmark", {}).get("half")
                return {"player": name, "half": half, "sets": graded, "mistakes": player.get("mistakes", [])}
    return {}


def _is_of(report: Path, graded: str | None, network: Path) -> bool:
    """Whether a report is of this network: by the hash that it tells, or else by not being older."""
    if not network.is_file():
        return True
    return graded == file_hash(network) if graded else network.stat().st_mtime <= report.stat().st_mtime

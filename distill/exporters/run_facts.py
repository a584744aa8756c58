"""What the files around a network record about it, for its card: settings, results, training games, grades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distill.common import file_hash, read_object
from distill.games import schema
from distill.networks import finding

GRADES = "grades"
"""The fact with the results of `distill.evaluate`: `player`, `half`, the metrics by headline set, and `mistakes`."""
TEACHER = "training games"
"""The fact that describes how the training games were made, in words."""
HEADLINES = ("midgame", "heldout")
_PLANNED = ("games", "root", "simulations", "noise_fraction")
"""Settings that a plan replaces iteration by iteration."""


def facts_of_run(folder: Path) -> dict[str, Any]:
    """The facts by name; empty where the folder is not that of a run.

    Settings and results come from `config.json` and `metrics.json`; of a self-play run, whose results are those of its
    last iteration, only its length. Training games and grades are added where the files that describe them are at the
    commands' default places and belong to this network.
    """
    facts, result, plan = (read_object(folder / name) for name in ("config.json", "metrics.json", "plan.json"))
    if done := result.get("iteration"):
        result = {"iterations": done, "minutes that it took": result.get("minutes")}
    facts |= result
    if done and plan:
        facts = {name: value for name, value in facts.items() if name not in _PLANNED}
        facts[TEACHER] = _planned(plan, done, facts["teacher_simulations"])
    elif teacher := " · ".join(_training_games(folder, facts)):
        facts[TEACHER] = teacher
    if grades := _grades(folder):
        facts[GRADES] = grades
    return facts


def _planned(plan: dict[str, Any], done: int, simulations: int) -> str:
    """What a self-play run has played and learned after `done` iterations of its plan."""
    first, *others = plan["iterations"][:done]
    steps = sum(step["steps"] for step in (first, *others))
    return (
        f"{plan['teacher_games'] + first['games']:,} games of the teacher with {simulations:,} simulations per search, "
        f"then {sum(step['games'] for step in others):,} self-play games; {steps:,} training steps meanwhile "
        "(`python -m distill.selfplay --plan plan.json` with the settings below repeats them)"
    )


def _training_games(folder: Path, facts: dict[str, Any]) -> Iterator[str]:
    """One text per run of games: the prepared table names the runs, and each run's manifest its settings."""
    table = read_object(folder / "run.json").get("identity", {}).get("prepared data")
    if not table or not {"prepared", "data"} <= facts.keys():
        return
    inputs = {
        entry["run"]: entry for entry in read_object(Path(facts["prepared"], table, "manifest.json")).get("inputs", [])
    }
    for games in facts["data"]:
        manifest = read_object(Path(games) / "manifest.json")
        made, entry = manifest.get("identity", {}), inputs.get(manifest.get("run"))
        if entry and {"simulations", "votes", "rollout", "seed"} <= set(made):
            searches = f"{made['votes']} searches" if made["votes"] > 1 else "one search"
            yield (
                f"{entry['games']:,} games, {entry['rows']:,} positions, each labelled by {searches} of "
                f"{made['simulations']:,} simulations with {made['rollout']} rollouts (`distill.generate --seed "
                f"{made['seed']}`)"
            )
        elif entry and made.get("kind") == schema.PACKED:
            yield f"{entry['rows']:,} labelled boards of {games}, whose card says how they were labelled"


def _grades(folder: Path) -> dict[str, Any]:
    """The grades of this network in a report in its folder or beside it, recognized by the network's hash."""
    if not (network := folder / finding.BEST).is_file():
        return {}
    for report in (folder / "evaluation" / "metrics.json", folder.parent / "evaluation" / "metrics.json"):
        found = read_object(report)
        for name, player in found.get("players", {}).items():
            sets = {each: player["sets"][each] for each in HEADLINES if each in player.get("sets", {})}
            if sets and "@" not in name and found.get("networks", {}).get(name) == file_hash(network):
                half = found.get("benchmark", {}).get("half")
                return {"player": name, "half": half, "sets": sets, "mistakes": player.get("mistakes", [])}
    return {}

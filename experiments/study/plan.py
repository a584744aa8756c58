"""What a study compares: data sets, runs and tiers, as a TOML file names them (`study.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distill.common import UserError
from distill.training.identity import BEST, LAST


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Games to learn from: `generate` flags that make them, or None where other commands do; `folder` where they lie.

    `shards_of` names a data set of the same settings, whose shards are taken over before the missing ones are made.
    """

    folder: str = ""
    games: int = 0
    generate: str | None = None
    shards_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: the data set it learns from, its `train` flags beside the tier's, and the run it is compared with."""

    change: str
    data: str
    train: str = ""
    against: str = ""
    confounded: str = ""


@dataclass(frozen=True, kw_only=True)
class Tier:
    """Flags of every run, its seeds, which runs there are (none names all), and steps of those that have their own.

    The file `network` is graded: that of the smallest validation loss, or `last.keras`, that after all steps.
    """

    train: str
    network: str = BEST
    seeds: tuple[int, ...] = (0,)
    runs: tuple[str, ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study: data sets, runs and tiers by name; players to measure them by; what is drawn, and of which runs.

    `rows` names the data set on whose games top-1 accuracy is measured: on its validation games where runs train on it,
    which other data sets of the same settings keep in validation too. `labels` labels of each data set are graded by
    the solver.
    """

    title: str
    about: str
    data: Mapping[str, DataSet]
    runs: Mapping[str, Run]
    tier: Mapping[str, Tier]
    players: tuple[str, ...] = ()
    learning_curve: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    over_time: bool = False
    rows: str = ""
    labels: int = 0


def read(path: Path) -> Plan:
    """The plan in a file. Raises UserError naming the file and what is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for part, kind in (("data", DataSet), ("runs", Run), ("tier", Tier)):
            content[part] = {name: kind(**_tuples(fields)) for name, fields in content[part].items()}
        plan = Plan(**_tuples(content))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: not a recipe ({type(error).__name__}: {error})") from None
    if others := sorted({tier.network for tier in plan.tier.values()} - {BEST, LAST}):
        raise UserError(f"{path}: no network {', '.join(others)}; a tier grades {BEST} or {LAST}")
    known = set(plan.runs)
    asked = {*plan.learning_curve, *plan.targets, *(run.against for run in plan.runs.values() if run.against)}
    asked |= {name for tier in plan.tier.values() for name in (*tier.runs, *tier.steps)}
    if unknown := sorted(asked - known):
        raise UserError(f"{path}: no run {', '.join(unknown)}; there are {', '.join(plan.runs)}")
    named = {plan.rows, *(run.data for run in plan.runs.values()), *(data.shards_of for data in plan.data.values())}
    if unknown := sorted(named - {""} - set(plan.data)):
        raise UserError(f"{path}: no data {', '.join(unknown)}; there are {', '.join(plan.data)}")
    return plan


def trained_on(plan: Plan) -> set[str]:
    """The data sets of which a run has games, by name."""
    return {run.data for run in plan.runs.values()} | {data.shards_of for data in plan.data.values()} - {""}


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

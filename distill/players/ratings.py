"""Measured Elo of the players that ship: `docs/benchmark.csv`, which `python -m experiments.players` writes."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from distill.common import provenance
from distill.players import levels

NETWORK = levels.NETWORK.rpartition("/")[2]
"""The levels' network, as the table names it."""


@cache
def table() -> dict[str, int]:
    """Player → Elo, `random` at 0; empty where the table is missing."""
    file = provenance.shipped("docs/benchmark.csv")
    if file is None:
        return {}
    with file.open(encoding="utf-8", newline="") as text:
        return {row["player"]: round(float(row["elo"])) for row in csv.DictReader(text)}


def of_level(name: str, has_solver: bool) -> int | None:
    """A level's Elo; without the solver `perfect` is a search with the shipped network."""
    if name == "perfect" and not has_solver:
        name = levels.WITHOUT_SOLVER.player.replace(levels.NETWORK, NETWORK)
    return table().get(name)


def of_static_page(network: Path) -> dict[str, int]:
    """The levels' Elo on a page without a server; empty unless `network` is the one they were measured with."""
    measured = provenance.shipped(f"models/{levels.NETWORK}")
    if measured is None or not network.resolve().is_relative_to(measured.resolve()):
        return {}
    found = {name: of_level(name, has_solver=False) for name in levels.LEVELS}
    return {name: elo for name, elo in found.items() if elo is not None}

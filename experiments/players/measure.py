"""Measurements of players, in one JSON file: `pairs`, `grades` and `times` by the names of the players.

A measurement has a `key`, the hash of what was measured: the players' identities, the seed, and the boards or openings.
Where the key differs, the measurement is repeated.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distill.common import DataError, canonical_json, read_object, write_atomically
from distill.datasets.benchmark import GradedBoards
from distill.evaluation import grading
from distill.networks import finding
from distill.players.intervals import Estimate, elo_with_intervals
from distill.players.match import Opening, pair_points, paired, play_games
from distill.players.names import evaluated, identity, loaded, network_of
from distill.players.player import seeds_for

Pair = tuple[str, str]

MOST_MOVES, SECONDS = 300, 2.0
"""Given to the time of one player; six moves at least."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One player's line of the table.

    Attributes:
      elo: rating, `random` or else the first player at 0.
      games: how many it played.
      optimal, outcome: shares of boards, see `evaluation/grading.py`; boards: how many, each also mirrored.
      ms: milliseconds of processor time for a single move; processor: its name.
      bytes: of its network's ONNX file; None for players without a network.
    """

    player: str
    elo: Estimate
    games: int
    optimal: Estimate
    outcome: Estimate
    boards: int
    ms: float
    processor: str
    bytes: int | None


def met(one: str, other: str, starts: Sequence[Opening], seed: int, file: Path) -> list[list[float]]:
    """(U, 2), per opening the points, 0 to 2, of both players in its two games."""
    known = {name: tuple(identity(name)) for name in (one, other)}

    def play_pair() -> list[list[float]]:
        pairings = paired(0, 1, starts)
        games = play_games([loaded(*each) for each in known.items()], pairings, seed)
        points = pair_points(games, pairings, 2)
        return [[float(each[0, 1]), float(each[1, 0])] for each in points]

    return _kept(file, "pairs", [one, other], [*known.values(), starts, seed], play_pair)


def graded(name: str, boards: GradedBoards, count: int | None, seed: int, file: Path) -> dict[str, Any]:
    """The player's shares on at most `count` of the boards, by METRICS, and how many they are."""
    chosen = grading.sample(boards, count, seed) if count else boards
    digest = hashlib.sha256(
        b"".join(array.tobytes() for array in (chosen.current, chosen.mask, chosen.scores))
    ).hexdigest()
    known = tuple(identity(name))

    def grade() -> dict[str, Any]:
        shares = grading.by_set(chosen, grading.grade(loaded(name, known), chosen, seed))[chosen.sets[0]]
        return {metric: asdict(share) for metric, share in shares.items()} | {"boards": len(chosen)}

    return _kept(file, "grades", [name], [known, digest, seed], grade)


def time_alone(name: str, boards: GradedBoards, file: Path) -> dict[str, Any]:
    """Median milliseconds of processor time for a single move, and the processor.

    Processor time, unlike wall time, is nearly the same beside other work.
    """
    known = tuple(identity(name))

    def measure() -> dict[str, Any]:
        chosen = grading.sample(boards, MOST_MOVES + 1, 0)
        player, spent = loaded(name, known), list[float]()
        for row in range(len(chosen)):
            began = time.process_time()
            player.choose(chosen.current[row : row + 1], chosen.mask[row : row + 1], seeds_for(0, np.array([row])))
            spent.append(time.process_time() - began)
            if row > 5 and sum(spent) > SECONDS:
                break
        return {"ms": 1000 * statistics.median(spent[1:]), "processor": processor()}  # the first one gets ready

    return _kept(file, "times", [name], [known], measure)


def rows(
    players: Sequence[str],
    met: Mapping[Pair, list[list[float]]],
    times: Mapping[str, dict[str, Any]],
    grades: Mapping[str, dict[str, Any]],
    seed: int,
) -> list[Row]:
    """The table, the strongest player first."""
    count = len(next(iter(met.values())))
    points = np.full((count, len(players), len(players)), np.nan)
    games = dict.fromkeys(players, 0)
    for (one, other), each in met.items():
        row, column = players.index(one), players.index(other)
        points[:, row, column], points[:, column, row] = np.array(each).T
        games[one] += 2 * count
        games[other] += 2 * count
    ratings = elo_with_intervals(points, seed)
    zero = ratings[players.index("random") if "random" in players else 0].mean
    found = [
        Row(
            player=name,
            elo=Estimate(mean=elo.mean - zero, low=elo.low - zero, high=elo.high - zero, units=elo.units),
            games=games[name],
            optimal=Estimate(**grades[name]["optimal"]),
            outcome=Estimate(**grades[name]["outcome"]),
            boards=grades[name]["boards"],
            bytes=_bytes(name),
            **times[name],
        )
        for name, elo in zip(players, ratings, strict=True)
    ]
    return sorted(found, key=lambda row: -row.elo.mean)


def processor() -> str:
    """The name of this machine's processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    name = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return name[1] if name else platform.machine()


def _kept(file: Path, kind: str, players: Sequence[str], key: Any, measure: Callable[[], Any]) -> Any:
    """The result that the file holds under this key, or else of a fresh measurement, which is left there."""
    stored, name = _measured(file), " ".join(players)
    key = hashlib.sha256(canonical_json(key).encode()).hexdigest()
    if stored.get(kind, {}).get(name, {}).get("key") != key:
        record = {"key": key, "networks": evaluated(players, fast=True), "result": measure()}
        stored.setdefault(kind, {})[name] = record
        write_atomically(file, _lines(stored).encode())
    return stored[kind][name]["result"]


def _measured(file: Path) -> dict[str, Any]:
    """What the file holds; nothing where it is missing. Raises DataError for a damaged one, which would be replaced."""
    if file.exists() and not read_object(file):
        raise DataError(f"{file}: holds no measurements; restore it, delete it, or name another --out")
    return read_object(file)


def _lines(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """JSON with a line for each measurement, so that a change shows where it is."""
    kinds = []
    for kind, measured in sorted(stored.items()):
        rows = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in sorted(measured.items())]
        kinds.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def _bytes(name: str) -> int | None:
    folder = network_of(name)
    file = finding.evaluated_in(folder) if folder else None
    return file.stat().st_size if file and file.suffix == ".onnx" else None

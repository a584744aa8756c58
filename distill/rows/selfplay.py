"""Games of a network's own search, written as ordinary shards.

`make` plays the games of a run that a folder lacks, all in lock step in this process, and writes each shard when the
last of its games has ended; the manifest comes last. A row is a row of `schema.py` with one vote: `label` is the column
the search holds for best, `move` the one played, which chance may have chosen in the first plies. `visits` are those
made for this position; with a Gumbel root they are its improved policy in thousandths.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from distill.base.cli import as_json, setting
from distill.rows import shards
from distill.rows.schema import Shard
from distill.search import puct
from distill.search.guided_trees import GuidedRecord
from distill.search.policy_playout import by_playouts
from distill.search.puct import Evaluate, PuctSettings


@dataclass(frozen=True, kw_only=True)
class SelfPlaySettings(PuctSettings):
    """All that self-play games depend on beside the network."""

    leaves: Literal["value", "playout"] = setting(
        "value", "worth of a leaf: the value head, or a playout whose moves the network chooses"
    )
    opening_moves: tuple[int, ...] = setting(
        (0, 2), f"fewest and most random moves before the search plays; {shards.IN_TURN}"
    )
    seed: int = setting(0, "run seed; game g depends on it and on g alone")
    shard_games: int = setting(50, "games in one shard file")

    def __post_init__(self) -> None:
        super().__post_init__()
        shards.check_games(self)


def identity(settings: SelfPlaySettings, network: str) -> dict[str, Any]:
    """What defines a run of self-play: its settings, the search's version, and the hash of the network's weights."""
    fields = {field.name for field in dataclasses.fields(SelfPlaySettings)}
    chosen = {name: value for name, value in as_json(settings).items() if name in fields}
    return {"puct_version": puct.PUCT_VERSION, "network": network, **chosen}


def make(
    settings: SelfPlaySettings,
    network: str,
    predict: Evaluate,
    games: int,
    folder: Path,
    *,
    lanes: int = puct.LANES,
    advance: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Play games 0 to `games` - 1, as far as the folder lacks them; returns the manifest, written last.

    The caller holds the folder (`shards.locked`).

    Args:
      network: hash of the network behind `predict`, a part of the run's identity.
      lanes: games side by side.
      advance: told how many games and rows there are more, those found there first.

    Raises DataError where the folder holds another run. A shard is whole or not there, so a
    killed process loses the games of unfinished shards, which are played again, and no other.
    """
    run = identity(settings, network)
    plan = shards.plan(settings, games, folder, run=run)
    finished = list(plan.done)
    if advance:
        for shard in finished:
            advance(shard.games, shard.rows)
    finished += _play(settings, run, predict, plan.todo, folder, lanes, advance)
    return shards.declare(run, finished, folder)


def make_part(
    settings: SelfPlaySettings,
    network: str,
    predict: Evaluate,
    games: int,
    folder: Path,
    part: tuple[int, int],
    lanes: int = puct.LANES,
) -> None:
    """Every n-th shard of `make`, from shard i on, for `part` (i, n); `make` itself, called last, finds them all."""
    run = identity(settings, network)
    indices = range(shards.shard_count(games, settings.shard_games))[part[0] :: part[1]]
    _play(settings, run, predict, shards.plan(settings, games, folder, indices, run).todo, folder, lanes)


def _play(
    settings: SelfPlaySettings,
    run: Mapping[str, Any],
    predict: Evaluate,
    tasks: Sequence[shards.Task],
    folder: Path,
    lanes: int,
    advance: Callable[[int, int], None] | None = None,
) -> list[Shard]:
    """Play the games of these shards and write each shard when the last of its games has ended."""
    made: list[Shard] = []
    if not tasks:
        return made
    numbers = np.concatenate([task.index * settings.shard_games + np.arange(task.games) for task in tasks])
    left = {task.index: task.games for task in tasks}

    def ended(record: GuidedRecord, indices: Any) -> None:
        if advance:
            advance(len(indices), int(record.length[indices].sum()))
        for index in (numbers[indices] // settings.shard_games).tolist():
            left[index] -= 1
            if not left[index]:
                chosen = np.flatnonzero(numbers // settings.shard_games == index)
                votes = record.label[..., None]
                table = shards.rows(record, chosen, numbers[chosen], votes=votes, move=record.move)
                first = index * settings.shard_games
                made.append(shards.write(table, run, index, first, len(chosen), folder, ("keras", *shards.LIBRARIES)))

    starts = [shards.opening(settings, int(number)) for number in numbers]
    puct.play(
        np.array([start.current for start in starts], np.uint64),
        np.array([start.mask for start in starts], np.uint64),
        settings,
        by_playouts(predict, settings.seed) if settings.leaves == "playout" else predict,
        seed=settings.seed,
        games=numbers.tolist(),
        lanes=lanes,
        ended=ended,
    )
    return made

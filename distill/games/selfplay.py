"""Games of a network's own search, written as ordinary shards.

`make` plays the games of a run that a folder lacks, all in lock step in this process, and writes each shard when the
last of its games has ended; the manifest comes last. Games of unfinished shards are kept in hidden files
(`checkpoints.py`). A row is a row of `schema.py` with one vote: `label` is the column
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
from numpy.typing import NDArray

from distill.common.cli import as_json, setting
from distill.game.rules import CELLS
from distill.games import playing, runs, shards
from distill.games.checkpoints import Checkpoint, joined
from distill.games.schema import Shard
from distill.mcts import puct
from distill.mcts.guided_trees import GuidedRecord
from distill.mcts.policy_playout import by_playouts
from distill.mcts.puct import Evaluate, PuctSettings
from distill.mcts.teacher import blank_record

LIBRARIES = ("keras", *shards.LIBRARIES)
"""Whose versions a shard's bytes depend on."""


@dataclass(frozen=True, kw_only=True)
class SelfPlaySettings(PuctSettings):
    """All that self-play games depend on beside the network."""

    leaves: Literal["value", "playout"] = setting(
        "value", "worth of a leaf: the value head, or a playout whose moves the network chooses"
    )
    opening_moves: runs.OpeningMoves = setting(
        (0, 2), "fewest and most random moves before the search plays; in JSON also a list of pairs, for games in turn"
    )
    seed: int = setting(0, "run seed; game g depends on it and on g alone")
    shard_games: int = setting(50, "games in one shard file")

    def __post_init__(self) -> None:
        super().__post_init__()
        runs.check_games(self)


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
      advance: called with the number of further finished games and their rows, first for those found in the folder.

    Raises DataError where the folder holds another run. A killed process loses the games that were being played, and
    those of unfinished shards that ended in its last seconds.
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


def checkpoints_of(
    settings: SelfPlaySettings, run: Mapping[str, Any], tasks: Sequence[shards.Task], folder: Path
) -> list[Checkpoint]:
    """The hidden files of the shards that these tasks are to make."""
    return shards.checkpoints_of(settings, tasks, folder, run, LIBRARIES)


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
    none, size = np.empty(0, np.uint64), settings.shard_games
    files = {file.index: file for file in checkpoints_of(settings, run, tasks, folder)}
    kept = {index: file.load(GuidedRecord(**blank_record(none, none, CELLS))) for index, file in files.items()}
    numbers = np.concatenate([np.setdiff1d(file.games, kept[index][0]) for index, file in files.items()])

    def store(index: int, record: GuidedRecord, chosen: NDArray[np.int64]) -> None:
        """Write the shard if all of its games have ended; else save those that have, if a save is due."""
        file, (there, before) = files[index], kept[index]
        if len(there) + len(chosen) < len(file.games):
            if file.is_due():
                file.save(np.concatenate([there, numbers[chosen]]), joined(before, record, chosen))
            return
        games, whole = np.concatenate([there, numbers[chosen]]), joined(before, record, chosen)
        places, votes = np.argsort(games), whole.label[..., None]
        table = playing.rows(whole, places, games[places], votes=votes, move=whole.move)
        made.append(shards.write(table, run, index, index * size, len(games), folder, LIBRARIES))
        file.delete()

    def ended(record: GuidedRecord, indices: NDArray[np.int64]) -> None:
        if advance:
            advance(len(indices), int(record.length[indices].sum()))
        for index in np.unique(numbers[indices] // size).tolist():
            store(index, record, np.flatnonzero((numbers // size == index) & (record.length > 0)))

    for index, (there, before) in kept.items():
        if advance and len(there):
            advance(len(there), int(before.length.sum()))
        if len(there) == len(files[index].games):  # the interrupted run wanted more games
            store(index, before, np.empty(0, np.int64))
    starts = [runs.opening(settings, int(number)) for number in numbers]
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

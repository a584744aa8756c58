"""Games in which a search guided by a network plays both sides, written as ordinary shards.

In: settings, the network's evaluator, the shards to make. Out: the content of each shard, once the last of its games
has ended. All games are played in lock step in this process. The caller holds the folder and records the result
(`shards.complete`).

A row is a row of `schema.py` with one vote: `label` is the column that the search prefers, `move` the one played, which
is drawn at random in the first plies. `visits` are those of this search; with a Gumbel root they are its improved
policy in thousandths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common.progress import Advance, silent
from distill.games import playing, shards
from distill.games.settings import SelfPlaySettings
from distill.mcts import puct
from distill.mcts.evaluator import BitboardEvaluator, by_rollouts
from distill.mcts.results import GameRecord

LIBRARIES = ("keras", *shards.LIBRARIES)
"""Whose versions a shard's bytes depend on."""


def play_in_lock_step(
    settings: SelfPlaySettings,
    identity: Mapping[str, Any],
    evaluate: BitboardEvaluator,
    tasks: Sequence[shards.Task],
    write: Callable[[shards.Encoded], object],
    *,
    lanes: int = puct.LANES,
    advance: Advance = silent,
) -> None:
    """Play the games of these shards and write each shard when the last of its games has ended.

    A killed process loses the games of unfinished shards.

    Args:
      identity: of the run.
      evaluate: the network that the identity names.
      write: called with a shard.
      lanes: games played side by side; no influence on the games.
      advance: called with the number of further finished games.
    """
    size = settings.shard_games
    numbers = np.concatenate([task.index * size + np.arange(task.games) for task in tasks])
    shard = numbers // size

    # Games end in any order; a shard is written when its last one has.
    def ended(record: GameRecord, games: NDArray[np.int64]) -> None:
        advance(len(games))
        for index in np.unique(shard[games]).tolist():
            places = np.flatnonzero(shard == index)
            if (record.length[places] > 0).all():  # a game has no length before its end
                table = playing.rows(record, places, numbers[places])
                task = shards.Task(index=index, games=len(places))
                write(shards.encode_shard(table, identity, task, index * size, LIBRARIES))

    puct.play(
        *playing.starts(settings, numbers.tolist()),
        by_rollouts(evaluate, settings.seed) if settings.leaves == "playout" else evaluate,
        settings.search,
        seeds=settings.seed,
        games=numbers.tolist(),
        lanes=lanes,
        ended=ended,
    )

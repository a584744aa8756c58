"""The iterations of a run: how many there are, when each one ends, and how fast the network learns in it.

                    first iteration             later iterations                         last iteration
    with numbers    the network plays,          the same, and learns from                the same
                    then learns                 the latest games
    with a clock    games are played            games are played, and meanwhile the      the network only learns
                                                network learns from earlier ones

With a clock (`--minutes`) all iterations take equal shares of the time. With a `teacher_share` the first one takes that
share, and the teacher plays the first two, in which the network has learned nothing or little. On a device the network
plays and learns in turns, in every iteration. A finished run has recorded its games and steps as numbers, and a run
that repeats them (`--repeat`) never looks at the clock.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, first_line, listed, run_folder
from distill.players.player import seeds_for
from distill.training.schedule import WARM_UP

GAMES, SAMPLE, TRAINING, ARENA = range(4)
"""What a seed of an iteration is for."""

ITERATIONS = 2.6
"""Iterations that learn in a run with a clock, divided by the square root of its minutes: 6 in 6 minutes, 20 in an
hour, 57 in a night."""


@dataclass(frozen=True, kw_only=True)
class End:
    """When an iteration ends: by numbers, or by the clock `now`.

    Attributes:
      games: games that are played in any case.
      steps: most training steps, taken while games are played; None: the config's epochs, after the games.
      plays: whether anybody plays.
      at: the time until which workers play more shards and the learner takes steps; None: the numbers alone count.
    """

    games: int
    steps: int | None = None
    plays: bool = True
    at: float | None = None
    now: Callable[[], float] = time.monotonic

    def seconds_left(self) -> float:
        """Seconds in which workers play more shards than those of `games`."""
        return 0.0 if self.at is None else max(0.0, self.at - self.now())

    def is_over(self) -> bool:
        """Whether the learner stops before `steps`."""
        return self.at is not None and not self.seconds_left()


def end_of(
    config: SelfPlayConfig, number: int, count: int, earlier: Mapping[str, Any], began: float, now: Callable[[], float]
) -> End:
    """The end of an iteration: a number of games, or its share of the minutes left, less what saving and grading take.

    Args:
      count: the number of iterations.
      earlier: metrics of the iteration before; empty for the first one.
      began: when this iteration began, by the clock `now`.
    """
    total, first = config.schedule.minutes, config.schedule.teacher_share
    if total is None:
        return End(games=config.schedule.games)
    minutes = (total - earlier.get("minutes", 0.0)) / (count - number + 1)
    if number == 1 and first:
        minutes = total * first
    # The network needs some games to learn from; later ones that would last too long are given up.
    games, at = config.shard_games if number == 1 else 0, began + 60 * minutes - earlier.get("saving_seconds", 0.0)
    return End(games=games, steps=sys.maxsize, plays=number < count, at=at, now=now)


def recorded(path: Path, identity: Mapping[str, Any]) -> list[End]:
    """The games and steps of each iteration of a finished run with a clock, from its record.

    Raises UserError where the file is missing or something else, and where the run had other settings than `identity`,
    that of the run which repeats it. Its minutes are those of the clock, at which a repetition does not look.
    """
    ignored = dict.fromkeys(("repeat", "schedule.minutes"))
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        counts = [(int(count["games"]), int(count["steps"])) for count in record["result"]["counts"]]
        different = run_folder.differences(record["identity"] | ignored, {**identity, **ignored})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not the record of a finished run with --minutes ({first_line(error)})") from error
    if different:
        raise UserError(f"--repeat {path}: of a run with other settings ({listed(different)}); repeat it with the same")
    return [End(games=games, steps=steps, plays=games > 0) for games, steps in counts]


def count_of(config: SelfPlayConfig, repeated: Sequence[End] = ()) -> int:
    """The number of iterations."""
    if repeated:
        return len(repeated)
    minutes = config.schedule.minutes
    if minutes is None:
        return config.schedule.iterations
    # On a device nobody waits for games, so more iterations only give the curve more points.
    return 1 + max(3, round((2 if config.machine.device_lanes else 1) * ITERATIONS * math.sqrt(minutes)))


def share_gone(config: SelfPlayConfig, number: int, count: int) -> float:
    """The share of the time that is gone in the middle of one of `count` iterations; 0 without a clock."""
    if not config.is_timed:
        return 0.0
    # With workers, the first iteration only plays; on a device it learns too.
    return (number - 0.5) / count if config.machine.device_lanes else max(0.0, (number - 1.5) / (count - 1))


def learning_rate(config: SelfPlayConfig, number: int, share: float) -> float:
    """The learning rate of an iteration, after this share of the time."""
    rates = {1: config.learning.lr} | {row.start: row.lr for row in config.learning.lr_schedule}
    highest = rates[max(start for start in rates if start <= number)]
    if not config.is_timed:
        return highest
    return highest * min(1.0, share / WARM_UP) * (1 + math.cos(math.pi * share)) / 2


def teacher_plays(config: SelfPlayConfig, number: int) -> bool:
    """Whether the teacher plays an iteration: a network that has learned nothing would play worse games."""
    return config.schedule.teacher_share > 0 and number <= 2


def seed_of(config: SelfPlayConfig, number: int, purpose: int) -> int:
    """A seed that depends on the run's seed, the iteration and the purpose."""
    return int(seeds_for(config.seed, number, purpose)[0])

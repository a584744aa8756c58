"""When an iteration ends: by counts of games and steps, or by the clock.

With a clock (`--minutes`) all iterations but the first take equal shares of the time. A finished run has recorded its
games and steps as counts, and a run that repeats them (`--replay`) never looks at the clock.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, first_line
from distill.common.settings import Settings


class Count(Settings):
    """An end by numbers: so many games, and so many training steps; None: the config's epochs."""

    games: int = Field(ge=0)
    steps: int | None = Field(None, ge=0)

    @property
    def plays(self) -> bool:
        """Whether anybody plays."""
        return self.games > 0

    def seconds_left(self) -> float:
        """Seconds in which workers play more shards than those of `games`."""
        return 0.0

    def is_over(self) -> bool:
        """Whether the learner stops before `steps`."""
        return False

    def seconds_since(self) -> float:
        """Seconds since the last step, in which a network was saved and graded; 0 where they do not matter."""
        return 0.0


@dataclass(kw_only=True)
class Clock:
    """An end by the clock: workers play shards and the learner takes steps until the time `ends`.

    Attributes:
      games: games that are played in any case.
      plays: whether anybody plays.
      looked: when the learner looked at the clock for the last time.
    """

    ends: float
    games: int
    plays: bool
    now: Callable[[], float] = time.monotonic
    steps: int | None = sys.maxsize
    looked: float = -math.inf

    def seconds_left(self) -> float:
        return max(0.0, self.ends - self.now())

    def is_over(self) -> bool:
        self.looked = self.now()
        return self.looked >= self.ends

    def seconds_since(self) -> float:
        return self.now() - max(self.looked, self.ends)


End: TypeAlias = Count | Clock


def by_clock(
    config: SelfPlayConfig, number: int, of: int, gone: float, saving: float, now: Callable[[], float], began: float
) -> Clock:
    """The end of an iteration with a clock: its share of the minutes left, less what saving and grading take.

    Args:
      of: the number of iterations.
      gone: minutes of the run before this iteration.
      saving: seconds from the last step of the iteration before to its end.
      began: when this iteration began, by the clock `now`.
    """
    minutes, first = config.schedule.minutes or 0.0, config.schedule.teacher_share
    share = minutes * first if number == 1 and first else (minutes - gone) / (of - number + 1)
    # The network needs some games to learn from; later ones that would last too long are given up.
    games = config.shard_games if number == 1 else 0
    return Clock(ends=began + 60 * share - saving, games=games, plays=number < of, now=now)


def recorded(path: Path) -> list[Count]:
    """The games and steps of each iteration of a finished run with a clock, from its record.

    Raises UserError where the file is missing or something else.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))["result"]
        return [Count(**counts) for counts in result["replay"]]
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; name the _run.json of a finished run with --minutes") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not the record of a finished run with --minutes ({first_line(error)})") from error

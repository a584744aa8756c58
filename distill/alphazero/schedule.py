"""What each iteration plays and learns: by fixed numbers, or by a plan.

                    iteration 0     iteration 1                          iteration k
    fixed numbers   (none)          plays, then learns from these games  plays, then learns from the latest games
    plan            teacher plays   teacher plays, network learns from   network plays, and learns from the latest games
                                    the games of iteration 0             before k; in the last one it only learns

With a plan playing and learning overlap, so the network that plays iteration k is the one that iteration k − 1 left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from distill.alphazero import plan
from distill.alphazero.plan import Plan
from distill.alphazero.settings import SEARCH, SelfPlayConfig
from distill.games.runs import RunSettings
from distill.players.player import seeds_for

GAMES, SAMPLE, TRAINING, ARENA = range(4)
"""What a seed of an iteration is for."""
OVERLAPPED_GAMES = 1
"""For the network's games in an overlapping run, where GAMES is for the teacher's; the sample has the same seed."""


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """What one iteration does.

    Attributes:
      games: to be played.
      settings: of the search that plays them; `RunSettings`: the teacher plays.
      steps: training steps; None: `epochs` epochs over the boards drawn.
      learning_rate: by the number of the step in this iteration, from 0.
    """

    games: int
    settings: SelfPlayConfig | RunSettings
    steps: int | None
    learning_rate: Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The iterations of a run, counted from 1. `len()` is their number; 0: the plan is still to be made."""

    config: SelfPlayConfig
    plan: Plan | None = None

    @property
    def overlaps(self) -> bool:
        """Whether workers play the next games while the network learns."""
        return self.config.is_planned

    def __len__(self) -> int:
        if self.plan:
            return len(self.plan.iterations)
        return 0 if self.config.is_planned else self.config.schedule.iterations

    def seed(self, number: int, purpose: int) -> int:
        """A seed that depends on the run's seed, the iteration and the purpose."""
        return int(seeds_for(self.config.seed, number, purpose)[0])

    def learns_from(self, number: int) -> range:
        """The iterations whose games an iteration may learn from."""
        return range(number) if self.overlaps else range(1, number + 1)

    def iteration(self, number: int) -> Iteration:
        """What an iteration does; number 0 are the first games of a plan."""
        return _planned(self, self.plan, number) if self.plan else _fixed(self, number)


def _fixed(schedule: Schedule, number: int) -> Iteration:
    config, rate = schedule.config, schedule.config.learning_rate(number)
    # Connect 4 AI has extra root noise at first.
    noise = config.search.noise_fraction * (2 if number <= config.schedule.double_noise_iterations else 1)
    search = config.search.replace(noise_fraction=min(1.0, noise))
    settings = config.replace(seed=schedule.seed(number, GAMES), search=search)
    return Iteration(games=config.schedule.games, settings=settings, steps=None, learning_rate=lambda _: rate)


def _planned(schedule: Schedule, followed: Plan, number: int) -> Iteration:
    config, step = schedule.config, followed.iterations[max(number, 1) - 1]

    def learning_rate(done: int) -> float:
        """A cosine over all iterations, as if all had the steps of this one: planning again changes no earlier rate."""
        from distill.training import schedule as learning_rates

        steps = len(followed.iterations) * step.steps
        return learning_rates.cosine(config.learning.lr, (number - 1) * step.steps + done, steps)

    settings: SelfPlayConfig | RunSettings
    # A network that has learned nothing plays worse games than the teacher.
    if number <= 1:
        settings = plan.teacher_settings(config, schedule.seed(number, GAMES))
    else:
        search = config.search.replace(**{name: getattr(step, name) for name in SEARCH})
        settings = config.replace(seed=schedule.seed(number, OVERLAPPED_GAMES), search=search)
    games = step.games if number else followed.teacher_games
    return Iteration(games=games, settings=settings, steps=step.steps, learning_rate=learning_rate)

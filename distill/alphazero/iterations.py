"""The iterations of a run: who plays, how long an iteration lasts, and from which games the network learns.

                    first iteration             later iterations                         last iteration
    with numbers    the network plays,          the same, and learns from                the same
                    then learns                 the latest games
    with a clock    games are played            games are played, and meanwhile the      the network only learns
                                                network learns from earlier ones

With a clock and a `teacher_share` the teacher plays the first two iterations, in which the network has learned nothing
or little; else the network plays. The numbers or the clock are the iteration's end (`ends.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill.alphazero import games
from distill.alphazero.ends import Count, End
from distill.alphazero.games import Player
from distill.alphazero.settings import SelfPlayConfig
from distill.games.runs import RunSettings
from distill.mcts.settings import UctSettings
from distill.players.player import seeds_for

GAMES, SAMPLE, TRAINING, ARENA = range(4)
"""What a seed of an iteration is for."""

ITERATIONS = 2.6
"""Iterations that learn in a run with a clock, divided by the square root of its minutes: 6 in 6 minutes, 20 in an
hour, 57 in a night."""

WARM_UP = 0.05
"""Share of the time in which the learning rate of a run with a clock rises."""


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """One iteration.

    Attributes:
      number: counted from 1.
      player: who plays; None: nobody.
      learns_from: the iterations whose games the network learns from; none: it does not learn.
    """

    number: int
    player: Player | None
    end: End
    learns_from: range
    learning_rate: float


def number_of(config: SelfPlayConfig, replay: Sequence[Count] = ()) -> int:
    """The number of iterations."""
    if replay:
        return len(replay)
    minutes = config.schedule.minutes
    return config.schedule.iterations if minutes is None else 1 + max(3, round(ITERATIONS * math.sqrt(minutes)))


def iteration(config: SelfPlayConfig, number: int, of: int, end: End, champion: Path) -> Iteration:
    """An iteration of `of`, in which the network in the file `champion` plays, or the teacher."""
    share, rate = 0.0, config.learning_rate(number)
    if config.is_timed:
        # In the middle of the iteration; the first one does not learn.
        share = max(0.0, (number - 1.5) / (of - 1))
        rate *= min(1.0, share / WARM_UP) * (1 + math.cos(math.pi * share)) / 2
    return Iteration(
        number=number,
        player=_player(config, number, share, champion) if end.plays else None,
        end=end,
        learns_from=learns_from(config, number),
        learning_rate=rate,
    )


def _player(config: SelfPlayConfig, number: int, share: float, champion: Path) -> Player:
    seed = seed_of(config, number, GAMES)
    if teacher_plays(config, number):
        search = UctSettings(simulations=config.schedule.teacher_simulations, votes=1)
        shared = {"opening_moves": config.opening_moves, "shard_games": config.shard_games}
        return games.Teacher(settings=RunSettings(search=search, seed=seed, **shared))
    search_settings = config.search_at(share)
    if number <= config.schedule.double_noise_iterations:  # as Connect 4 AI has it
        search_settings = search_settings.replace(noise_fraction=min(1.0, 2 * search_settings.noise_fraction))
    return games.network_player(config.replace(seed=seed, search=search_settings), champion)


def teacher_plays(config: SelfPlayConfig, number: int) -> bool:
    """Whether the teacher plays an iteration: a network that has learned nothing would play worse games."""
    return config.schedule.teacher_share > 0 and number <= 2


def learns_from(config: SelfPlayConfig, number: int) -> range:
    """The iterations whose games an iteration learns from: with a clock, only earlier ones."""
    return range(1, number if config.is_timed else number + 1)


def seed_of(config: SelfPlayConfig, number: int, purpose: int) -> int:
    """A seed that depends on the run's seed, the iteration and the purpose."""
    return int(seeds_for(config.seed, number, purpose)[0])

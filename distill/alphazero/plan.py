"""The plan of a run that needs no hand: minutes become games and steps, once, by measuring this machine.

The run follows its plan and nothing else, so the same plan gives the same weights on the same kind of processor,
however busy the machine is meanwhile.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from distill.alphazero import ahead, files
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, write_json
from distill.datasets import batching
from distill.datasets.batching import Examples
from distill.game.rules import COLUMNS
from distill.games import runs
from distill.games.runs import RunSettings

if TYPE_CHECKING:
    from distill.training.continual import Learner

ITERATIONS = 2.6
"""Times the root of the minutes: 6 minutes make 6 iterations, an hour 20, a night 57."""

SHARE = 0.93
"""Of the time that is planned for playing and learning; loading, saving, merging and grading have the rest."""

SPEED = {"teacher": 0.8, "gumbel": 1.25, "puct": 2.8}
"""How fast whole games go beside what is measured: the teacher alone on the machine, and the first two moves of an
untrained network's games with a Gumbel root. Later searches of a game find many answers kept from earlier ones, most of
all those of PUCT, which stay on few lines, and proofs end them. From the times of an hour's run, see docs/LOG.md; that
of PUCT is for 64 simulations."""

MEASURING = 8.0
"""Seconds over which playing is measured; learning is measured beside it."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One iteration: games of these searches are played while the network learns for so many steps."""

    games: int
    root: Literal["puct", "gumbel"]
    simulations: int
    noise_fraction: float
    steps: int

    def settings(self, config: SelfPlayConfig, seed: int) -> SelfPlayConfig:
        """A run's settings with the searches of this iteration."""
        searches = {name: getattr(self, name) for name in SEARCHES}
        return dataclasses.replace(config, seed=seed, **searches)


SEARCHES = ("root", "simulations", "noise_fraction")
"""What the searches of an iteration have of their own."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a run's weights depend on beside its settings."""

    minutes: float
    workers: int
    teacher_games: int
    iterations: tuple[Step, ...]
    measured: dict[str, float]

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return sum(step.steps for step in self.iterations)


def teacher(config: SelfPlayConfig, seed: int) -> RunSettings:
    """How the teacher plays the first games: many cheap labels."""
    return RunSettings(
        simulations=config.teacher_simulations,
        votes=1,
        opening_moves=config.opening_moves,
        seed=seed,
        shard_games=config.shard_games,
    )


def make(config: SelfPlayConfig, minutes: float, players: ahead.Players, learner: Learner, network: Path) -> Plan:
    """Measure playing and learning side by side, as the run will do them, and plan so many minutes."""
    settings = dataclasses.replace(config, simulations=ahead.MEASURED_SIMULATIONS)
    futures = players.begin(ahead.measure_search, settings, network, MEASURING)
    steps = _learning_rate(learner, futures)
    simulations = sum(ahead.results(futures))
    games = sum(ahead.results(players.begin(ahead.measure_teacher, teacher(config, 0), MEASURING / 4)))
    return planned(config, minutes, len(players.pools), games, simulations, steps)


def planned(
    config: SelfPlayConfig, minutes: float, workers: int, games: float, simulations: float, steps: float
) -> Plan:
    """The plan for so many minutes at these speeds a second: the teacher's games, simulations, the learner's steps."""
    number = max(3, round(ITERATIONS * math.sqrt(minutes)))
    seconds = 60 * minutes * SHARE
    each = seconds * (1 - config.teacher_share) / number
    whole, rows = config.shard_games, rows_a_game(config)

    def rounded(count: float) -> int:
        return max(1, round(count / whole)) * whole

    def step(iteration: int) -> Step:
        now = config.at((iteration - 1) / number)
        if iteration == 1:  # the teacher goes on while the network learns to play
            count = rounded(games * SPEED["teacher"] * each)
        else:
            speed = simulations * faster(now.root, now.simulations) / now.simulations / rows
            count = rounded(speed * each) if iteration < number else 0
        return Step(games=count, steps=max(1, round(steps * each)), **{name: getattr(now, name) for name in SEARCHES})

    return Plan(
        minutes=minutes,
        workers=workers,
        teacher_games=rounded(games * (workers + 1) / workers * seconds * config.teacher_share),
        iterations=tuple(step(iteration) for iteration in range(1, number + 1)),
        measured={
            "teacher_games_per_s": round(games, 2),
            "simulations_per_s": round(simulations),
            "steps_per_s": round(steps, 2),
        },
    )


def faster(root: str, simulations: int) -> float:
    """How many times as fast as what is measured such searches of whole games are; longer ones find more kept."""
    return SPEED[root] * ((simulations / 64) ** 0.25 if root == "puct" else 1.0)


def rows_a_game(config: SelfPlayConfig) -> float:
    """How many rows a game has, about: the longer its random opening, the sooner it is over.

    A tenth below what docs/LOG.md counts: openings of 0 to 20 stones give the 20 rows that `SPEED` was fitted to.
    """
    stones = np.array([len(runs.opening_moves(config, game)) for game in range(1200)])
    return float(np.maximum(36 - 1.7 * stones, 4).mean())


def write(path: Path, plan: Plan) -> None:
    """Store a plan."""
    write_json(path, dataclasses.asdict(plan))


def read(path: Path) -> Plan:
    """A stored plan. Raises UserError for what is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))  # edited, perhaps, where a byte order mark is written
        return Plan(**found | {"iterations": tuple(Step(**step) for step in found["iterations"])})
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; a run leaves its plan in {files.PLAN}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a plan of a run ({error})") from None


def line(plan: Plan) -> str:
    """The plan in words."""
    games = sum(step.games for step in plan.iterations[1:])
    stages = dict.fromkeys(f"{step.root}:{step.simulations}" for step in plan.iterations)
    return (
        f"plan for {plan.minutes:g} minutes: {plan.teacher_games + plan.iterations[0].games:,} games of the teacher, "
        f"then {games:,} of the network's search ({', '.join(stages)}), {plan.steps:,} steps in "
        f"{len(plan.iterations)} iterations"
    )


def _learning_rate(learner: Learner, futures: Any) -> float:
    """Steps a second of a learner, which is left as it was, until the futures are done."""
    from distill.training import checkpoint, step

    before = checkpoint.snapshot(learner.model)
    batch = next(batching.batches(_openings(learner.recipe.batch_size), learner.recipe.batch_size, seed=0, epoch=0))
    step.train_step(learner.model, batch, learner.recipe, 1.0)  # compiles
    began, made = time.monotonic(), 0
    while not made or not all(future.done() for future in futures):
        step.train_step(learner.model, batch, learner.recipe, 1.0)
        made += 1
    rate = made / (time.monotonic() - began)
    checkpoint.restore(learner.model, before)
    return rate


def _openings(number: int) -> Examples:
    """So many boards after random stones, all of whose columns are equal: what a step costs does not depend on them."""
    starts = [runs.opening(RunSettings(), game) for game in range(number)]
    return Examples(
        current=np.array([start.current for start in starts], np.uint64),
        mask=np.array([start.mask for start in starts], np.uint64),
        visits=np.ones((number, COLUMNS), np.int64),
        label=np.zeros(number, np.int8),
        value=np.zeros(number, np.float32),
        outcome=np.zeros(number, np.float32),
        count=np.ones(number, np.int32),
    )

"""The plan of an unattended run: minutes become games and steps, by measuring this machine.

Measured speeds are a guess: later searches, other work on the machine and the seconds that every iteration takes to
load, save and grade are not in them. So before each iteration `replanned` scales what is left to the time left, and the
plan on the disk is replaced before the iteration begins. The plan of a finished run has what it did; a run that follows
it (`--plan`) never looks at the clock, and has the same weights on the same kind of processor.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from distill.alphazero import run_files, workers
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, executors, say, write_json
from distill.common.executors import Workers
from distill.common.settings import Settings, as_json, build
from distill.datasets import batching
from distill.game import outputs
from distill.game.rules import COLUMNS
from distill.games import playing, runs
from distill.games.runs import RunSettings
from distill.mcts import puct
from distill.mcts.settings import MOST_PUCT_SIMULATIONS, UctSettings

if TYPE_CHECKING:
    from distill.training.step import TrainingModel

ITERATIONS = 2.6
"""Iterations of a run, divided by the square root of its minutes: 6 minutes make 6 iterations, an hour 20, a night 57.
"""

SHARE = 0.93
"""Share of the minutes that is planned for playing and learning; loading, saving and grading have the rest."""

SPEED = {"teacher": 0.8, "gumbel": 1.25, "puct": 2.8}
"""Speed of whole games, as a multiple of what is measured: the teacher alone on the machine, and the first two moves of
an untrained network's games with a Gumbel root. Searches of later moves find many positions in the cache, most of all
with a PUCT root, and proofs end them early. From the times of an hour's run; the factor of PUCT is for 64 simulations.
"""

LAST_SPEED = 1.3
"""Speed of training in the last iteration, during which no games are played, as a multiple of the speed before: 1.2 to
1.45 in runs of 3 to 60 minutes."""

MEASURED_SECONDS, MEASURED_SIMULATIONS = 8.0, 32
"""How long playing and learning are measured, side by side, and the simulations of the searches meanwhile."""


class Step(Settings):
    """One iteration: games of these searches are played while the network learns for so many steps."""

    games: int = Field(ge=0)
    root: Literal["puct", "gumbel"]
    simulations: int = Field(ge=1, le=MOST_PUCT_SIMULATIONS)
    noise_fraction: float = Field(ge=0, le=1)
    steps: int = Field(ge=1)


class Speeds(Settings):
    """What this machine was measured to do in a second; 0: not measured."""

    teacher_games_per_s: float = 0.0
    simulations_per_s: float = 0.0
    steps_per_s: float = 0.0


class Plan(Settings):
    """All that a run's weights depend on besides its settings.

    Attributes:
      measured: the speeds that the plan was made for.
      settled: the last iteration that is not planned again; None: all are settled.
    """

    minutes: float
    workers: int = Field(ge=1)
    teacher_games: int = Field(ge=1)
    iterations: tuple[Step, ...] = Field(min_length=1)
    measured: Speeds
    settled: int | None = None

    @property
    def steps(self) -> int:
        """Training steps of the whole run."""
        return sum(step.steps for step in self.iterations)


def teacher_settings(config: SelfPlayConfig, seed: int) -> RunSettings:
    """How the teacher plays the first games: many cheap labels, with one vote each."""
    shared = {name: getattr(config, name) for name in ("opening_moves", "shard_games")}
    return RunSettings(
        search=UctSettings(simulations=config.schedule.teacher_simulations, votes=1), seed=seed, **shared
    )


def make(config: SelfPlayConfig, pool: Workers, learner: TrainingModel, network: Path) -> Plan:
    """Measure playing and learning side by side, as the run will do them, and plan the config's minutes."""
    from distill.training import step

    say("measuring this machine, half a minute")
    # Measure search and learning at the same time, because the run does both at once.
    search = (measure_search, config, MEASURED_SECONDS, pool.file(network))
    searching = pool.begin(executors.results, pool, workers.alone, [search] * pool.processes)
    steps = step.steps_a_second(learner, _openings(learner.recipe.batch_size), searching.done)
    simulations = sum(searching.result())
    # The teacher plays alone at first.
    teacher = (measure_teacher, teacher_settings(config, 0), MEASURED_SECONDS / 4)
    games = sum(executors.results(pool, workers.alone, [teacher] * pool.processes))
    return planned(config, pool.processes, games, simulations, steps)


def planned(config: SelfPlayConfig, players: int, games: float, simulations: float, steps: float) -> Plan:
    """The plan for the config's minutes at these speeds a second: teacher games, simulations, training steps."""
    assert config.schedule.minutes is not None  # by the config's own check
    number = max(3, round(ITERATIONS * math.sqrt(config.schedule.minutes)))
    seconds = 60 * config.schedule.minutes * SHARE
    each, rows = seconds * (1 - config.schedule.teacher_share) / number, rows_per_game(config)

    def whole_shards(count: float) -> int:
        return max(1, round(count / config.shard_games)) * config.shard_games

    def step(iteration: int) -> Step:
        search = config.search_at((iteration - 1) / number)
        if iteration == 1:  # the teacher plays on while the network learns from its first games
            count = whole_shards(games * SPEED["teacher"] * each)
        # Later iterations play with the network; the last one only learns, faster.
        elif iteration < number:
            speed = simulations * speed_of(search["root"], search["simulations"]) / search["simulations"]
            count = whole_shards(speed / rows * each)
        else:
            count = 0
        learned = steps * each * (LAST_SPEED if iteration == number else 1.0)
        return Step(games=count, steps=max(1, round(learned)), **search)

    return Plan(
        minutes=config.schedule.minutes,
        workers=players,
        teacher_games=whole_shards(games * (players + 1) / players * seconds * config.schedule.teacher_share),
        iterations=tuple(step(iteration) for iteration in range(1, number + 1)),
        measured=Speeds(teacher_games_per_s=games, simulations_per_s=simulations, steps_per_s=steps),
        settled=1,
    )


MOST_CHANGE = 3.0
"""Largest factor by which an iteration is longer or shorter than the one before."""


def replanned(plan: Plan, number: int, done: float, took: float, waited: float, steps_took: float) -> Plan:
    """The plan with the iterations from `number` on scaled to the time left; itself if they are settled.

    Args:
      done: minutes since the plan was made.
      took: seconds of the iteration before.
      waited: those of them in which the network had learned and games were still played.
      steps_took: those of its training steps; the others load, evaluate, save and grade, and are the same in the next.
    """
    if plan.settled is None or number <= plan.settled:
        return plan
    left = plan.iterations[number - 1 :]
    seconds = max(0.0, 60 * (plan.minutes - done)) / len(left)
    before = plan.iterations[number - 2]

    def factor(planned: float, took: float) -> float:
        return min(MOST_CHANGE, max(1 / MOST_CHANGE, planned / max(took, 1e-3)))

    # All iterations but the last have as many steps as the one before, and games for the same time.
    fixed = took - waited - steps_took
    learning, playing = factor(seconds - fixed, steps_took), factor(seconds, took)

    def scaled(step: Step) -> Step:
        games = max(1, round(step.games * playing)) if step.games else 0
        steps = before.steps * learning * (1.0 if games else LAST_SPEED)
        return step.replace(games=games, steps=max(1, round(steps)))

    iterations = (*plan.iterations[: number - 1], *map(scaled, left))
    return plan.replace(iterations=iterations, settled=number)


def speed_of(root: str, simulations: int) -> float:
    """The factor of SPEED for such searches; longer ones find more positions in the cache."""
    return SPEED[root] * ((simulations / 64) ** 0.25 if root == "puct" else 1.0)


def rows_per_game(config: SelfPlayConfig) -> float:
    """About how many rows a game has: the longer its random opening, the sooner it is over.

    A tenth less than was counted, because SPEED was fitted with it.
    """
    stones = np.array([len(runs.opening_moves(config, game)) for game in range(1200)])
    return float(np.maximum(36 - 1.7 * stones, 4).mean())


def write(path: Path, plan: Plan) -> None:
    """Store a plan."""
    write_json(path, as_json(plan))


def read(path: Path) -> Plan:
    """A stored plan. Raises UserError where the file is missing or holds something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
        return build(Plan, found)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; a run leaves its plan in {run_files.PLAN}") from None
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: not a plan of a run ({str(error).removeprefix('--set ')})") from error


def line(plan: Plan) -> str:
    """The plan in words."""
    games = sum(step.games for step in plan.iterations[1:])
    searches = dict.fromkeys(f"{step.root} {step.simulations}" for step in plan.iterations)
    return (
        f"plan for {plan.minutes:g} minutes: {plan.teacher_games + plan.iterations[0].games:,} games of the teacher, "
        f"then {games:,} of the network's search ({', '.join(searches)}), {plan.steps:,} steps in "
        f"{len(plan.iterations)} iterations"
    )


# Measuring ------------------------------------------------------------------------------------------------------------


def measure_search(config: SelfPlayConfig, seconds: float, network: Path) -> float:
    """Simulations a second of this network's searches, without the time of compiling."""
    searched = config.search.replace(simulations=MEASURED_SIMULATIONS)
    evaluate = workers.evaluator(config, network)
    starts = [runs.opening(config, game) for game in range(config.machine.lanes)]
    current, mask = (np.array([getattr(each, name) for each in starts], np.uint64) for name in ("current", "mask"))

    def search() -> float:
        return float(puct.play_games(current, mask, searched, evaluate, steps=2).simulations.sum())

    with outputs.named(str(network)):
        return _rate(search, seconds)


def measure_teacher(settings: RunSettings, seconds: float) -> float:
    """Games a second of the teacher."""

    def play() -> float:
        playing.play_games(settings, 0, settings.shard_games)
        return settings.shard_games

    return _rate(play, seconds)


def _rate(work: Callable[[], float], seconds: float) -> float:
    """Work a second of `work()`, over about so many seconds, after a first call that compiles."""
    work()
    began, done = time.monotonic(), 0.0
    while time.monotonic() - began < seconds:
        done += work()
    return done / (time.monotonic() - began)


def _openings(number: int) -> batching.Examples:
    """So many boards after random stones. Their labels say nothing; the time of a step does not depend on them."""
    starts = [runs.opening(RunSettings(), game) for game in range(number)]
    zeros: dict[str, Any] = dict.fromkeys(("label", "value", "outcome"), np.zeros(number, np.float32))
    return batching.Examples(
        current=np.array([start.current for start in starts], np.uint64),
        mask=np.array([start.mask for start in starts], np.uint64),
        visits=np.ones((number, COLUMNS), np.int64),
        count=np.ones(number, np.int32),
        **zeros,
    )

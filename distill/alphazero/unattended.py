"""A run that needs no hand: the teacher plays first, then the network's own search, while the network learns.

    iteration   processes play                                  this process learns from
    0           the teacher: many cheap labels                  (nothing yet)
    1           the teacher                                     the games of iteration 0
    k           the search of the network after k − 1           the latest games before k
    the last    nothing                                         the latest games

What the learning rate, the games, their simulations and the steps are, the plan says (`plan.py`); no iteration looks at
a clock. The network that plays, and is kept, is the learner's, or with `--ema` the average of its weights over its
steps.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.alphazero import ahead, files, iteration, plan
from distill.alphazero.files import Metrics
from distill.alphazero.plan import Plan, Step
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, cores, duration, read_object, say, write_json
from distill.datasets import benchmark, canonical, replay
from distill.games import reader, runs, selfplay, shards
from distill.games.runs import RunSettings
from distill.mcts import cache
from distill.players.network import NetworkPlayer
from distill.players.player import seeds_for

if TYPE_CHECKING:
    import keras

    from distill.training.continual import Learner

TEACHER, SELF_PLAY, TRAINING = range(3)
"""What a seed of an iteration is for."""


@dataclass(frozen=True, kw_only=True)
class Unattended:
    """What the iterations of a run share."""

    config: SelfPlayConfig
    out: Path
    plan: Plan
    players: ahead.Players
    learner: Learner
    network: keras.Model
    judged: NetworkPlayer
    """`network` for the judge. Its graph is traced once and uses the current weights."""
    boards: benchmark.GradedBoards
    excluded: NDArray[np.uint64]

    def games(self, number: int) -> Path:
        """The folder of an iteration's games."""
        return files.iteration_folder(self.out, number) / files.GAMES


def workers(config: SelfPlayConfig) -> int:
    """Processes that play."""
    return config.workers or max(1, cores() - 1)


def learn_in_one_thread() -> None:
    """Have TensorFlow, where it has not started yet, take one thread: players have the other cores.

    With as many as they leave, weights would depend on the machine's cores and on `--workers`.
    """
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")


def run(
    config: SelfPlayConfig, out: Path, given: keras.Model | None, boards: benchmark.GradedBoards, planned: Plan | None
) -> str:
    """Make what is missing of the run; returns where it is, and what the last iteration came to.

    `given` is the network of a run that begins, and `planned` the plan that it follows; None: one is made.
    """
    began, finished = time.monotonic(), files.finished_iterations(out)
    files.settle(out, finished)
    if finished and len(finished) == len(plan.read(out / files.PLAN).iterations):
        return f"{out}: {line(finished[-1])} (finished before, nothing to do; --restart begins anew)"
    if files.still_learns(out, finished):
        _latest(config, out, plan.read(out / files.PLAN), len(finished) + 1)  # what is missing shows before playing
    networks.start_backend(aloud=True)
    from distill.networks import saved
    from distill.training import continual

    if given is not None:
        saved.save_network(given, out / files.INITIAL)
    network = saved.load_core(files.champion_file(out, finished))
    learner = continual.begin(network, config.recipe())
    if finished:
        continual.resume(learner, files.iteration_folder(out, len(finished)))
    for module in ("teacher", "puct"):
        cache.prepare(module)
    with ahead.Players(workers(config)) as players:
        followed = _plan(config, out, players, learner, planned)
        running = Unattended(
            config=config,
            out=out,
            plan=followed,
            players=players,
            learner=learner,
            network=network,
            judged=NetworkPlayer(name="network", predict=saved.predict_with(network)),
            boards=boards,
            excluded=canonical.excluded_keys("benchmark"),
        )
        if not finished:
            _teach_first(running, began)
        while len(finished) < len(followed.iterations):
            finished.append(_iterate(running, finished))
            say(f"{line(finished[-1])} · {duration(seconds_left(finished, followed, config.teacher_share))} left")
            files.settle(out, finished)
            if not config.keep_games:
                _forget(running, len(finished) + 1)
    return f"{out}: {line(finished[-1])}"


def _plan(config: SelfPlayConfig, out: Path, players: ahead.Players, learner: Learner, planned: Plan | None) -> Plan:
    """The run's plan: the one it has, the one given, or one made now by measuring this machine."""
    path = out / files.PLAN
    made = plan.read(path) if path.is_file() else planned
    if made is None:
        assert config.minutes is not None  # by the config's own check
        say("measuring this machine, half a minute")
        made = plan.make(config, config.minutes, players, learner, out / files.INITIAL)
    plan.write(path, made)
    say(plan.line(made))
    return made


def _teach_first(running: Unattended, began: float) -> None:
    """The teacher's first games, of which this process plays a part too: the network has nothing to learn from yet.

    With them begins the run's clock, which stood at `began` when the command did.
    """
    settings, folder = _teacher(running.config, 0), running.games(0)
    metrics = files.iteration_folder(running.out, 0) / files.METRICS
    games = running.plan.teacher_games
    say(f"the teacher plays {games:,} games")
    with shards.locked(folder), Progress(games, "games") as progress:
        futures = running.players.begin(ahead.teach, settings, games, folder, others=1)
        ahead.teach(settings, games, folder, (len(futures), len(futures) + 1), progress)
        ahead.results(futures)
        ahead.show_ended(progress, shards.checkpoints_of(settings, shards.tasks(settings, games), folder))
        shards.declare(runs.identity(settings), shards.plan(settings, games, folder).done, folder)
    if not metrics.is_file():
        write_json(metrics, {"minutes": round((time.monotonic() - began) / 60, 2)})


def _iterate(running: Unattended, finished: Sequence[Metrics]) -> Metrics:
    """One iteration, or what a killed process has left of it; returns its metrics, written last."""
    number = len(finished) + 1
    step, folder = running.plan.iterations[number - 1], files.iteration_folder(running.out, number)
    with shards.locked(running.games(number)):
        futures = _begin_playing(running, number, step)
        learned = _learn(running, number, step)
        learning, learned_at = learned.pop("seconds", 0.0), time.monotonic()
        judged = iteration.judged(running.judged, running.boards)
        judging = time.monotonic() - learned_at
        if not all(future.done() for future in futures):
            say(f"waiting for the games of iteration {number}")
        played = ahead.results(futures)
        manifest = _declare(running, number, step, [name for name, _ in played])
    seconds = learning + time.monotonic() - learned_at
    before = finished[-1] if finished else read_object(files.iteration_folder(running.out, 0) / files.METRICS)
    metrics = {
        "iteration": number,
        "games": manifest["games"],
        "rows": manifest["rows"],
        "simulations": step.simulations,
        **learned,
        "score": None,
        "accepted": True,
        **judged,
        "minutes": round(before.get("minutes", 0.0) + seconds / 60, 2),
        "seconds": {
            "learning": round(learning, 1),
            "judge": round(judging, 1),
            "waiting": round(seconds - learning - judging, 1),
            "playing": round(float(np.mean([spent for _, spent in played])) if played else 0.0, 1),
        },
    }
    write_json(folder / files.METRICS, metrics)
    return metrics


def _begin_playing(running: Unattended, number: int, step: Step) -> list[Future[Any]]:
    """The iteration's games, played by the teacher in the first one, then by the network that the last one left."""
    folder = running.games(number)
    if not step.games:
        return []
    if number == 1:
        return running.players.begin(ahead.teach, _teacher(running.config, 1), step.games, folder)
    network = files.iteration_folder(running.out, number - 1) / files.CANDIDATE
    settings = _settings(running.config, running.plan, number)
    return running.players.begin(ahead.play, settings, network, step.games, folder)


def _declare(running: Unattended, number: int, step: Step, names: Sequence[str]) -> dict[str, Any]:
    """The manifest of an iteration's games, all of whose shards are there; `names` are what their network is called."""
    folder = running.games(number)
    if not step.games:
        return {"games": 0, "rows": 0}
    run = _identity(running.config, running.plan, number, names[0])
    return shards.declare(run, shards.plan(running.config, step.games, folder, run=run).done, folder)


def _identity(config: SelfPlayConfig, followed: Plan, number: int, network: str = "") -> dict[str, Any]:
    """What an iteration's games are played with: the teacher's search, later that of a network with this name."""
    if number <= 1:
        return runs.identity(_teacher(config, number))
    return selfplay.identity(_settings(config, followed, number), network)


def _seed(config: SelfPlayConfig, number: int, purpose: int) -> int:
    return int(seeds_for(config.seed, number, purpose)[0])


def _teacher(config: SelfPlayConfig, number: int) -> RunSettings:
    return plan.teacher(config, _seed(config, number, TEACHER))


def _settings(config: SelfPlayConfig, followed: Plan, number: int) -> SelfPlayConfig:
    return followed.iterations[number - 1].settings(config, _seed(config, number, SELF_PLAY))


def _learn(running: Unattended, number: int, step: Step) -> dict[str, Any]:
    """Let the learner learn from the latest games before this iteration, unless it has, in so many "seconds"."""
    from distill.networks import saved
    from distill.training import checkpoint, continual, schedule

    began = time.monotonic()
    config, folder = running.config, files.iteration_folder(running.out, number)
    found = checkpoint.load(folder)
    if found is None:
        table = replay.table(_latest(config, running.out, running.plan, number), running.excluded)
        before = sum(each.steps for each in running.plan.iterations[: number - 1])

        def rate(done: int) -> float:
            return schedule.cosine(config.recipe().lr, before + done, running.plan.steps)

        learned = continual.learn(running.learner, table, rate, _seed(config, number, TRAINING), step.steps)
        state = {"replay_boards": len(table), "learning_rate": rate(step.steps - 1), **learned}
        state["seconds"] = time.monotonic() - began
        checkpoint.save(folder, running.learner.model, state)
    else:
        state = found[1]  # with the time that the process which learned it took
        continual.resume(running.learner, folder)
    running.learner.give(running.network)
    saved.save_network(running.network, folder / files.CANDIDATE)
    return state


def _latest(config: SelfPlayConfig, out: Path, followed: Plan, number: int) -> list[reader.ShardFile]:
    """The shards that an iteration learns from. Raises UserError where games are missing, or of another kind."""
    finished = files.finished_iterations(out)
    opened = partial(files.verified_games, out, finished, partial(_identity, config, followed))
    played, most = _window(config, followed, number, finished)
    return replay.latest(played, most, config.replay_games, open_run=opened)


def _window(
    config: SelfPlayConfig, followed: Plan, number: int, finished: Sequence[Metrics]
) -> tuple[list[int], int | None]:
    """The earlier iterations whose games an iteration learns from, oldest first, and of how many latest rows of them.

    The rows are a share of the network's own so far, and at least `replay_rows`; None: all.
    """
    rows = {each["iteration"]: each["rows"] for each in finished}
    most = config.replay_rows
    if most is not None and config.replay_share is not None:
        own = sum(rows[each] for each in range(2, number))  # after the teacher's
        most = max(most, int(config.replay_share * own))
    found: list[int] = []
    counted = 0
    for each in range(number - 1, -1, -1):
        if each == 0 or followed.iterations[each - 1].games:
            found.insert(0, each)
            counted += rows.get(each, 0)
        if most is not None and counted > most:
            break
    return found, most


def _forget(running: Unattended, number: int) -> None:
    """Delete the games that no iteration from this one on learns from: a window's beginning only moves forward."""
    kept, _ = _window(running.config, running.plan, number, files.finished_iterations(running.out))
    for each in set(range(number)) - {*kept}:
        shutil.rmtree(running.games(each), ignore_errors=True)


def line(last: Metrics) -> str:
    """What an iteration came to."""
    judged = "".join(
        f" · {title} {last[prefix + 'optimal']:.1%} optimal, {last[prefix + 'outcome']:.1%} outcome"
        for title, prefix in iteration.JUDGED_SETS.items()
        if prefix + "optimal" in last
    )
    return (
        f"iteration {last['iteration']} after {last['minutes']:.0f} minutes: {last['rows']:,} rows of "
        f"{last['simulations']} simulations · loss {last['training_loss']:.3f}{judged}"
    )


def seconds_left(finished: Sequence[Metrics], followed: Plan, teacher_share: float) -> float:
    """Time left of a run: each iteration takes its equal part of the plan, or what it took on average so far."""
    number = len(followed.iterations)
    each = followed.minutes * (1 - teacher_share) / number
    if len(finished) > 1:  # the first one includes set-up and the teacher's games
        each = (finished[-1]["minutes"] - finished[0]["minutes"]) / (len(finished) - 1)
    return float(60 * each * (number - len(finished)))

"""The self-play loop: play, learn, meet the champion in an arena, grade, publish; again and again.

The schedule says what an iteration plays and learns, and whether playing overlaps with learning. Every step first looks
for what an interrupted process has left of it: shards, and the learner's checkpoint.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill import networks
from distill.alphazero import grades, plan, run_files, schedule, workers
from distill.alphazero.run_files import Metrics
from distill.alphazero.schedule import Schedule
from distill.common import read_object, run_folder, say, write_json
from distill.common.executors import Workers
from distill.datasets import benchmark, canonical, replay
from distill.games import reader
from distill.games.runs import RunSettings
from distill.mcts import compiling

if TYPE_CHECKING:
    import keras

    from distill.training.step import TrainingModel


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A run in this process.

    Attributes:
      network: takes the weights that were learned, to be graded and saved.
      grade: the metrics of `network`.
      finished: the metrics of the finished iterations.
    """

    out: Path
    schedule: Schedule
    workers: Workers
    learner: TrainingModel
    network: keras.Model
    grade: Callable[[], dict[str, float]]
    finished: list[Metrics] = field(default_factory=list)

    def folder(self, number: int) -> Path:
        """The folder of an iteration."""
        return run_files.iteration_folder(self.out, number)

    @property
    def champion(self) -> Path:
        """The file of the network that plays."""
        return run_files.champion_file(self.out, self.finished)


def run(
    timetable: Schedule,
    folder: run_folder.Run,
    initial: keras.Model | None,
    boards: benchmark.GradedBoards,
    pool: Workers,
) -> str:
    """Run the iterations that are missing; returns the last line. The caller holds the folder and stops the workers.

    Args:
      timetable: a run that is to follow a plan, but has none yet, makes one.
      initial: the network of a new run; None: the run is resumed.
    """
    out, config = Path(str(folder.storage)), timetable.config
    finished = [] if folder.starts else run_files.finished_iterations(out)
    run_files.publish(folder, finished)
    if 0 < len(timetable) <= len(finished):
        return f"{result(out, finished)} (finished before, nothing to do)"
    if run_files.still_learns(out, finished):
        training_games(timetable, out, finished, has_played=False)  # what is missing shows before anything is played
    networks.start_backend(aloud=True)
    from distill.networks import saved
    from distill.training import continual

    folder.begin()  # everything has been checked
    if initial is not None:
        saved.save_network(initial, out / run_files.INITIAL)
    # The learner continues from its own checkpoint, which is not the champion where a candidate was rejected.
    network = saved.load_core(run_files.champion_file(out, finished))
    learner = continual.begin(network, config.recipe())
    if finished:
        continual.resume(learner, run_files.iteration_folder(out, len(finished)))
    for search in ("uct", "puct") if config.is_planned else ("puct",):
        compiling.prepare(search)
    if config.is_planned:
        # Without a stored plan, measure this machine and store one.
        followed = timetable.plan or plan.make(config, pool, learner, out / run_files.INITIAL)
        plan.write(out / run_files.PLAN, followed)
        say(plan.line(followed))
        timetable = Schedule(config=config, plan=followed)
    began = time.monotonic()  # what came before is no part of the minutes
    grade = grades.grader(network, boards)
    loop = Loop(
        out=out, schedule=timetable, workers=pool, learner=learner, network=network, grade=grade, finished=finished
    )
    if timetable.overlaps and not finished:
        play_first(loop, began)
        began = time.monotonic()
    while len(finished) < len(timetable):
        # Without a plan, minutes only end the run between two iterations.
        minutes = None if config.is_planned else config.schedule.minutes
        if minutes and finished and finished[-1]["minutes"] >= minutes:
            break
        loop = planned_again(loop)
        finished.append(iterate(loop, began))
        began = time.monotonic()
        say(line(finished[-1]) + time_left(loop))
        run_files.publish(folder, finished)
    return result(out, finished)


def planned_again(loop: Loop) -> Loop:
    """The loop with a plan for the time left, stored before it is followed; a given plan stays as it is."""
    followed = loop.schedule.plan
    if not (followed and loop.finished and loop.schedule.config.schedule.plan is None):
        return loop
    last = loop.finished[-1]
    times = (last[name] for name in ("minutes", "seconds", "waited", "step_seconds"))
    new = plan.replanned(followed, last["iteration"] + 1, *times)
    plan.write(loop.out / run_files.PLAN, new)
    return dataclasses.replace(loop, schedule=dataclasses.replace(loop.schedule, plan=new))


def time_left(loop: Loop) -> str:
    """Minutes left by the plan, in words."""
    followed, last = loop.schedule.plan, loop.finished[-1]
    if not followed or last["iteration"] == len(followed.iterations) or loop.schedule.config.schedule.plan:
        return ""
    return f" · {max(0.0, followed.minutes - last['minutes']):.1f} minutes left"


def play_first(loop: Loop, began: float) -> None:
    """Play the games of iteration 0. This process has nothing to learn yet, so one more worker plays."""
    games, metrics = games_of(loop, 0), loop.folder(0) / run_files.METRICS
    say(f"the teacher plays {games.number:,} games")
    with games.opened() as folder, workers.start(loop.schedule.config, loop.workers.number + 1) as pool:
        todo = games.plan(folder).todo
        folder.begin()
        workers.finish(workers.begin(pool, games, todo), games, folder)
    if not metrics.is_file():
        minutes = round((time.monotonic() - began) / 60, 2)
        write_json(metrics, {"minutes": minutes, "games_hash": run_files.games_hash(games.folder)})


def games_of(loop: Loop, number: int) -> workers.Games:
    """The games of an iteration: who plays them, and where."""
    step, folder = loop.schedule.iteration(number), loop.folder(number) / run_files.GAMES
    if isinstance(step.settings, RunSettings):
        return workers.of_teacher(step.settings, step.games, folder)
    return workers.of_network(step.settings, step.games, folder, loop.champion)


def iterate(loop: Loop, began: float) -> Metrics:
    """One iteration, or what an interrupted process has left of it; returns its metrics, written last.

    `began` is the time of `time.monotonic()` at which the one before ended.
    """
    config, number = loop.schedule.config, len(loop.finished) + 1
    folder, games = loop.folder(number), games_of(loop, number)
    played = {"games": 0, "rows": 0, "games_hash": None}
    with games.opened() if games.number else nullcontext() as record:
        # Start playing; a planned run learns meanwhile, others wait for the games first.
        playing = None
        if record:
            todo = games.plan(record).todo
            record.begin()
            playing = workers.begin(loop.workers, games, todo)
            if not loop.schedule.overlaps:
                workers.finish(playing, games, record)
        before_learning = time.monotonic()
        learned = learn(loop)
        after_learning = time.monotonic()
        # Let the candidate meet the champion, and grade it.
        arena: dict[str, Any] = {"score": None, "distinct_games": None}
        if config.arena.gate is not None:
            seed = loop.schedule.seed(number, schedule.ARENA)
            arena = workers.arena(loop.workers, config, folder / run_files.CANDIDATE, loop.champion, seed)
        graded = loop.grade()
        before_waiting = time.monotonic()
        if record and playing:
            played = workers.finish(playing, games, record) | {"games_hash": run_files.games_hash(games.folder)}
    earlier = loop.finished[-1] if loop.finished else read_object(loop.folder(0) / run_files.METRICS)
    # Learning counts by its own clock, which includes what an interrupted process had done.
    seconds = before_learning - began + learned["training_seconds"] + time.monotonic() - after_learning
    metrics = {
        "iteration": number,
        **played,
        "simulations": games.settings.search.simulations,
        **learned,
        **arena,
        "accepted": config.arena.gate is None or arena["score"] >= config.arena.gate,
        **graded,
        "seconds": round(seconds, 1),
        "waited": round(time.monotonic() - before_waiting, 1),
        "minutes": round(earlier.get("minutes", 0.0) + seconds / 60, 2),
    }
    write_json(folder / run_files.METRICS, metrics)
    return metrics


def learn(loop: Loop) -> dict[str, Any]:
    """Learn from the latest games, unless a checkpoint shows that this is done; saves the candidate."""
    from distill.networks import saved
    from distill.training import checkpoint, continual
    from distill.training.step import copy_learned

    began, timetable, number = time.monotonic(), loop.schedule, len(loop.finished) + 1
    folder, step = loop.folder(number), timetable.iteration(number)
    # A checkpoint in the folder of this iteration says that it has learned already.
    found = checkpoint.load(folder)
    if found:
        state = found[1]
        continual.resume(loop.learner, folder)
    else:
        latest = training_games(timetable, loop.out, loop.finished)
        table = replay.table(latest, canonical.excluded_keys("benchmark"))
        drawn = replay.sample(table, timetable.config.replay.boards, timetable.seed(number, schedule.SAMPLE))
        say("training the network")
        seed = timetable.seed(number, schedule.TRAINING)
        state = {"replay_boards": len(table)}
        state |= continual.learn(loop.learner, drawn, step.learning_rate, seed, step.steps)
        state["learning_rate"] = step.learning_rate(state["steps"] - 1)
        state["training_seconds"] = round(time.monotonic() - began, 1)
        checkpoint.save(folder, loop.learner, state)
    copy_learned(loop.learner, loop.network)
    saved.save_network(loop.network, folder / run_files.CANDIDATE)
    return state


def training_games(
    timetable: Schedule, out: Path, finished: list[Metrics], *, has_played: bool = True
) -> list[reader.ShardFile]:
    """The shards of the latest games, from which the next iteration learns. Raises UserError where games are missing.

    Deletes older games where the config does not keep them, because the window only moves forward.

    Args:
      has_played: whether the games of the next iteration are there, where it learns from them.
    """
    config, number, rows = timetable.config, len(finished) + 1, timetable.config.replay.rows
    if rows is not None and config.replay.share is not None:
        # A long run learns from a share of its rows, which exceeds the fixed window at some time.
        rows = max(rows, int(config.replay.share * sum(each["rows"] for each in finished[timetable.overlaps :])))
    used: list[int] = []

    def opened(each: int) -> reader.Run:
        used.append(each)
        return run_files.verified_games(out, each)

    there = [each for each in timetable.learns_from(number) if has_played or each < number]
    ahead = 0 if has_played or timetable.overlaps else config.schedule.games
    latest = replay.latest(there, rows, config.replay.games, open_run=opened, ahead=ahead)
    # The window only moves forward, so games older than it are never read again.
    if not config.replay.keep_games:
        for each in range(min(used, default=0)):
            shutil.rmtree(run_files.iteration_folder(out, each) / run_files.GAMES, ignore_errors=True)
    return latest


def line(last: Metrics) -> str:
    """One iteration in words."""
    verdict = "accepted" if last["accepted"] else "rejected"
    arena = "" if last["score"] is None else f" · arena {last['score']:.1%} {verdict}"
    return (
        f"iteration {last['iteration']} after {last['minutes']:.1f} minutes: {last['rows']:,} rows of "
        f"{last['simulations']} simulations · loss {last['training_loss']:.3f}{arena}{grades.line(last)}"
    )


def result(out: Path, finished: list[Metrics]) -> str:
    """Where the run is, and how its last iteration went."""
    arenas = [each["accepted"] for each in finished if each["score"] is not None]
    accepted = f" ({sum(arenas)} of {len(arenas)} accepted)" if arenas else ""
    return f"{out}: {line(finished[-1])}{accepted}"

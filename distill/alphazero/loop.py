"""The self-play loop: play, learn, meet the champion in an arena, publish; again and again.

    for each iteration:
        play      its player adds shards until its end: a count of games, or a clock
        learn     the network takes steps until the end, meanwhile (with a clock) or afterwards
        arena     the candidate meets the champion, where there is a gate
        publish   best.keras, curves and the record

An interrupted run resumes from its shards and from its checkpoint, which is written when an iteration has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from distill import networks
from distill.alphazero import games, grades, iterations, run_files, workers
from distill.alphazero.iterations import End
from distill.alphazero.run_files import Metrics
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, run_folder, say
from distill.common.executors import Workers
from distill.datasets import canonical, replay
from distill.games import schema
from distill.mcts import compiling
from distill.players.network import NetworkPlayer
from distill.training import checkpoint

if TYPE_CHECKING:
    import keras

    from distill.alphazero.on_device import SelfPlay
    from distill.training.step import TrainingModel


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A run in this process.

    Attributes:
      count: the number of iterations.
      repeated: the ends of the iterations of the run that is repeated, if one is.
      network: takes the weights that were learned, to be graded and saved.
      grade: the metrics of `network`.
      device: plays and learns on an accelerator; None: workers play.
      finished: the metrics of the finished iterations.
      now: the clock, in seconds.
    """

    out: Path
    config: SelfPlayConfig
    count: int
    repeated: Sequence[End]
    workers: Workers
    learner: TrainingModel
    network: keras.Model
    grade: Callable[[], dict[str, float]]
    device: SelfPlay | None
    now: Callable[[], float]
    finished: list[Metrics] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The iteration to run, counted from 1."""
        return len(self.finished) + 1

    @property
    def champion(self) -> Path:
        """The file of the network that plays."""
        return self.out / run_files.BEST

    @property
    def candidate(self) -> Path:
        """The file of the network that has learned in this iteration."""
        return run_files.candidate(self.out, self.number)


def run(
    config: SelfPlayConfig,
    folder: run_folder.Run,
    pool: Workers,
    repeated: Sequence[End] = (),
    now: Callable[[], float] = time.monotonic,
) -> str:
    """Run the iterations that are missing; returns the last line. The caller holds the folder and stops the workers.

    `repeated` and `now` are those of `Loop`.
    """
    out, count = Path(str(folder.storage)), iterations.number_of(config, repeated)
    stored = None if folder.starts else checkpoint.load(out)
    begun = folder.result or run_files.games_folder(out, 2).exists()
    if begun and stored is None and not folder.starts:
        raise UserError(f"{out / checkpoint.FILE}: missing, though the run has finished iterations; {run_files.LOST}")
    arrays, state = stored or ([], {"finished": []})
    finished = state["finished"]
    if finished:  # a killed process may not have come to it
        run_files.publish(folder, finished, count)
    if len(finished) >= count:
        return f"{result(out, finished)} (finished before, nothing to do)"
    for earlier in finished:  # what is missing shows before anything is played
        if earlier["games_hash"]:  # else nobody played, or the games stayed on a device
            run_files.verify_games(out, earlier["iteration"], earlier["games_hash"])
    networks.start_backend(aloud=True)
    from distill.networks import saved
    from distill.training import continual, step, tensorboard

    log = tensorboard.TensorBoard(out, "iteration") if config.machine.log == "tensorboard" else None
    boards = grades.boards(config.arena.eval_boards)
    initial = step.initial_network(config.arch, config.init, True, config.seed) if stored is None else None
    folder.begin()  # everything has been checked
    if initial is not None:
        saved.save_network(initial, out / run_files.BEST)
    network = saved.load_core(out / run_files.BEST)
    learner = continual.begin(network, config.recipe())
    if stored is not None:  # not the champion where a candidate was rejected
        checkpoint.restore(learner, arrays, out)
    # Follows later changes of the weights, so its graph is traced once.
    player = NetworkPlayer(name="candidate", predict=saved.predict_with(network))
    device = None
    if config.machine.device_lanes:
        from distill.alphazero.on_device import SelfPlay

        device = SelfPlay(learner, config, now)
        device.warm_up()
    if device is None or config.arena.gate is not None:
        for search in ("uct", "puct") if config.schedule.teacher_share else ("puct",):
            compiling.prepare(search)
    if config.is_timed:  # load Keras and trace graphs now
        if device is None:
            workers.warm_up(pool, config, out / run_files.BEST)
        grades.grade(player, boards)
    loop = Loop(
        out=out, config=config, count=count, repeated=repeated, workers=pool, learner=learner, network=network,
        grade=partial(grades.grade, player, boards), device=device, now=now, finished=finished,
    )  # fmt: skip
    began = now()  # what came before is no part of the minutes
    while loop.number <= count:
        finished.append(iterate(loop, began))
        began = now()
        say(line(finished[-1], count))
        run_files.publish(folder, finished, count)
        if log:
            log.on_epoch_end(len(finished), finished[-1])
    return result(out, finished)


def iterate(loop: Loop, began: float) -> Metrics:
    """One iteration, which `began` at this time by `loop.now`; returns its metrics."""
    from distill.networks import saved
    from distill.training.step import copy_learned

    config, number, earlier = loop.config, loop.number, loop.finished[-1] if loop.finished else {}
    end = End(games=config.schedule.games)
    if loop.repeated:
        end = loop.repeated[number - 1]
    elif config.is_timed:
        end = iterations.by_clock(config, number, loop.count, earlier, began, loop.now)
    share = iterations.share_gone(config, number, loop.count)
    player = None
    if end.plays and not loop.device:
        player = iterations.player(config, number, share, loop.champion)

    with games.playing(loop.workers, player, end, run_files.games_folder(loop.out, number)) as finish:
        if not config.is_timed:
            finish()
        learned = learn(loop, end, share)
        if learned["steps"]:
            copy_learned(loop.learner, loop.network)
            loop.candidate.parent.mkdir(parents=True, exist_ok=True)
            saved.save_network(loop.network, loop.candidate)
        played = finish()
    accepted, score = arena(loop, learned["steps"])
    metrics = {
        "iteration": number,
        **played,
        "simulations": player.settings.search.simulations if player else 0,
        **learned,
        "score": score,
        "accepted": accepted,
        **loop.grade(),
    }
    seconds = loop.now() - began
    metrics |= {"seconds": round(seconds, 1), "minutes": round(earlier.get("minutes", 0.0) + seconds / 60, 3)}
    metrics["saving_seconds"] = 0.0 if end.at is None else round(loop.now() - end.at, 1)
    checkpoint.save(loop.out, loop.learner, {"finished": [*loop.finished, metrics]})
    return metrics


def learn(loop: Loop, end: End, share: float) -> Metrics:
    """Learn from the latest games until the end of the iteration, after this share of the time; returns the metrics."""
    from distill.training import continual

    number, rate = loop.number, iterations.learning_rate(loop.config, loop.number, share)
    if loop.device:
        state = loop.device.run(loop.config.search_at(share), rate, end.is_over)
        return state | {"learning_rate": rate}
    if loop.config.is_timed and number == 1:  # there are no games to learn from
        return {"training_loss": None, "learning_rate": None, "steps": 0, "replay_boards": 0, "step_seconds": 0.0}
    table = replay.table(training_games(loop), canonical.excluded_keys("benchmark"))
    purposes = iterations.SAMPLE, iterations.TRAINING
    sample, training = (iterations.seed_of(loop.config, number, purpose) for purpose in purposes)
    drawn = replay.sample(table, loop.config.replay.boards, sample)
    say(f"iteration {number}: training the network")
    state = continual.learn(loop.learner, drawn, rate, training, end.steps, end.is_over)
    return state | {"learning_rate": rate, "replay_boards": len(table)}


def training_games(loop: Loop) -> list[schema.Shard]:
    """The shards of the latest games."""
    window, rows = loop.config.replay, loop.config.replay.rows
    if rows is not None and window.share is not None:
        # A long run learns from a share of the networks' rows, which exceeds the fixed window at some time.
        teacher = iterations.teacher_plays
        by_networks = [last["rows"] for last in loop.finished if not teacher(loop.config, last["iteration"])]
        rows = max(rows, int(window.share * sum(by_networks)))
    with_games = [metrics["iteration"] for metrics in loop.finished if metrics["games"]]
    if not loop.config.is_timed:  # with a clock, this iteration is still being played
        with_games.append(loop.number)
    return replay.latest([run_files.games_folder(loop.out, number) for number in with_games], rows, window.games)


def arena(loop: Loop, steps: int) -> tuple[bool, float | None]:
    """Whether the candidate, which took so many steps, becomes the champion, and its score where there is a gate."""
    config = loop.config
    if config.arena.gate is None or not steps:
        return bool(steps), None
    seed = iterations.seed_of(config, loop.number, iterations.ARENA)
    score = workers.arena(loop.workers, config, loop.candidate, loop.champion, seed)
    return score >= config.arena.gate, score


def line(last: Metrics, count: int) -> str:
    """One of `count` iterations in words."""
    learned = "" if last["training_loss"] is None else f" · {last['steps']:,} steps, loss {last['training_loss']:.3f}"
    verdict = "accepted" if last["accepted"] else "rejected"
    arena = "" if last["score"] is None else f" · arena {last['score']:.1%} {verdict}"
    return (
        f"iteration {last['iteration']} of {count} after {last['minutes']:.1f} minutes: {last['games']:,} games of "
        f"{last['simulations']} simulations{learned}{arena}{grades.line(last)}"
    )


def result(out: Path, finished: list[Metrics]) -> str:
    """Where the run is, and how its last iteration went."""
    arenas = [metrics["accepted"] for metrics in finished if metrics["score"] is not None]
    accepted = f" ({sum(arenas)} of {len(arenas)} accepted)" if arenas else ""
    return f"{out}: {line(finished[-1], len(finished))}{accepted}"

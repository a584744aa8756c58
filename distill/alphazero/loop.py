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
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from distill import networks
from distill.alphazero import grades, iterations, run_files, workers
from distill.alphazero.iterations import End
from distill.alphazero.run_files import Metrics
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, run_folder, say
from distill.common.executors import Workers
from distill.networks import finding
from distill.players.network import NetworkPlayer
from distill.training import checkpoint, identity

if TYPE_CHECKING:
    import keras

    from distill.training.step import TrainingModel


class Play(Protocol):
    """Plays and learns: with workers (`workers.py`), or on an accelerator (`on_device.py`)."""

    def warm_up(self) -> None:
        """Compile what the iterations need, so that it takes none of their time."""

    def iterate(self, number: int, end: End, share: float, finished: Sequence[Metrics]) -> Metrics:
        """Play and learn until the end of an iteration; returns the metrics of its games, then of its training.

        Args:
          share: the share of the time that is gone.
          finished: the metrics of the finished iterations.

        Raises DataError where workers died at every try, and UserError if the loss becomes NaN or infinite.
        """


def run(
    config: SelfPlayConfig,
    folder: run_folder.Run,
    pool: Workers,
    repeated: Sequence[End] = (),
    now: Callable[[], float] = time.monotonic,
) -> str:
    """Run the iterations that are missing; returns the last line. The caller holds the folder and stops the workers.

    Args:
      repeated: the ends of the iterations of the run that is repeated, if one is.
      now: the clock, in seconds.
    """
    out, count = Path(str(folder.storage)), iterations.count_of(config, repeated)
    variables, finished = resumed(folder)
    if finished:  # a killed process may not have come to it
        run_files.publish(folder, config, finished, count)
    if len(finished) >= count:
        return identity.finished_line(out, result(out, finished))
    for earlier in finished:  # what is missing shows before anything is played
        if earlier["games_hash"]:  # else nobody played, or the games stayed on a device
            run_files.verify_games(out, earlier["iteration"], earlier["games_hash"])
    networks.start_backend(aloud=True)
    from distill.networks import saved
    from distill.training import tensorboard

    log = tensorboard.TensorBoard(out, "iteration") if config.machine.log == "tensorboard" else None
    boards = grades.boards(config.arena.eval_boards)
    network, learner = begun(folder, config, variables)
    # Follows later changes of the weights, so its graph is traced once.
    player = NetworkPlayer(name="candidate", predict=saved.predict_with(network))
    if config.machine.device_lanes:
        from distill.alphazero.on_device import DevicePlay

        play: Play = DevicePlay(learner, config, now)
    else:
        play = workers.WorkerPlay(out=out, config=config, pool=pool, learner=learner)
    play.warm_up()
    if config.is_timed:  # trace the graph now
        grades.grade(player, boards)
    began = now()  # what came before is no part of the minutes
    for number in range(len(finished) + 1, count + 1):
        earlier = finished[-1] if finished else {}
        end = repeated[number - 1] if repeated else iterations.end_of(config, number, count, earlier, began, now)
        learned = play.iterate(number, end, iterations.share_gone(config, number, count), finished)
        # From here on, because the time by which games or a step overran the end is gone already.
        over = now()
        accepted, score = judged(out, config, pool, learner, network, number) if learned["steps"] else (False, None)
        # No two parts have a name in common; their order is that of the columns of the history.
        metrics = {"iteration": number, **learned, "score": score, "accepted": accepted, **grades.grade(player, boards)}
        ended = now()
        minutes = earlier.get("minutes", 0.0) + (ended - began) / 60
        metrics |= {"seconds": round(ended - began, 1), "minutes": round(minutes, 3)}
        metrics["saving_seconds"] = round(ended - over, 1)
        finished.append(metrics)
        checkpoint.save(out, learner, {"finished": finished})
        began = ended  # the checkpoint has these metrics, so its time belongs to the next iteration
        say(line(metrics, count))
        run_files.publish(folder, config, finished, count)
        if log:
            log.on_epoch_end(number, metrics)
    return result(out, finished)


def resumed(folder: run_folder.Run) -> tuple[checkpoint.Values | None, list[Metrics]]:
    """The learner's variables in the checkpoint, and the metrics of the finished iterations; None and [] for a new run.

    Raises UserError where the checkpoint is damaged, or missing though an iteration was finished.
    """
    if folder.starts:
        return None, []
    out = Path(str(folder.storage))
    stored = checkpoint.load(out)
    # Iteration 2 begins only after the checkpoint of iteration 1.
    if stored is None and (folder.result or run_files.games_folder(out, 2).exists()):
        raise UserError(f"{out / checkpoint.FILE}: missing, though the run has finished iterations; {run_files.LOST}")
    return (stored[0], stored[1]["finished"]) if stored else (None, [])


def begun(
    folder: run_folder.Run, config: SelfPlayConfig, variables: checkpoint.Values | None
) -> tuple[keras.Model, TrainingModel]:
    """Begin the folder, in which everything has been checked; returns its champion, and the network that learns.

    `variables` are those of the learner in the checkpoint, if there is one.
    """
    from distill.networks import saved
    from distill.training import continual, step

    out = Path(str(folder.storage))
    if variables is None:
        sha256 = folder.ours.identity["init"]
        initial = step.initial_network(config.arch, config.init, True, config.seed, sha256)
    folder.begin()
    if variables is None:
        saved.save_network(initial, out / finding.BEST)
    network = saved.load_core(out / finding.BEST)
    learner = continual.begin(network, config.recipe())
    if variables is not None:  # not the champion where a candidate was rejected
        checkpoint.restore(learner, variables, out)
    return network, learner


def judged(
    out: Path, config: SelfPlayConfig, pool: Workers, learner: TrainingModel, network: keras.Model, number: int
) -> tuple[bool, float | None]:
    """Save the candidate, the network that has learned in an iteration, and let it meet the champion.

    Returns whether it becomes the champion, and its score where there is a gate.
    """
    from distill.networks import saved
    from distill.training.step import copy_learned

    candidate, gate = run_files.candidate(out, number), config.arena.gate
    copy_learned(learner, network)
    candidate.parent.mkdir(parents=True, exist_ok=True)
    saved.save_network(network, candidate)
    if gate is None:
        return True, None
    seed = iterations.seed_of(config, number, iterations.ARENA)
    score = workers.arena(pool, config, candidate, out / finding.BEST, seed)
    return score >= gate, score


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

"""The workers of a self-play run: they play shard after shard, from which this process learns, and its arenas.

Workers live as long as the run, so TensorFlow starts once in each and a network's graph is traced once. They have one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers. A run without processes plays with all threads of this one.

A task is one shard or a few. Networks travel to the workers of a cluster by the hash of their file. A worker that dies
costs the shards of its task. Games that are in flight when a clock ends the iteration are given up.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero import iterations, run_files
from distill.alphazero.iterations import End
from distill.alphazero.run_files import Metrics
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, executors, json_hash, provenance, run_folder, say
from distill.common.cluster import Cluster
from distill.common.executors import Workers
from distill.common.progress import silent
from distill.datasets import canonical, replay
from distill.game import outputs
from distill.game.rules import Bitboards
from distill.games import playing, schema, selfplay, shards
from distill.games.settings import RunSettings
from distill.mcts import compiling, puct
from distill.mcts.settings import UctSettings
from distill.networks import backend, finding, registry
from distill.players import match
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    from distill.networks.evaluator import NetworkEvaluator
    from distill.training.step import TrainingModel

POLL = 1.0
"""Seconds between two looks at whether games are finished: a wait without end would ignore Ctrl-C."""


def start(config: SelfPlayConfig, processes: int) -> Workers:
    """The workers that a config asks for, started: of its cluster, or so many processes; 0: this process."""
    if config.machine.cluster:
        pool: Workers = Cluster(config.machine.cluster, versions_here)
    else:
        pool = executors.started(processes) if processes else Workers()
    pool.window = pool.number  # no task waits for a worker, so few are in flight when a clock ends the games
    return pool


def versions_here() -> dict[str, Any]:
    """The versions that decide what a network plays, which are equal on all workers."""
    name = backend.backend_name()
    versions = provenance.versions("keras", name)
    return versions | shards.versions_here() | {"puct_version": puct.PUCT_VERSION, "backend": name}


_TURN = threading.Lock()
"""Held by the one task of a process that computes: a cluster's worker may have many threads, which share a network."""


def alone(work: Callable[..., Any], *task: Any) -> Any:
    """A task, while no other one computes in this process."""
    with _TURN:
        return work(*task)


def _short_searches(config: SelfPlayConfig, network: Path) -> None:
    """Load Keras and the compiled search, and trace the graphs of a network for all sizes of a batch."""
    starts = playing.starts(config, [*range(config.machine.lanes)])
    puct.play(*starts, evaluator(config, network), config.search.replace(simulations=2))


_EVALUATORS: dict[tuple[Any, ...], NetworkEvaluator] = {}
"""The process's evaluators, by what the next network in the same place must share, so that no graph is traced twice."""


def evaluator(config: SelfPlayConfig, network: Path, seat: int = 0) -> NetworkEvaluator:
    """The evaluator of a network, valid until the next call for the same seat."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator

    core = saved.load_core(network)
    key = (seat, core.to_json(), config.machine.precision)
    # The next network of the same layers takes the place of the last one.
    if key in _EVALUATORS:
        _EVALUATORS[key].take_weights(core)
    else:
        _EVALUATORS[key] = NetworkEvaluator(core, config.machine.precision)
    return _EVALUATORS[key]


# Games ----------------------------------------------------------------------------------------------------------------


class TimeIsOverError(Exception):
    """Ends the games of a worker."""


@dataclass(frozen=True, kw_only=True)
class ShardPlayer:
    """Who plays shards of games: the teacher, or a network.

    Attributes:
      settings, identity: those of the games.
      play: in a worker, (settings, identity, tasks, seconds, *files) → the shards of these tasks, or as many as are
        finished after so many seconds.
      files: the files that a worker needs to play.
      at_once: shards that a worker plays side by side.
    """

    settings: RunSettings | SelfPlayConfig
    identity: Mapping[str, Any]
    play: Callable[..., list[shards.Encoded]]
    files: Sequence[Path] = ()
    at_once: int = 1


def network_player(config: SelfPlayConfig, network: Path) -> ShardPlayer:
    """The player with the network in a file. Raises UserError for a network without a value head."""
    networks.start_backend()
    from distill.networks import heads, saved
    from distill.networks.evaluator import weights_hash

    core = saved.load_core(network)
    heads.require_value(core, str(network))
    # The games depend on the weights, not on the name of the file.
    code = registry.import_trusted() if finding.has_own_layers(network) else []
    parts = [weights_hash(core), config.machine.precision, *code, backend.backend_name().replace("tensorflow", "")]
    identity = config.games_identity("-".join(filter(None, parts)))
    at_once = max(1, config.machine.lanes // config.shard_games)
    return ShardPlayer(settings=config, identity=identity, play=guided, files=[network], at_once=at_once)


def guided(
    config: SelfPlayConfig, identity: Mapping[str, Any], todo: Sequence[shards.Task], seconds: float, network: Path
) -> list[shards.Encoded]:
    """Play shards by a search that the network guides."""
    ends = time.monotonic() + seconds  # now, because to load a network takes a second
    evaluate, lanes = evaluator(config, network), config.machine.lanes

    def in_time(current: Bitboards, mask: Bitboards) -> Any:
        if time.monotonic() > ends:
            raise TimeIsOverError
        return evaluate(current, mask)

    encoded = list[shards.Encoded]()
    games = sum(task.games for task in todo)
    with suppress(TimeIsOverError), outputs.named(str(network)), Progress(games, "games") as progress:
        keep, advance = encoded.append, progress.advance
        selfplay.play_in_lock_step(config, identity, in_time, todo, keep, lanes=lanes, advance=advance)
    return encoded


@dataclass(frozen=True, kw_only=True)
class WorkerPlay:
    """The `loop.Play` whose workers play into folders of the run, while this process learns from those games.

    Attributes:
      out: the folder of the run, with the champion, which plays.
      learner: the network that learns.
    """

    out: Path
    config: SelfPlayConfig
    pool: Workers
    learner: TrainingModel

    def warm_up(self) -> None:
        """Compile the searches; with a clock, also load Keras and trace graphs in the workers."""
        for search in ("uct", "puct") if self.config.schedule.teacher_share else ("puct",):
            compiling.prepare(search)
        if self.config.is_timed:
            task = (_short_searches, self.config, self.pool.file(self.out / finding.BEST))
            executors.results(self.pool, alone, [task] * self.pool.number)

    def iterate(self, number: int, end: End, share: float, finished: Sequence[Metrics]) -> Metrics:
        """Play an iteration and learn from the latest games (`loop.Play`)."""
        if not end.plays:
            nobody = {"games": 0, "rows": 0, "games_hash": None, "simulations": 0}
            return nobody | self._learn(number, end, share, finished)
        player = player_of(self.config, number, share, self.out / finding.BEST)
        out = run_files.games_folder(self.out, number)
        with shards.opened(out, player.settings, end.games, player.identity) as folder:
            games = self.pool.begin(play, self.pool, player, end, folder)
            if end.steps is None:  # the network learns from these games, too
                finish(games)
            learned = self._learn(number, end, share, finished)
            return finish(games) | learned

    def _learn(self, number: int, end: End, share: float, finished: Sequence[Metrics]) -> Metrics:
        """Learn from the latest games until the end of an iteration; returns the metrics of the training."""
        from distill.training import continual

        latest = self._latest_games(number, end, finished)
        if not latest:
            return {"training_loss": None, "learning_rate": None, "steps": 0, "replay_boards": 0, "step_seconds": 0.0}
        table = replay.table(latest, canonical.excluded_keys("benchmark"))
        seed = partial(iterations.seed_of, self.config, number)
        drawn = replay.sample(table, self.config.replay.boards, seed(iterations.SAMPLE))
        learning_rate = iterations.learning_rate(self.config, number, share)
        say(f"iteration {number}: training the network")
        learned = continual.learn(self.learner, drawn, learning_rate, seed(iterations.TRAINING), end.steps, end.is_over)
        return learned | {"learning_rate": learning_rate, "replay_boards": len(table)}

    def _latest_games(self, number: int, end: End, finished: Sequence[Metrics]) -> list[schema.Shard]:
        """The shards to learn from; none in the first iteration of a run with a clock."""
        window, rows = self.config.replay, self.config.replay.rows
        if rows is not None and window.share is not None:
            # A long run learns from a share of the networks' rows, which exceeds the fixed window at some time.
            teacher = iterations.teacher_plays
            by_networks = [last["rows"] for last in finished if not teacher(self.config, last["iteration"])]
            rows = max(rows, int(window.share * sum(by_networks)))
        with_games = [metrics["iteration"] for metrics in finished if metrics["games"]]
        if end.steps is None:  # with a clock, this iteration is still being played
            with_games.append(number)
        return replay.latest([run_files.games_folder(self.out, one) for one in with_games], rows, window.games)


def player_of(config: SelfPlayConfig, number: int, share: float, champion: Path) -> ShardPlayer:
    """Who plays an iteration: the network in the file `champion`, or the teacher."""
    seed = iterations.seed_of(config, number, iterations.GAMES)
    if iterations.teacher_plays(config, number):
        search = UctSettings(simulations=config.schedule.teacher_simulations, votes=1)
        shared = {"opening_moves": config.opening_moves, "shard_games": config.shard_games}
        teacher = RunSettings(search=search, seed=seed, **shared)
        # It needs no network. Its shards take a second, so it finishes them.
        return ShardPlayer(settings=teacher, identity=teacher.games_identity(), play=shards.play_shards)
    search_settings = config.search_at(share)
    if number <= config.schedule.double_noise_iterations:  # as Connect 4 AI has it
        search_settings = search_settings.replace(noise_fraction=min(1.0, 2 * search_settings.noise_fraction))
    return network_player(config.replace(seed=seed, search=search_settings), champion)


def finish(games: Future[Metrics]) -> Metrics:
    """Wait for games that were begun."""
    while wait([games], timeout=POLL).not_done:
        pass
    return games.result()


def play(pool: Workers, player: ShardPlayer, end: End, folder: run_folder.Run) -> Metrics:
    """Let the workers play what the folder lacks, until the end; returns the metrics of the games."""
    plan = shards.plan(folder, end.games)
    work = partial(alone, partial(player.play, player.settings, player.identity))
    files = [pool.file(path) for path in player.files]
    calls = ((*call, *files) for call in _tasks(player, end, plan, pool.number))
    # The learner shows its progress while others play, and without processes the player does.
    done = sum(shard.games for shard in plan.done)
    bar = Progress(plan.games, "games", done) if end.steps is None and isinstance(pool, executors.Elsewhere) else None
    with bar or nullcontext():
        result = shards.complete(folder, plan, pool, work, calls, bar.advance if bar else silent)
    counts = {"games": result["games"], "rows": result["rows"], "games_hash": json_hash(result)}
    return counts | {"simulations": player.settings.search.simulations}


def _tasks(
    player: ShardPlayer, end: End, plan: shards.Plan, worker_count: int
) -> Iterator[tuple[Sequence[shards.Task], float]]:
    """A few shards a task and the seconds for it: what the folder lacks, then more while the end has seconds left."""
    few = max(1, min(player.at_once, len(plan.todo) // worker_count))  # every worker gets some
    for first in range(0, len(plan.todo), few):
        yield plan.todo[first : first + few], math.inf
    size = player.settings.shard_games
    for first in itertools.count(plan.games // size, player.at_once):
        if not (seconds := end.seconds_left()):
            return
        yield [shards.Task(index=first + number, games=size) for number in range(player.at_once)], seconds


# Arena ----------------------------------------------------------------------------------------------------------------


def arena(workers: Workers, config: SelfPlayConfig, candidate: Path, champion: Path, seed: int) -> float:
    """The score of a candidate against the champion: wins and half the draws.

    Both play with `config.search`, without noise, and with no stage of the schedule.
    """
    say("arena: candidate against champion")
    outcomes: list[float] = []
    pair = [workers.file(network) for network in (candidate, champion)]
    tasks = [(meet, config, seed, first, *pair) for first in range(0, config.arena.games, match.BLOCK)]
    with Progress(config.arena.games, "arena games") as progress:
        for _, block in executors.completed(workers, alone, tasks):
            outcomes += block
            progress.reach(len(outcomes))
    return float((np.array(outcomes) + 1).mean() / 2)


def meet(config: SelfPlayConfig, seed: int, first: int, *pair: Path) -> list[float]:
    """The candidate's results in one block of an arena against the champion."""
    players = [
        GuidedPlayer(name=network.stem, evaluate=evaluator(config, network, seat), settings=config.search)
        for seat, network in enumerate(pair)
    ]
    return match.arena_block(players, config.arena.games, config.arena.plies, seed, first)

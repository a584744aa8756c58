"""Workers of a self-play run, processes or those of a Dask cluster: they play shards of games, and blocks of an arena.

A worker lives as long as the run, so TensorFlow starts once in it and a network's graph is traced once. It has one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers. A run without processes plays with all threads of its own. To a cluster networks travel by the hash of their
file, and shards come back as files: no folder is shared.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import DataError, Progress, UserError, listed, provenance, run_folder, say, write_atomically
from distill.common.cluster import Cluster
from distill.common.progress import silence
from distill.common.workers import pool
from distill.game import outputs
from distill.games import executors, runs, schema, selfplay, shards
from distill.games.runs import RunSettings
from distill.mcts import puct
from distill.players import match
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import NetworkEvaluator

POLL = 1.0
"""Seconds between two updates of the progress bar while workers play."""

ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")


class Workers:
    """Processes with one task at a time each; a context manager. Without processes, tasks run in this one at once."""

    def __init__(self, number: int) -> None:
        self.pools = [pool(ONE_THREAD) for _ in range(number)]
        self.number = max(1, number)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.pools:
            each.shutdown(wait=False, kill_workers=True)

    def one_more(self) -> Workers:
        """Other workers, one more than these."""
        return Workers(len(self.pools) + 1)

    def submit(self, work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], *files: Path) -> list[Future[Any]]:
        """Start `work(*task, *files)` for at most as many tasks as there are workers."""
        # Each worker gets at most one task, a large one, so that it traces its graphs once.
        if self.pools:
            return [each.submit(work, *task, *files) for each, task in zip(self.pools, tasks, strict=False)]
        futures = []
        for task in tasks:
            futures.append(Future[Any]())
            futures[-1].set_result(work(*task, *files))
        return futures

    def play(self, games: Games, todo: Sequence[shards.Task]) -> list[Future[Any]]:
        """Start playing these shards, every worker its part of them."""
        return self.submit(play, ((games, todo[part :: self.number]) for part in range(self.number)))


class ClusterWorkers(Workers):
    """The same on the workers of a Dask cluster, any number of tasks at a time."""

    def __init__(self, address: str, engine: str = "compiled") -> None:
        super().__init__(0)
        self.cluster, self.engine = on_cluster(address, engine), engine
        self.number = len(self.cluster.check())  # a process computes one task at a time, on whatever threads
        self.keeping, self.ended = threading.Lock(), False

    def __exit__(self, *_: object) -> None:
        with self.keeping:
            self.ended = True

    def one_more(self) -> Workers:
        """The same workers, but what ends with the context is theirs alone."""
        return ClusterWorkers(self.cluster.address, self.engine)

    def submit(self, work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], *files: Path) -> list[Future[Any]]:
        return self._submit([(work, *task) for task in tasks], files, lambda _, result: result)

    def play(self, games: Games, todo: Sequence[shards.Task]) -> list[Future[Any]]:
        def keep(number: int, content: bytes) -> None:
            write_atomically(games.folder / schema.shard_name(todo[number].index), content)

        network = [games.network] if games.network else []
        return self._submit([(play_apart, games, task) for task in todo], network, keep)

    def _submit(
        self, tasks: Sequence[tuple[Any, ...]], files: Sequence[Path], keep: Callable[[int, Any], Any]
    ) -> list[Future[Any]]:
        """A future a task, of `keep(its number, result)`; all of it in a thread."""
        futures = [Future[Any]() for _ in tasks]

        def run() -> None:
            try:
                for number, result in self.cluster.mapped(_alone, tasks, files):
                    with self.keeping:
                        if self.ended:  # the folder is no longer locked
                            raise UserError("the workers were let go before they had finished")
                        futures[number].set_result(keep(number, result))
            except BaseException as error:  # raised where the results are waited for
                for future in futures:
                    if not future.done():
                        future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return futures


def start(config: SelfPlayConfig, processes: int) -> Workers:
    """The workers that a config asks for: of its cluster, or so many processes."""
    return ClusterWorkers(config.cluster, config.engine) if config.cluster else Workers(processes)


def on_cluster(address: str, engine: str = "compiled") -> Cluster:
    """A cluster whose workers evaluate networks and search as this process does."""
    return Cluster(address=address, versions=partial(versions_here, engine))


def versions_here(engine: str) -> dict[str, Any]:
    """The versions that decide what a network plays."""
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    found = provenance.versions(*selfplay.LIBRARIES, backend)
    return found | executors.versions_here(engine) | {"puct_version": puct.PUCT_VERSION, "backend": backend}


@dataclass(frozen=True, kw_only=True)
class Games:
    """Games that are to be in a folder.

    Attributes:
      network: the file of the network whose search plays; None: the teacher plays, with `RunSettings`.
      run: the identity of the run of games.
    """

    settings: SelfPlayConfig | RunSettings
    number: int
    folder: Path
    run: Mapping[str, Any]
    network: Path | None = None

    def opened(self, *, restart: bool = False) -> AbstractContextManager[run_folder.Run]:
        """Hold the folder."""
        return shards.opened(self.folder, self.settings, self.number, self.run, config=self.settings, restart=restart)

    def plan(self, folder: run_folder.Run) -> shards.Plan:
        """Which shards the folder has and lacks."""
        return shards.plan(folder, self.settings, self.number, self.run)

    def played(self) -> int:
        """Games in finished shards."""
        return min(self.number, len(list(self.folder.glob("shard-*.parquet"))) * self.settings.shard_games)


def of_teacher(settings: RunSettings, number: int, folder: Path) -> Games:
    """Games that the teacher plays."""
    return Games(settings=settings, number=number, folder=folder, run=runs.identity(settings))


def of_network(config: SelfPlayConfig, number: int, folder: Path, network: Path) -> Games:
    """Games that a network's search plays. Raises UserError for a network without a value head."""
    networks.start_backend()
    from distill.networks import heads, saved
    from distill.networks.evaluator import weights_hash

    core = saved.load_core(network)
    heads.require_value(core, str(network))
    # The games depend on the weights, not on the name of the file.
    run = selfplay.identity(config, f"{weights_hash(core)}-{config.precision}")
    return Games(settings=config, number=number, folder=folder, run=run, network=network)


def finish(futures: Sequence[Future[Any]], games: Games, folder: run_folder.Run) -> dict[str, Any]:
    """Wait for games and record the result; returns its numbers of `games` and `rows`.

    Raises DataError where a shard has disappeared meanwhile.
    """
    # Workers report nothing, so progress is read from the shards that they finish.
    if waiting := wait(futures, timeout=0).not_done:
        with Progress(games.number, "games", games.played()) as progress:
            while waiting := wait(waiting, timeout=POLL).not_done:
                progress.reach(max(progress.done, games.played()))
            results(futures)
            progress.reach(games.number)
    results(futures)
    plan = games.plan(folder)
    if plan.todo:
        names = listed([task.name for task in plan.todo])
        raise DataError(f"{games.folder}: {names} missing or damaged after it was played; start the command again")
    result = shards.result(games.run, plan.done)
    folder.finish(result)
    return {"games": result["games"], "rows": result["rows"]}


def results(futures: Sequence[Future[Any]]) -> list[Any]:
    """What the tasks return, once all have ended. Raises UserError where a worker died."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise UserError("a worker process has died (out of memory?); the same command resumes") from None


def play(games: Games, todo: Sequence[shards.Task]) -> None:
    """Play these shards."""
    if isinstance(games.settings, RunSettings):
        for task in todo:
            shards.make_shard(games.settings, task.index, task.games, games.folder)
    elif games.network:
        evaluate = evaluator(games.settings, games.network)
        with outputs.named(str(games.network)), Progress(sum(task.games for task in todo), "games") as progress:
            selfplay.make_shards(
                games.settings, games.run, evaluate, todo, games.folder,
                lanes=games.settings.lanes, advance=progress.advance,
            )  # fmt: skip


def play_apart(games: Games, task: shards.Task, network: Path | None = None) -> bytes:
    """The content of a shard, from a machine that does not share the folder; `network` is the network's file there."""
    with tempfile.TemporaryDirectory() as place:
        play(dataclasses.replace(games, folder=Path(place), network=network), [task])
        return (Path(place) / schema.shard_name(task.index)).read_bytes()


_TURN = threading.Lock()
"""Held by the one task of a cluster's worker process that computes: networks are evaluated in shared memory."""


def _alone(work: Callable[..., Any], *task: Any) -> Any:
    """On a cluster's worker: a task, with the one thread that the run's own processes have."""
    os.environ.update(ONE_THREAD)
    silence()
    with _TURN:
        return work(*task)


def arena(workers: Workers, config: SelfPlayConfig, candidate: Path, champion: Path, seed: int) -> dict[str, Any]:
    """Play a candidate against the champion, both with the search of self-play but without noise.

    Returns the candidate's `score`, wins and half the draws, and the number of `distinct_games`.
    """
    say("arena: candidate against champion")
    outcomes: list[float] = []
    lines: set[tuple[int, ...]] = set()
    with Progress(config.arena_games, "arena games") as progress:
        while len(outcomes) < config.arena_games:
            # A block for each worker, then the next ones.
            firsts = range(len(outcomes), config.arena_games, match.BLOCK)[: workers.number]
            tasks = [(config, seed, first) for first in firsts]
            for found, moves in results(workers.submit(meet, tasks, candidate, champion)):
                outcomes += found
                lines |= {*moves}
            progress.reach(len(outcomes))
    return {"score": float((np.array(outcomes) + 1).mean() / 2), "distinct_games": len(lines)}


def meet(config: SelfPlayConfig, seed: int, first: int, *pair: Path) -> tuple[list[float], list[tuple[int, ...]]]:
    """One block of an arena, of candidate and champion."""
    players = [
        GuidedPlayer(name=network.stem, predict=evaluator(config, network, seat), settings=config)
        for seat, network in enumerate(pair)
    ]
    return match.arena_block(players, config.arena_games, config.arena_plies, seed, first)


_EVALUATORS: dict[tuple[Any, ...], NetworkEvaluator] = {}
"""The process's evaluators, by what the next network in the same place must share, so that no graph is traced twice."""


def evaluator(config: SelfPlayConfig, network: Path, seat: int = 0) -> NetworkEvaluator:
    """The evaluator of a network, valid until the next call for the same seat."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator

    core: keras.Model = saved.load_core(network)
    key = (seat, core.to_json(), config.precision, config.games)
    # The next network of the same layers takes the place of the last one.
    if key in _EVALUATORS:
        _EVALUATORS[key].take_weights(core)
    else:
        _EVALUATORS[key] = NetworkEvaluator(core, config.precision, most=config.games)
    return _EVALUATORS[key]

"""Workers of a self-play run, processes or those of a Dask cluster: they play shards of games, and blocks of an arena.

A worker lives as long as the run, so TensorFlow starts once in it and a network's graph is traced once. It has one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers. To a cluster networks travel by the hash of their file, and shards come back as bytes: no folder is shared.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, file_hash, say, write_atomically
from distill.common.progress import silence
from distill.common.workers import ONE_THREAD, Processes
from distill.game import outputs
from distill.games import executors, schema, selfplay, shards
from distill.games.runs import RunSettings
from distill.games.schema import Shard
from distill.games.selfplay import Keep
from distill.players import match
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import NetworkEvaluator

POLL = 1.0
"""Seconds between two updates of the progress bar while workers play."""


class Workers:
    """The workers that a config asks for, of its cluster, or so many processes; 0: this process. A context manager."""

    def __init__(self, config: SelfPlayConfig, processes: int) -> None:
        self.config, self.cluster = config, executors.on_cluster(config.cluster) if config.cluster else None
        self.processes = 0 if self.cluster else processes
        self._place = self.cluster or Processes(processes)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._place.close()

    def one_more(self) -> Workers:
        """Other workers, one more than these; a cluster stays as it is."""
        return Workers(self.config, self.processes + 1)

    def check(self) -> int:
        """How many tasks they compute at a time. Raises UserError where there are no workers."""
        return self._place.check()

    def mapped(
        self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *files: Path
    ) -> Iterator[tuple[int, Any]]:
        """Yield a task's number and `work(*task, *files)`, as they are finished."""
        return self._place.mapped(partial(_alone, work) if self.cluster else work, tasks, files)

    def submit(
        self,
        work: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        *files: Path,
        keep: Callable[[Any], Any] = lambda result: result,
    ) -> list[Future[Any]]:
        """Start `work(*task, *files)` for each task; returns a future a task, of `keep(result)`."""
        futures = [Future[Any]() for _ in tasks]

        def run() -> None:
            try:
                for number, result in self.mapped(work, tasks, *files):
                    futures[number].set_result(keep(result))
            except BaseException as error:  # raised where the results are waited for
                for future in futures:
                    if not future.done():
                        future.set_exception(error)

        if self.cluster or self.processes:
            threading.Thread(target=run, daemon=True).start()
        else:
            run()
        return futures

    def play(self, games: Games) -> list[Future[Any]]:
        """Start playing these games."""
        todo, network = games.plan().todo, [games.network] if games.network else []
        if self.cluster:
            alone = [(games, task) for task in todo]
            return self.submit(play_apart, alone, *network, keep=lambda made: games.keep(*made))
        # A process gets all of its shards at once: many games are played side by side, and its graphs are traced once.
        parts = self.check()
        return self.submit(play, [(games, todo[part::parts]) for part in range(parts)], *network)


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

    def plan(self) -> shards.Plan:
        """Which shards the folder has and lacks."""
        return shards.plan(self.settings, self.number, self.folder, self.run)

    def keep(self, shard: Shard, content: bytes) -> None:
        """Store a shard."""
        write_atomically(self.folder / shard.name, content)

    def played(self) -> int:
        """Games in finished shards."""
        return min(self.number, len(list(self.folder.glob("shard-*.parquet"))) * self.settings.shard_games)


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


def finish(futures: Sequence[Future[Any]], games: Games) -> dict[str, Any]:
    """Wait for games and write their manifest; returns its `games`, `rows` and, as `manifest`, its hash."""
    if not games.number:
        return {"games": 0, "rows": 0, "manifest": None}
    # Workers report nothing, so progress is read from the shards that they finish.
    if waiting := wait(futures, timeout=0).not_done:
        with Progress(games.number, "games", games.played()) as progress:
            while waiting := wait(waiting, timeout=POLL).not_done:
                progress.reach(max(progress.done, games.played()))
            results(futures)
            progress.reach(games.number)
    results(futures)
    manifest = shards.declare(games.run, games.plan().done, games.folder)
    return {"games": manifest["games"], "rows": manifest["rows"], "manifest": file_hash(games.folder / schema.MANIFEST)}


def results(futures: Sequence[Future[Any]]) -> list[Any]:
    """What the tasks return, once all have ended."""
    return [future.result() for future in futures]


def play(games: Games, todo: Sequence[shards.Task], *network: Path, keep: Keep | None = None) -> None:
    """Play these shards, with the search of the network in this file if there is one; None: store them."""
    keep = keep or games.keep
    if isinstance(games.settings, RunSettings):
        for task in todo:
            keep(*shards.make_shard(games.settings, task.index, task.games))
        return
    evaluate = evaluator(games.settings, network[0])
    with outputs.named(str(games.network)), Progress(sum(task.games for task in todo), "games") as progress:
        selfplay.make_shards(
            games.settings, games.run, evaluate, todo, keep, lanes=games.settings.lanes, advance=progress.advance
        )


def play_apart(games: Games, task: shards.Task, *network: Path) -> tuple[Shard, bytes]:
    """One shard and its bytes, from a machine that does not share the folder."""
    made: list[tuple[Shard, bytes]] = []
    play(games, [task], *network, keep=lambda *shard: made.append(shard))
    return made[0]


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
    blocks = [(config, seed, first) for first in range(0, config.arena_games, match.BLOCK)]
    with Progress(config.arena_games, "arena games") as progress:
        for _, (found, moves) in workers.mapped(meet, blocks, candidate, champion):
            outcomes += found
            lines |= {*moves}
            progress.advance(len(found))
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
    key = (seat, core.name, config.precision, config.lanes)
    # The next network of the same shape takes the place of the last one.
    if key in _EVALUATORS:
        _EVALUATORS[key].take_weights(core)
    else:
        _EVALUATORS[key] = NetworkEvaluator(core, config.precision)
    return _EVALUATORS[key]

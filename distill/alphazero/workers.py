"""What workers do in a self-play run: they play shards of games, and blocks of an arena.

    playing = workers.begin(pool, games)           # shards appear in the games' folder while this thread learns
    ...
    workers.finish(playing, games)                 # waits, and records the result
    workers.arena(pool, config, candidate, champion, seed)

Workers live as long as the run, so TensorFlow starts once in each and a network's graph is traced once. They have one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers. A run without processes plays with all threads of this one. To a cluster networks travel by the hash of their
file, and shards come back as files: no folder is shared.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, executors, listed, provenance, run_folder, say, write_atomically
from distill.common.cluster import Cluster
from distill.common.executors import KilledError, WorkerError, Workers
from distill.game import outputs
from distill.games import making, runs, schema, selfplay, shards
from distill.games.runs import RunSettings
from distill.mcts import puct
from distill.players import match
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import NetworkEvaluator

POLL = 1.0
"""Seconds between two updates of the progress bar while workers play."""


def start(config: SelfPlayConfig, processes: int) -> Workers:
    """The workers that a config asks for, started: of its cluster, or so many processes; 0: this process."""
    if config.machine.cluster:
        return on_cluster(config.machine.cluster)
    return executors.started(processes) if processes else Workers()


def on_cluster(address: str) -> Cluster:
    """The workers of a cluster that evaluate networks and search as this process does."""
    return Cluster(address, versions_here)


def versions_here() -> dict[str, Any]:
    """The versions that decide what a network plays."""
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    found = provenance.versions(*selfplay.LIBRARIES, backend)
    return found | making.versions_here() | {"puct_version": puct.PUCT_VERSION, "backend": backend}


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
    run = selfplay.identity(config, f"{weights_hash(core)}-{config.machine.precision}")
    return Games(settings=config, number=number, folder=folder, run=run, network=network)


def begin(workers: Workers, games: Games, todo: Sequence[shards.Task]) -> Future[None]:
    """Start playing these shards; they appear in the folder of the games."""
    return workers.begin(_play_all, workers, games, todo)


def _play_all(workers: Workers, games: Games, todo: Sequence[shards.Task]) -> None:
    try:
        if isinstance(workers, Cluster):
            network = [workers.file(games.network)] if games.network else []
            tasks = [(play_apart, games, task, *network) for task in todo]
            for number, content in executors.completed(workers, alone, tasks):
                write_atomically(games.folder / todo[number].name, content)
        else:
            # Each process gets one large task, so that all its lanes have a game until the end.
            replaced = {task for task in todo if (games.folder / task.name).exists()}
            parts = [todo[part :: workers.number] for part in range(min(workers.number, len(todo)))]
            executors.results(workers, play, [(games, part, replaced) for part in parts])
    except KilledError as error:
        missing = listed([task.name for task in todo if not (games.folder / task.name).exists()])
        raise WorkerError(f"{games.folder}: {missing}: {error}; the same command resumes") from error


def finish(playing: Future[None], games: Games, folder: run_folder.Run) -> dict[str, Any]:
    """Wait for games and record the result; returns its numbers of `games` and `rows`.

    Raises DataError where a shard has disappeared meanwhile.
    """
    # Workers report nothing, so progress is read from the shards that they finish.
    if not playing.done():
        with Progress(games.number, "games", games.played()) as progress:
            while wait([playing], timeout=POLL).not_done:
                progress.reach(max(progress.done, games.played()))
            playing.result()
            progress.reach(games.number)
    playing.result()
    result = shards.finish(folder, games.run, games.plan(folder).done, games.number)
    return {"games": result["games"], "rows": result["rows"]}


def play(games: Games, todo: Sequence[shards.Task], replaced: Collection[shards.Task] = ()) -> None:
    """Play these shards, but not those that exist, since an earlier try has played them; `replaced` existed before."""
    todo = [task for task in todo if task in replaced or not (games.folder / task.name).exists()]
    if isinstance(games.settings, RunSettings):
        for task in todo:
            write_atomically(games.folder / task.name, shards.make_shard(games.settings, games.run, task)[1])
    elif games.network:
        evaluate = evaluator(games.settings, games.network)
        with outputs.named(str(games.network)), Progress(sum(task.games for task in todo), "games") as progress:
            selfplay.make_shards(
                games.settings, games.run, evaluate, todo, games.folder,
                lanes=games.settings.machine.lanes, advance=progress.advance,
            )  # fmt: skip


def play_apart(games: Games, task: shards.Task, network: Path | None = None) -> bytes:
    """The content of a shard, from a machine that does not share the folder; `network` is the network's file there."""
    with tempfile.TemporaryDirectory() as place:
        play(dataclasses.replace(games, folder=Path(place), network=network), [task])
        return (Path(place) / schema.shard_name(task.index)).read_bytes()


_TURN = threading.Lock()
"""Held by the one task of a process that computes: a cluster's worker may have many threads, which share a network."""


def alone(work: Callable[..., Any], *task: Any) -> Any:
    """A task, while no other one computes in this process."""
    with _TURN:
        return work(*task)


def arena(workers: Workers, config: SelfPlayConfig, candidate: Path, champion: Path, seed: int) -> dict[str, Any]:
    """Play a candidate against the champion, both with the search of self-play but without noise.

    Returns the candidate's `score`, wins and half the draws, and the number of `distinct_games`.
    """
    say("arena: candidate against champion")
    outcomes: list[float] = []
    lines: set[tuple[int, ...]] = set()
    pair = [workers.file(network) for network in (candidate, champion)]
    tasks = [(meet, config, seed, first, *pair) for first in range(0, config.arena.games, match.BLOCK)]
    with Progress(config.arena.games, "arena games") as progress:
        for _, (block, moves) in executors.completed(workers, alone, tasks):
            outcomes += block
            lines |= {*moves}
            progress.reach(len(outcomes))
    return {"score": float((np.array(outcomes) + 1).mean() / 2), "distinct_games": len(lines)}


def meet(config: SelfPlayConfig, seed: int, first: int, *pair: Path) -> tuple[list[float], list[tuple[int, ...]]]:
    """One block of an arena, of candidate and champion."""
    players = [
        GuidedPlayer(name=network.stem, predict=evaluator(config, network, seat), settings=config.search)
        for seat, network in enumerate(pair)
    ]
    return match.arena_block(players, config.arena.games, config.arena.plies, seed, first)


_EVALUATORS: dict[tuple[Any, ...], NetworkEvaluator] = {}
"""The process's evaluators, by what the next network in the same place must share, so that no graph is traced twice."""


def evaluator(config: SelfPlayConfig, network: Path, seat: int = 0) -> NetworkEvaluator:
    """The evaluator of a network, valid until the next call for the same seat."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator

    core: keras.Model = saved.load_core(network)
    key = (seat, core.to_json(), config.machine.precision, config.schedule.games)
    # The next network of the same layers takes the place of the last one.
    if key in _EVALUATORS:
        _EVALUATORS[key].take_weights(core)
    else:
        _EVALUATORS[key] = NetworkEvaluator(core, config.machine.precision, most=config.schedule.games)
    return _EVALUATORS[key]

"""The workers of a self-play run, their networks, and the arena that they play.

Workers live as long as the run, so TensorFlow starts once in each and a network's graph is traced once. They have one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers. A run without processes plays with all threads of this one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, executors, provenance, say
from distill.common.cluster import Cluster
from distill.common.executors import Workers
from distill.games import playing, selfplay, shards
from distill.mcts import puct
from distill.players import match
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import NetworkEvaluator


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
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    versions = provenance.versions(*selfplay.LIBRARIES, backend)
    return versions | shards.versions_here() | {"puct_version": puct.PUCT_VERSION, "backend": backend}


_TURN = threading.Lock()
"""Held by the one task of a process that computes: a cluster's worker may have many threads, which share a network."""


def alone(work: Callable[..., Any], *task: Any) -> Any:
    """A task, while no other one computes in this process."""
    with _TURN:
        return work(*task)


def warm_up(workers: Workers, config: SelfPlayConfig, network: Path) -> None:
    """Let the workers load Keras, compile the search and trace the graphs of a network for all sizes of a batch."""
    executors.results(workers, alone, [(_short_searches, config, workers.file(network))] * workers.number)


def _short_searches(config: SelfPlayConfig, network: Path) -> None:
    starts = playing.starts(config, [*range(config.machine.lanes)])
    puct.play(*starts, evaluator(config, network), config.search.replace(simulations=2))


def arena(workers: Workers, config: SelfPlayConfig, candidate: Path, champion: Path, seed: int) -> float:
    """The score of a candidate against the champion: wins and half the draws.

    Both play with the search of self-play but without noise.
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

"""Worker processes of a self-play run: each plays whole shards of games, or blocks of arena games.

A worker lives as long as the run, so TensorFlow starts once in it and a network's graph is traced once. It has one
thread: then a network's output for a position depends on no other position in the batch, and a game on no number of
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, UserError, file_hash, say
from distill.common.workers import pool
from distill.game import outputs
from distill.games import runs, schema, selfplay, shards
from distill.games.runs import RunSettings
from distill.players import gate
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import Evaluator

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

    def submit(self, work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Future[Any]]:
        """Start `work(*task)` for at most as many tasks as there are workers."""
        if self.pools:
            return [each.submit(work, *task) for each, task in zip(self.pools, tasks, strict=False)]
        futures = []
        for task in tasks:
            futures.append(Future[Any]())
            futures[-1].set_result(work(*task))
        return futures

    def play(self, games: Games) -> list[Future[Any]]:
        """Start playing these games, every worker its part of the shards."""
        todo = games.plan().todo
        return self.submit(play, ((games, todo[part :: self.number]) for part in range(self.number)))


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
    run = selfplay.identity(config, f"{weights_hash(core)}-{config.precision}")
    return Games(settings=config, number=number, folder=folder, run=run, network=network)


def finish(futures: Sequence[Future[Any]], games: Games) -> dict[str, Any]:
    """Wait for games and write their manifest; returns its `games`, `rows` and, as `manifest`, its hash."""
    if not games.number:
        return {"games": 0, "rows": 0, "manifest": None}
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


def arena(
    workers: Workers, config: SelfPlayConfig, candidate: Path, champion: Path, seed: int, path: Path
) -> dict[str, Any]:
    """Play a candidate against the champion, both with the search of self-play but without noise; see `gate.meet`."""
    games = gate.Arena(games=config.arena_games, plies=config.arena_plies, seed=seed)
    say("arena: candidate against champion")
    with Progress(config.arena_games, "arena games") as progress:

        def blocks(firsts: Sequence[int]) -> Iterable[gate.Block]:
            for future in workers.submit(meet, ((games, first, config, candidate, champion) for first in firsts)):
                yield from results([future])

        return gate.meet(games, blocks, path, workers.number, progress.reach)


def meet(games: gate.Arena, first: int, config: SelfPlayConfig, *pair: Path) -> gate.Block:
    """One block of an arena, of candidate and champion."""
    candidate, champion = (
        GuidedPlayer(name=network.stem, predict=evaluator(config, network, seat), settings=config)
        for seat, network in enumerate(pair)
    )
    return games.block(candidate, champion, first)


_EVALUATORS: dict[tuple[Any, ...], Evaluator] = {}
"""The process's evaluators, by what the next network in the same place must share, so that no graph is traced twice."""


def evaluator(config: SelfPlayConfig, network: Path, seat: int = 0) -> Evaluator:
    """The evaluator of a network, valid until the next call for the same seat."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import BATCH, Evaluator

    core: keras.Model = saved.load_core(network)
    key = (seat, core.name, config.precision, config.lanes)
    if key in _EVALUATORS:
        _EVALUATORS[key].take_weights(core)
    else:
        _EVALUATORS[key] = Evaluator(core, min(config.lanes, BATCH), config.precision)
    return _EVALUATORS[key]

"""Processes that play a loop's games: the next ones while this one learns, or those of an iteration side by side.

Each is asked through one function at a time and lives as long as the run, so that TensorFlow starts once and a network
is traced once. A process has one thread: then an answer of the network does not depend on the others in its batch, nor
a game on how many processes there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import networks
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, UserError
from distill.common.workers import pool
from distill.game import outputs
from distill.games import checkpoints, playing, runs, selfplay, shards
from distill.games.runs import RunSettings
from distill.mcts import puct
from distill.players import gate
from distill.players.network import GuidedPlayer

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import Evaluator

MEASURED_SIMULATIONS = 32
"""Of the searches by which the speed of playing is measured."""

POLL = 1.0
"""Seconds between two looks at what has been played."""

ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")


class Players:
    """So many processes to play in, of one task each at a time; a context manager."""

    def __init__(self, workers: int) -> None:
        self.pools = [pool(ONE_THREAD) for _ in range(workers)]

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.pools:
            each.shutdown(wait=False, kill_workers=True)

    def begin(self, work: Callable[..., Any], *arguments: Any, others: int = 0) -> list[Future[Any]]:
        """Call `work(*arguments, part)` in every process; part is (its number, how many there are with others)."""
        parts = len(self.pools) + others
        return [each.submit(work, *arguments, (number, parts)) for number, each in enumerate(self.pools)]

    def play(
        self,
        config: SelfPlayConfig,
        network: Path,
        games: int,
        folder: Path,
        progress: Progress,
        run: Mapping[str, Any],
    ) -> None:
        """Play a network's games in these processes; `selfplay.make` then finds them. `run` is their identity."""
        files = selfplay.checkpoints_of(config, run, shards.tasks(config, games), folder)
        futures = self.begin(play, config, network, games, folder)
        waiting: Collection[Future[Any]] = futures
        while waiting:
            waiting = wait(waiting, timeout=POLL).not_done
            show_ended(progress, files)
        results(futures)

    def arena(
        self,
        config: SelfPlayConfig,
        networks: tuple[Path, Path],
        arena: gate.Arena,
        firsts: Sequence[int],
    ) -> Iterator[gate.Block]:
        """The blocks of an arena that begin with these games, one for each process, candidate and champion given."""
        pairs = zip(self.pools, firsts, strict=False)
        for block in [each.submit(meet, config, networks, arena, first) for each, first in pairs]:
            yield from results([block])


def show_ended(progress: Progress, files: Sequence[checkpoints.Checkpoint]) -> None:
    """Count the finished games of these shards as done: all of a written one, else those in its hidden file."""
    missing = [file for file in files if not (file.folder / shards.shard_name(file.index)).exists()]
    ended = progress.total - sum(len(file.games) for file in missing) + checkpoints.counts(missing).games
    progress.reach(max(progress.done, ended))


def results(futures: Sequence[Future[Any]]) -> list[Any]:
    """What the calls return, once all have ended. Raises UserError where a process died."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise UserError("a process that plays has died (out of memory?); the same command goes on") from None


def teach(
    settings: RunSettings, games: int, folder: Path, part: tuple[int, int], progress: Progress | None = None
) -> tuple[str, float]:
    """Play this part of the teacher's games, and show what all have written; returns who played and seconds."""
    began = time.monotonic()
    indices = range(shards.shard_count(games, settings.shard_games))[part[0] :: part[1]]
    for task in shards.plan(settings, games, folder, indices).todo:
        shards.make_shard(settings, task.index, task.games, folder)
        if progress:
            show_ended(progress, shards.checkpoints_of(settings, shards.tasks(settings, games), folder))
    return "teacher", time.monotonic() - began


def play(config: SelfPlayConfig, network: Path, games: int, folder: Path, part: tuple[int, int]) -> tuple[str, float]:
    """Play this part of a network's games; returns what they call the network, and seconds."""
    began = time.monotonic()
    plays, name = asked(config, network)
    with outputs.named(str(network)):
        selfplay.make_part(config, name, plays, games, folder, part, config.lanes)
    return name, time.monotonic() - began


def meet(config: SelfPlayConfig, networks: tuple[Path, Path], arena: gate.Arena, first: int) -> gate.Block:
    """One block of an arena."""
    candidate, champion = (
        GuidedPlayer(name=network.stem, predict=asked(config, network, seat)[0], settings=config)
        for seat, network in enumerate(networks)
    )
    return arena.block(candidate, champion, first)


def measure_search(config: SelfPlayConfig, network: Path, seconds: float, _part: Any) -> float:
    """Simulations a second of this network's searches, over about so many seconds; what is compiled is not counted."""
    plays, _ = asked(config, network)

    def search(first: int) -> int:
        """From other openings each time: a network keeps its answers."""
        starts = [runs.opening(config, game) for game in range(first, first + config.lanes)]
        current, mask = (np.array([getattr(each, name) for each in starts], np.uint64) for name in ("current", "mask"))
        return int(puct.play(current, mask, config, plays, steps=2).simulations.sum())

    with outputs.named(str(network)):
        search(0)
    began, made, first = time.monotonic(), 0, config.lanes
    while time.monotonic() - began < seconds:
        made, first = made + search(first), first + config.lanes
    return made / (time.monotonic() - began)


def measure_teacher(settings: RunSettings, seconds: float, _part: Any) -> float:
    """Games a second of the teacher, over about so many seconds."""
    playing.play_games(settings, 0, 1)
    began, made = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        playing.play_games(settings, made, settings.shard_games)
        made += settings.shard_games
    return made / (time.monotonic() - began)


def asked(config: SelfPlayConfig, network: Path, seat: int = 0) -> tuple[Evaluator, str]:
    """A network of a file, ready to be asked until another one takes its seat, and what its games call it."""
    networks.start_backend()
    from distill.networks import saved

    core = saved.load_core(network)
    key = (seat, networks.arch_of(core), config.precision, config.lanes)
    if key in _KEPT:
        _KEPT[key].take_weights(core)
    else:
        _KEPT[key] = evaluator(config, core)
    return _KEPT[key], called(config, core)


_KEPT: dict[tuple[Any, ...], Evaluator] = {}
"""The process's evaluators, by what a next network of the same seat must share."""


def evaluator(config: SelfPlayConfig, core: keras.Model) -> Evaluator:
    """A network's copy as self-play asks it."""
    from distill.networks.evaluator import BATCH, Evaluator

    return Evaluator(core, min(config.lanes, BATCH), config.precision)


def called(config: SelfPlayConfig, core: keras.Model) -> str:
    """What a network's games call it: its answers depend on its weights and the arithmetic."""
    from distill.networks.evaluator import weights_hash

    return f"{weights_hash(core)}-{config.precision}"

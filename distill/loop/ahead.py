"""Processes that play a loop's games: the next ones while this one learns, or those of an iteration side by side.

Each is asked through one function at a time and lives as long as the run, so that TensorFlow starts once and a network
is traced once. A process has one thread: then an answer of the network does not depend on the others in its batch, nor
a game on how many processes there are.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill import nets
from distill.base import Progress, UserError
from distill.players import gate
from distill.players.players import GuidedPlayer
from distill.rows import mapping, selfplay, shards
from distill.rows.selfplay import SelfPlaySettings
from distill.rows.shards import RunSettings
from distill.search import puct

if TYPE_CHECKING:
    from distill.nets.evaluator import Evaluator

MEASURED_SIMULATIONS = 32
"""Of the searches by which the speed of playing is measured."""

POLL = 1.0
"""Seconds between two looks at what has been played."""

ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")


class Players:
    """So many processes to play in, of one task each at a time; a context manager."""

    def __init__(self, workers: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        options: dict[str, Any] = {"max_workers": 1, "initializer": mapping.start_worker, "initargs": (os.getpid(),)}
        self.pools = [ProcessPoolExecutor(**options, env=ONE_THREAD) for _ in range(workers)]

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self.pools:
            pool.shutdown(wait=False, kill_workers=True)

    def begin(self, work: Callable[..., Any], *arguments: Any, others: int = 0) -> list[Future[Any]]:
        """Call `work(*arguments, part)` in every process; part is (its number, how many there are with others)."""
        parts = len(self.pools) + others
        return [pool.submit(work, *arguments, (number, parts)) for number, pool in enumerate(self.pools)]

    def play(
        self,
        settings: SelfPlaySettings,
        precision: nets.Precision,
        lanes: int,
        network: Path,
        games: int,
        folder: Path,
        progress: Progress,
    ) -> None:
        """Play a network's games in these processes; `selfplay.make` then finds them."""
        futures = self.begin(play, settings, precision, lanes, network, games, folder)
        waiting: Collection[Future[Any]] = futures
        while waiting:
            waiting = wait(waiting, timeout=POLL).not_done
            written = settings.shard_games * len(list(folder.glob("*.parquet")))
            if progress.done < games:
                progress.advance(min(games, written) - progress.done)
        results(futures)

    def arena(
        self,
        settings: SelfPlaySettings,
        precision: nets.Precision,
        lanes: int,
        networks: tuple[Path, Path],
        arena: gate.Arena,
        firsts: Sequence[int],
    ) -> Iterator[gate.Block]:
        """The blocks of an arena that begin with these games, one for each process, candidate and champion given."""
        pairs = zip(self.pools, firsts, strict=False)
        for block in [pool.submit(meet, settings, precision, lanes, networks, arena, first) for pool, first in pairs]:
            yield from results([block])


def results(futures: Sequence[Future[Any]]) -> list[Any]:
    """What the calls return, once all have ended. Raises UserError where a process died."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise UserError("a process that plays has died (out of memory?); the same command goes on") from None


def teach(settings: RunSettings, games: int, folder: Path, part: tuple[int, int]) -> tuple[str, float]:
    """Play this part of the teacher's games; returns who played and seconds."""
    began = time.monotonic()
    indices = range(shards.shard_count(games, settings.shard_games))[part[0] :: part[1]]
    for task in shards.plan(settings, games, folder, indices).todo:
        shards.make_shard(settings, task.index, task.games, folder)
    return "teacher", time.monotonic() - began


def play(
    settings: SelfPlaySettings,
    precision: nets.Precision,
    lanes: int,
    network: Path,
    games: int,
    folder: Path,
    part: tuple[int, int],
) -> tuple[str, float]:
    """Play this part of a network's games; returns what they call the network, and seconds."""
    began = time.monotonic()
    plays, name = asked(precision, lanes, network)
    selfplay.make_part(settings, name, plays, games, folder, part, lanes)
    return name, time.monotonic() - began


def meet(
    settings: SelfPlaySettings,
    precision: nets.Precision,
    lanes: int,
    networks: tuple[Path, Path],
    arena: gate.Arena,
    first: int,
) -> gate.Block:
    """One block of an arena."""
    candidate, champion = (
        GuidedPlayer(name=network.stem, predict=asked(precision, lanes, network, seat)[0], settings=settings)
        for seat, network in enumerate(networks)
    )
    return arena.block(candidate, champion, first)


def measure_search(
    settings: SelfPlaySettings, precision: nets.Precision, lanes: int, network: Path, seconds: float, _part: Any
) -> float:
    """Simulations a second of this network's searches, over about so many seconds; what is compiled is not counted."""
    plays, _ = asked(precision, lanes, network)
    starts = [shards.opening(settings, game) for game in range(lanes)]
    current, mask = (np.array([getattr(each, name) for each in starts], np.uint64) for name in ("current", "mask"))
    search = functools.partial(puct.play, current, mask, settings, plays, steps=2)
    search()
    began, made = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        made += int(search(seed=made).simulations.sum())
    return made / (time.monotonic() - began)


def measure_teacher(settings: RunSettings, seconds: float, _part: Any) -> float:
    """Games a second of the teacher, over about so many seconds."""
    shards.play_games(settings, 0, 1)
    began, made = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        shards.play_games(settings, made, settings.shard_games)
        made += settings.shard_games
    return made / (time.monotonic() - began)


def asked(precision: nets.Precision, lanes: int, network: Path, seat: int = 0) -> tuple[Evaluator, str]:
    """A network of a file, ready to be asked until another one takes its seat, and what its games call it."""
    nets.start_backend()
    from distill.nets import saved
    from distill.nets.evaluator import weights_hash

    core = saved.load_core(network)
    plays = _evaluator(seat, nets.arch_of(core), precision, lanes, core)
    plays.take_weights(core)
    return plays, f"{weights_hash(core)}-{precision}"


_KEPT: dict[tuple[Any, ...], Any] = {}


def _evaluator(seat: int, arch: str, precision: nets.Precision, lanes: int, core: Any) -> Evaluator:
    """The process's evaluator of networks of this shape in this seat."""
    from distill.nets.evaluator import BATCH, Evaluator

    key = (seat, arch, precision, lanes)
    if key not in _KEPT:
        _KEPT[key] = Evaluator(core, min(lanes, BATCH), precision)
    return _KEPT[key]

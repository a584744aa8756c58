"""The games of an iteration: the teacher or a network plays shard after shard on workers.

    with games.playing(pool, player, end, folder) as finish:     # shards appear in the folder while this thread learns
        ...
        finish()                                                 # {"games": ..., "rows": ..., "games_hash": ...}

A task is one shard or a few. Workers return the files of their shards, which this process writes; networks travel to
the workers of a cluster by the hash of their file. A worker that dies costs the shards of its task. Games that are in
flight when a clock ends the iteration are given up.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from distill import networks
from distill.alphazero import run_files, workers
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, executors, listed, run_folder
from distill.common.executors import KilledError, WorkerError, Workers
from distill.game import outputs
from distill.game.rules import Bitboards
from distill.games import selfplay, shards
from distill.games.shards import RunSettings

if TYPE_CHECKING:
    from distill.alphazero.iterations import End

POLL = 1.0
"""Seconds between two looks at whether games are finished: a wait without end would ignore Ctrl-C."""


class TimeIsOverError(Exception):
    """Ends the games of a worker."""


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """The player whose search needs no network.

    Attributes:
      files: the files that a worker needs to play.
      at_once: shards that a worker plays side by side.
    """

    settings: RunSettings
    files: Sequence[Path] = ()
    at_once: int = 1

    @property
    def run(self) -> Mapping[str, Any]:
        """The identity of the games."""
        return shards.identity(self.settings)

    def play(self, todo: Sequence[shards.Task], _seconds: float) -> dict[str, bytes]:
        """In a worker: the files of these shards by name, or of as many as are finished after so many seconds.

        Shards of the teacher take a second, so it finishes them.
        """
        return {task.name: shards.make_shard(self.settings, self.run, task)[1] for task in todo}


@dataclass(frozen=True, kw_only=True)
class Network:
    """A player whose search a network guides; as `Teacher`."""

    settings: SelfPlayConfig
    run: Mapping[str, Any]
    files: Sequence[Path]

    @property
    def at_once(self) -> int:
        return max(1, self.settings.machine.lanes // self.settings.shard_games)

    def play(self, todo: Sequence[shards.Task], seconds: float, network: Path) -> dict[str, bytes]:
        ends = time.monotonic() + seconds  # now, because to load a network takes a second
        evaluate = workers.evaluator(self.settings, network)

        def in_time(current: Bitboards, mask: Bitboards) -> Any:
            if time.monotonic() > ends:
                raise TimeIsOverError
            return evaluate(current, mask)

        lanes, number = self.settings.machine.lanes, sum(task.games for task in todo)
        finished = dict[str, bytes]()
        with suppress(TimeIsOverError), outputs.named(str(network)), Progress(number, "games") as progress:
            keep, advance = finished.__setitem__, progress.advance
            selfplay.make_shards(self.settings, self.run, in_time, todo, keep, lanes=lanes, advance=advance)
        return finished


Player: TypeAlias = Teacher | Network


def network_player(config: SelfPlayConfig, network: Path) -> Network:
    """The player with the network in a file. Raises UserError for a network without a value head."""
    networks.start_backend()
    from distill.networks import heads, saved
    from distill.networks.evaluator import weights_hash

    core = saved.load_core(network)
    heads.require_value(core, str(network))
    # The games depend on the weights, not on the name of the file.
    run = selfplay.identity(config, f"{weights_hash(core)}-{config.machine.precision}")
    return Network(settings=config, run=run, files=[network])


@contextmanager
def playing(
    pool: Workers, player: Player | None, end: End, folder: Path, *, shows: bool = False
) -> Iterator[Callable[[], dict[str, Any]]]:
    """Play into the folder until the end, while the block runs; None: nobody plays. `shows`: with progress.

    Yields the function that waits for the games and returns the numbers of `games` and `rows`, and `games_hash`. It
    raises DataError where a shard has disappeared meanwhile, and WorkerError where workers died at every try.
    """
    if player is None:
        yield lambda: {"games": 0, "rows": 0, "games_hash": None}
        return
    with shards.opened(folder, player.settings, end.games, player.run) as record:
        yield partial(finish, pool.begin(play, pool, player, end, record, shows))


def finish(games: Future[dict[str, Any]]) -> dict[str, Any]:
    """Wait for games that were begun."""
    while wait([games], timeout=POLL).not_done:
        pass
    return games.result()


def play(pool: Workers, player: Player, end: End, record: run_folder.Run, shows: bool) -> dict[str, Any]:
    """Let the workers play what the folder of the record lacks, until the end; returns what `playing` says."""
    known = shards.plan(record, end.games)
    record.begin()
    begun = list[Sequence[shards.Task]]()
    files = [pool.file(path) for path in player.files]

    def calls() -> Iterator[tuple[Any, ...]]:
        for todo, seconds in _tasks(player, end, known, pool.number):
            begun.append(todo)
            record.files = sorted({*record.files, *(task.name for task in todo)})
            record.begin()  # recorded before they are written
            yield player.play, todo, seconds, *files

    done = sum(shard.games for shard in known.done)
    bar = Progress(known.games, "games", done) if shows and pool.number > 1 else None
    try:
        with bar or nullcontext():
            # With a clock, the next task begins or not when a result has come.
            for number, contents in executors.completed(pool, workers.alone, calls()):
                for name, content in contents.items():
                    record.storage.write(name, content)
                if bar:
                    bar.advance(sum(task.games for task in begun[number]))
    except KilledError as error:
        missing = listed([task.name for number in error.numbers for task in begun[number]])
        raise WorkerError(f"{record.storage}: {missing}: {error}; the same command resumes") from error
    # Shards after the first one that was given up go, so that a number says which games there are.
    names, further = record.storage.names(), [task for todo in begun for task in todo if task not in known.todo]
    kept = [*itertools.takewhile(lambda task: task.name in names, further)]
    for task in further[len(kept) :]:
        record.storage.delete(task.name)
    games = known.games + sum(task.games for task in kept)
    result = shards.finish(record, shards.plan(record, games).done, games)
    return {"games": result["games"], "rows": result["rows"], "games_hash": run_files.games_hash(result)}


def _tasks(player: Player, end: End, known: shards.Plan, workers: int) -> Iterator[tuple[Sequence[shards.Task], float]]:
    """A few shards a task and the seconds for it: what the folder lacks, then more while the end has seconds left."""
    few = max(1, min(player.at_once, len(known.todo) // workers))  # every worker gets some
    for first in range(0, len(known.todo), few):
        yield known.todo[first : first + few], math.inf
    size = player.settings.shard_games
    for first in itertools.count(known.games // size, player.at_once):
        if not (seconds := end.seconds_left()):
            return
        yield [shards.Task(index=first + number, games=size) for number in range(player.at_once)], seconds

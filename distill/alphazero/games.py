"""The games of an iteration: the teacher or a network plays shard after shard on workers.

    with games.opened(player, end.games, folder) as record:
        playing = games.begin(pool, player, end, record)         # shards appear in the folder while this thread learns
        ...
        games.finish(playing)                                    # {"games": ..., "rows": ..., "games_hash": ...}

A task is one shard or a few. Processes of this machine write each shard when it is finished; the workers of a cluster,
which share no folder with this process, return the content, and networks travel there by the hash of their file. A
worker that dies costs the shards that it has not finished. Games that are in flight when a clock ends the iteration are
given up.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from distill import networks
from distill.alphazero import run_files, workers
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, executors, listed, run_folder, write_atomically
from distill.common.cluster import Cluster
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

    def play(self, todo: Sequence[shards.Task], seconds: float, folder: Path) -> None:
        """In a worker: write these shards into the folder, or as many as are finished after so many seconds.

        Shards of the teacher take a second, so it finishes them.
        """
        for task in todo:
            write_atomically(folder / task.name, shards.make_shard(self.settings, self.run, task)[1])


@dataclass(frozen=True, kw_only=True)
class Network:
    """A player whose search a network guides; as `Teacher`."""

    settings: SelfPlayConfig
    run: Mapping[str, Any]
    files: Sequence[Path]

    @property
    def at_once(self) -> int:
        return max(1, self.settings.machine.lanes // self.settings.shard_games)

    def play(self, todo: Sequence[shards.Task], seconds: float, folder: Path, network: Path) -> None:
        ends = time.monotonic() + seconds  # now, because to load a network takes a second
        evaluate = workers.evaluator(self.settings, network)

        def in_time(current: Bitboards, mask: Bitboards) -> Any:
            if time.monotonic() > ends:
                raise TimeIsOverError
            return evaluate(current, mask)

        lanes, number = self.settings.machine.lanes, sum(task.games for task in todo)
        with suppress(TimeIsOverError), outputs.named(str(network)), Progress(number, "games") as progress:
            selfplay.make_shards(self.settings, self.run, in_time, todo, folder, lanes=lanes, advance=progress.advance)


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


def opened(
    player: Player, games: int, folder: Path, *, restart: bool = False
) -> AbstractContextManager[run_folder.Run]:
    """Hold the folder of games; with a clock, `games` is one shard."""
    return shards.opened(folder, player.settings, games, player.run, restart=restart)


def begin(
    pool: Workers, player: Player, end: End, record: run_folder.Run, *, shows: bool = False
) -> Future[dict[str, Any]]:
    """Start to play what the folder lacks, until the end; `shows`: with progress."""
    known = shards.plan(record, end.games)
    record.begin()
    return pool.begin(_play, pool, player, end, record, known, shows)


def finish(playing: Future[dict[str, Any]] | None) -> dict[str, Any]:
    """Wait for games; returns the numbers of `games` and `rows`, and `games_hash`. None: nobody plays.

    Raises DataError where a shard has disappeared meanwhile, and WorkerError where workers died at every try.
    """
    if playing is None:
        return {"games": 0, "rows": 0, "games_hash": None}
    while wait([playing], timeout=POLL).not_done:
        pass
    return playing.result()


def _play(
    pool: Workers, player: Player, end: End, record: run_folder.Run, known: shards.Plan, shows: bool
) -> dict[str, Any]:
    """Let the workers play until the end; returns what `finish` does."""
    begun: list[shards.Task] = []
    files, replaced = [pool.file(path) for path in player.files], {*record.storage.names()}
    # Processes of this machine write each shard when its games have ended, so that a killed run keeps it.
    place = None if isinstance(pool, Cluster) else Path(str(record.storage))

    def calls() -> Iterator[tuple[Any, ...]]:
        for todo, seconds in _tasks(player, end, known, pool.number):
            begun.extend(todo)
            new = [task.name for task in todo if task.name not in record.files]
            if new:  # recorded before they are written
                record.files = [*record.files, *new]
                record.begin()
            yield play, player, todo, seconds, place, replaced, *files

    done = sum(shard.games for shard in known.done)
    bar = Progress(known.games, "games", done) if shows and pool.number > 1 else None
    try:
        with bar or nullcontext():
            # With a clock, the next task begins or not when a result has come.
            for _, contents in executors.completed(pool, workers.alone, calls()):
                for name, content in contents.items():
                    if content is not None:
                        record.storage.write(name, content)
                if bar:
                    bar.advance(sum(task.games for task in begun if task.name in contents))
    except KilledError as error:
        written = {*record.storage.names()}
        missing = listed([task.name for task in begun if task.name not in written])
        raise WorkerError(f"{record.storage}: {missing}: {error}; the same command resumes") from error
    return _recorded(player, record, known, begun)


def _recorded(
    player: Player, record: run_folder.Run, known: shards.Plan, begun: Sequence[shards.Task]
) -> dict[str, Any]:
    """Record the games that were played; returns what `finish` does.

    Shards after the first one that was given up go, so that a number says which games there are.
    """
    names, further = record.storage.names(), [task for task in begun if task not in known.todo]
    kept = [*itertools.takewhile(lambda task: task.name in names, further)]
    for task in further[len(kept) :]:
        record.storage.delete(task.name)
    number = known.games + sum(task.games for task in kept)
    result = shards.finish(record, shards.plan(record, number).done, number)
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


def play(
    player: Player,
    todo: Sequence[shards.Task],
    seconds: float,
    folder: Path | None,
    replaced: Collection[str],
    *files: Path,
) -> dict[str, bytes | None]:
    """In a worker: play shards, as many as are finished in time.

    Args:
      folder: receives each shard when its games have ended; None: the workers share no folder with the run.
      replaced: names of shards that are played although the folder has them. Others are there from an earlier try.
      files: the player's.

    Returns: by name, the content of the shards that are finished; None where they are in the folder.
    """
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory() as place:
        paths = {task: Path(place) / task.name for task in todo}
        missing = [task for task in todo if task.name in replaced or not paths[task].exists()]
        player.play(missing, seconds, Path(place), *files)
        return {path.name: None if folder else path.read_bytes() for path in paths.values() if path.exists()}

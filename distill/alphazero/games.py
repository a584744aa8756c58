"""The games of an iteration: the teacher or a network plays shard after shard on workers.

    with games.playing(pool, player, end, folder) as finish:     # shards appear in the folder while this thread learns
        ...
        finish()                                                 # {"games": ..., "rows": ..., "games_hash": ...}

A task is one shard or a few. Networks travel to the workers of a cluster by the hash of their file. A worker that dies
costs the shards of its task. Games that are in flight when a clock ends the iteration are given up.
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
from typing import TYPE_CHECKING, Any

from distill import networks
from distill.alphazero import run_files, workers
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, run_folder
from distill.common.executors import Workers
from distill.common.progress import silent
from distill.game import outputs
from distill.game.rules import Bitboards
from distill.games import schema, selfplay, shards
from distill.games.shards import RunSettings

if TYPE_CHECKING:
    from distill.alphazero.iterations import End

POLL = 1.0
"""Seconds between two looks at whether games are finished: a wait without end would ignore Ctrl-C."""


class TimeIsOverError(Exception):
    """Ends the games of a worker."""


@dataclass(frozen=True, kw_only=True)
class Player:
    """Who plays: the teacher, or a network.

    Attributes:
      run: the identity of the games.
      play: in a worker, (tasks, seconds, files) → their shards, or as many as are finished after so many seconds.
      files: the files that a worker needs to play.
      at_once: shards that a worker plays side by side.
    """

    settings: RunSettings | SelfPlayConfig
    run: Mapping[str, Any]
    play: Callable[..., list[shards.Encoded]]
    files: Sequence[Path] = ()
    at_once: int = 1


def teacher(settings: RunSettings) -> Player:
    """The player whose search needs no network. Its shards take a second, so it finishes them."""
    run = shards.identity(settings)
    return Player(settings=settings, run=run, play=partial(shards.make_shards, settings, run))


def network_player(config: SelfPlayConfig, network: Path) -> Player:
    """The player with the network in a file. Raises UserError for a network without a value head."""
    networks.start_backend()
    from distill.networks import heads, saved
    from distill.networks.evaluator import weights_hash

    core = saved.load_core(network)
    heads.require_value(core, str(network))
    # The games depend on the weights, not on the name of the file.
    run = selfplay.identity(config, f"{weights_hash(core)}-{config.machine.precision}")
    at_once = max(1, config.machine.lanes // config.shard_games)
    return Player(settings=config, run=run, play=partial(guided, config, run), files=[network], at_once=at_once)


def guided(
    config: SelfPlayConfig, run: Mapping[str, Any], todo: Sequence[shards.Task], seconds: float, network: Path
) -> list[shards.Encoded]:
    """Play shards by a search that the network guides."""
    ends = time.monotonic() + seconds  # now, because to load a network takes a second
    evaluate, lanes = workers.evaluator(config, network), config.machine.lanes

    def in_time(current: Bitboards, mask: Bitboards) -> Any:
        if time.monotonic() > ends:
            raise TimeIsOverError
        return evaluate(current, mask)

    encoded = list[shards.Encoded]()
    games = sum(task.games for task in todo)
    with suppress(TimeIsOverError), outputs.named(str(network)), Progress(games, "games") as progress:
        keep, advance = encoded.append, progress.advance
        selfplay.make_shards(config, run, in_time, todo, keep, lanes=lanes, advance=advance)
    return encoded


@contextmanager
def playing(pool: Workers, player: Player | None, end: End, folder: Path) -> Iterator[Callable[[], dict[str, Any]]]:
    """Play into the folder until the end, while the block runs; None: nobody plays.

    Yields the function that waits for the games and returns the numbers of `games` and `rows`, and `games_hash`. It
    raises DataError where workers died at every try.
    """
    if player is None:
        yield lambda: {"games": 0, "rows": 0, "games_hash": None}
        return
    with shards.opened(folder, player.settings, end.games, player.run) as record:
        yield partial(finish, pool.begin(play, pool, player, end, record))


def finish(games: Future[dict[str, Any]]) -> dict[str, Any]:
    """Wait for games that were begun."""
    while wait([games], timeout=POLL).not_done:
        pass
    return games.result()


def play(pool: Workers, player: Player, end: End, record: run_folder.Run) -> dict[str, Any]:
    """Let the workers play what the folder of the record lacks, until the end; returns what `playing` says."""
    known, work = shards.plan(record, end.games), partial(workers.alone, player.play)
    files = [pool.file(path) for path in player.files]
    calls = ((*call, *files) for call in _tasks(player, end, known, pool.number))
    # The learner shows its progress while others play, and without processes the player does.
    done = sum(shard.games for shard in known.done)
    bar = Progress(known.games, "games", done) if end.steps is None and pool.number > 1 else None
    with bar or nullcontext():
        written = shards.make(pool, record, work, calls, bar.advance if bar else silent)
    entries = {shard.name: shard for shard in (*known.done, *written)}
    # Shards after the first one that was given up go, so that a number says which games there are.
    kept = [*itertools.takewhile(entries.__contains__, map(schema.shard_name, itertools.count()))]
    for name in entries.keys() - kept:
        record.storage.delete(name)
    result = shards.finish(record, [entries[name] for name in kept])
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

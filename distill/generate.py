"""Play games with the teacher and store every labelled position.

    python -m distill.generate --games 5000

writes shards of rows (`distill/games/schema.py`) and, last, a manifest to `data/games/`. Started again it
goes on where it was stopped; more `--games` extend a finished run. `--cluster` has the workers of a Dask cluster
play, `--shard-index` and `--num-shards` make one part of a run (docs/scaling.md).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from distill.common import DataError, Progress, cli, cores, duration, folders, json_bytes, say, workers
from distill.common.cli import check, setting
from distill.games import checkpoints, executors, schema, shards
from distill.games.schema import Shard
from distill.games.shards import RunSettings, Task
from distill.games.storage import Folder, Storage, storage_of
from distill.mcts import cache, teacher

PUBLISHED = {
    "simulations": 10_000, "votes": 3, "rollout": "heuristic", "exploration": 1.0, "noise_fraction": 0.25,
    "noise_at": "label", "dirichlet_alpha": 1.0, "mcts_solver": False, "savings": "off", "opening_moves": (1, 8),
}  # fmt: skip
"""“UT Project: Connect 4”, and our reading where it gives no number."""
PRESETS: cli.Presets = {
    "smoke": cli.smoke(games=12, simulations=100, shard_games=4, out=str(cli.SMOKE_DATA / "games")),
    "published": cli.Preset("the search of the UT Project, with our reading where it gives no number", PUBLISHED),
    "cheap": cli.Preset(
        "one short search per position, for many games in little time",
        {"simulations": 1000, "votes": 1, "shard_games": 2000, "out": "data/cheap-games"},
    ),
}


@dataclass(frozen=True, kw_only=True)
class GenerateConfig(RunSettings):
    """Play games with the teacher and store every labelled position."""

    games: int = setting(5000, "games in the finished run")
    workers: int | None = setting(None, "processes; none: one a core")
    out: str = setting("data/games", "folder of the shards and the manifest, or a URL such as s3://bucket/games")
    restart: bool = setting(False, "delete what the folder holds of a run and begin anew")
    cluster: str | None = setting(None, "address of a Dask scheduler whose workers play, such as tcp://head:8786")
    shard_index: int | None = setting(None, "make only the part of this number, from 0, of a run cut into --num-shards")
    num_shards: int = setting(1, "parts, each made by a command of its own, such as a job of a SLURM array")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(1 <= self.games <= 10**9, "games", self.games, "from 1 to 1,000,000,000")
        check(self.workers is None or 1 <= self.workers <= 1024, "workers", self.workers, "from 1 to 1024, or none")
        check(self.out.strip() != "", "out", "(nothing)", "a folder or a URL")
        check(1 <= self.num_shards <= 10**6, "num_shards", self.num_shards, "from 1 to 1,000,000")
        part = self.shard_index
        if part is None:
            check(self.num_shards == 1, "num_shards", self.num_shards, "given together with --shard-index")
        else:
            last = self.num_shards - 1
            check(0 <= part <= last, "shard_index", part, f"from 0 to {last}, with --num-shards {self.num_shards}")
            check(not self.restart, "restart", "with --shard-index", "left out: it would delete what other parts made")


def run(config: GenerateConfig) -> str:
    """Make what is missing of the run, or of one part of it, then the manifest once nothing is missing."""
    place = storage_of(config.out)
    is_part = config.shard_index is not None
    with shards.locked(place, shared=is_part):
        shards.require(place, folders.GAMES)
        if config.restart:
            if config.cluster:
                executors.check_cluster(config.cluster)
            else:
                workers.check()
            shards.delete(place)
        there = int(before["games"]) if (before := _manifest(config, place)) else 0
        # Fewer never take any away, nor where an extension was cut off, after which there is no manifest.
        games = max(config.games, there, shards.games_there(shards.identity(config), place))
        indices = range(shards.shard_count(games, config.shard_games))[config.shard_index :: config.num_shards]
        todo = shards.plan(config, games, place, indices if is_part else None)
        for line in todo.damaged:
            say(f"made again: {line}")
        if not todo.todo and (manifest := _manifest(config, place)) and manifest["games"] == games:
            return f"finished before: {manifest['games']:,} games, {manifest['rows']:,} rows in {place}"
        place.delete(schema.MANIFEST)
        again = dataclasses.replace(config, cluster=None, shard_index=None, num_shards=1)
        place.write("config.json", json_bytes(folders.stored(folders.GAMES, again)))
        made, executed, seconds = _make(config, todo, place)
        done = [*todo.done, *made]
        if is_part:
            done, missing = _with_other_parts(config, games, place)
            if missing:
                return (
                    f"part {config.shard_index} of {config.num_shards} is made: {len(indices):,} shards in {place} "
                    f"({duration(seconds)}); {missing:,} shards of other parts are missing, the last part to end "
                    "writes the manifest"
                )
        manifest = shards.declare(shards.identity(config), done, place)
    speed = f"{executed / seconds / 1e6:.2f} M simulations/s"
    if config.savings != "off":
        saved = sum(shard.rows for shard in made) * config.simulations * config.votes
        nominal = executed * saved / max(1, sum(shard.simulations for shard in made))
        speed += f" ({nominal / seconds / 1e6:.2f} M/s nominal)"
    return f"{manifest['games']:,} games, {manifest['rows']:,} rows in {place} ({duration(seconds)}, {speed})"


def _manifest(config: GenerateConfig, place: Storage) -> dict[str, Any] | None:
    """The manifest of this run; None where there is none, or one that cannot be read or is of another run."""
    try:
        content = place.read(schema.MANIFEST)
    except FileNotFoundError:
        return None
    try:
        manifest = schema.parse_manifest(f"{place}/{schema.MANIFEST}", content)
    except DataError as error:
        say(f"made again: {error}")
        return None
    return manifest if manifest.get("identity") == shards.identity(config) else None


def _with_other_parts(config: GenerateConfig, games: int, place: Storage) -> tuple[list[Shard], int]:
    """All shards of the run and how many it lacks; they are read only once none is missing."""
    names = place.names()
    wanted = range(shards.shard_count(games, config.shard_games))
    if missing := sum(shards.shard_name(index) not in names for index in wanted):
        return [], missing
    whole = shards.plan(config, games, place)
    return whole.done, len(whole.todo)


def _make(config: GenerateConfig, todo: shards.Plan, place: Storage) -> tuple[list[Shard], int, float]:
    """Make what is missing; returns the shards, and the simulations and seconds that this process took."""
    settings, made = shards.settings_of(config), list[Shard]()
    there = sum(shard.games for shard in todo.done)
    before = checkpoints.counts(shards.checkpoints_of(settings, todo.todo, place))
    if todo.todo and not config.cluster:
        cache.prepare("teacher")
        teacher.warm_up()
    began = time.monotonic()

    def executed() -> int:
        return sum(shard.simulations for shard in made) - before.simulations

    # Many games begin at once, so the first ones to end say nothing of the rate. Clusters and URLs count whole shards.
    by_game = isinstance(place, Folder) and not config.cluster
    games = there + sum(task.games for task in todo.todo)
    with Progress(games, "games", done=there + before.games, warm_up=by_game) as progress:

        def show(in_hand: Iterable[Task] = ()) -> None:
            now = checkpoints.counts(shards.checkpoints_of(settings, in_hand, place))
            simulations = executed() + now.simulations
            rate = simulations / (time.monotonic() - began) / 1e6
            ended = there + now.games + sum(shard.games for shard in made)
            # The call after each shard counts no unfinished games; the number shown must not fall.
            progress.reach(max(ended, progress.done), f"{rate:.2f} M simulations/s" if simulations > 0 else "")

        for shard in _mapped(config, settings, todo, place, show):
            made.append(shard)
            show()
    return made, executed(), time.monotonic() - began


def _mapped(
    config: GenerateConfig, settings: RunSettings, todo: shards.Plan, place: Storage, watch: executors.Watch
) -> Iterator[Shard]:
    """The shards still to be made, by the cluster or by processes of this machine."""
    if not todo.todo:
        return iter(())
    if config.cluster:
        return executors.make_on_cluster(settings, todo.todo, place, config.cluster, watch=watch)
    return executors.make_locally(settings, todo.todo, place, config.workers or cores(), watch=watch)


main = cli.Command("generate", GenerateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

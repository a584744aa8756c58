"""Play games with a search, or with your own engine, and store every labelled position.

    python -m distill.generate --games 5000
    python -m distill.generate --labeller my_engine:label      # games/labeller.py says what label returns

writes shards of rows (`games/schema.py`) and, last, a manifest to `data/games/`. Started again, it resumes; more
`--games` extend a finished run. `--cluster` plays on the workers of a Dask cluster, `--shard-index` and `--num-shards`
make one part of a run (docs/scaling.md).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import DataError, Progress, cli, cores, duration, folders, json_bytes, say, workers
from distill.common.cli import check, setting
from distill.games import checkpoints, executors, reader, runs, schema, shards
from distill.games.runs import RunSettings
from distill.games.schema import Shard
from distill.games.shards import Task
from distill.games.storage import Folder, Storage, storage_of
from distill.mcts import compiling

PUBLISHED = {
    "simulations": 10_000, "votes": 3, "rollout": "heuristic", "exploration": 1.0, "noise_fraction": 0.25,
    "noise_at": "label", "dirichlet_alpha": 1.0, "mcts_solver": False, "opening_moves": (1, 8),
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
class GenerateConfig(RunSettings, shown=("games", "workers", "out", "restart")):
    """Play games with a search and store every labelled position."""

    games: int = setting(5000, "games in the finished run")
    workers: int | None = setting(None, "processes; none: one a core")
    out: str = setting("data/games", "folder of the shards and the manifest, or a URL such as s3://bucket/games")
    restart: bool = setting(False, "delete the run in the folder and start from scratch")
    cluster: str | None = setting(None, "address of a Dask scheduler whose workers play, such as tcp://head:8786")
    shard_index: int | None = setting(None, "index, from 0, of the only part to make of a run cut into --num-shards")
    num_shards: int = setting(1, "parts of the run, each made by its own command, such as a job of a SLURM array")

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


def generate_games(out: str | Path = "data/games", *, games: int = 5000, **settings: Any) -> reader.Run:
    """Play games and store every labelled position, as `python -m distill.generate` does; returns the finished run.

        run = distill.generate_games("data/mine", games=100, simulations=500)
        run = distill.generate_games("data/engine", games=100, labeller="my_engine:label")

    Args:
      out: a folder; where it holds the run already, nothing is played, and more games extend it.
      settings: any of `python -m distill.generate --help`, with underscores: simulations=500, workers=2.

    Works in a notebook and needs no main guard. Raises ValueError for a wrong setting and UserError for a folder that
    holds something else.
    """
    run(GenerateConfig(out=str(out), games=games, **settings))
    return reader.open_run(Path(out))


def run(config: GenerateConfig) -> str:
    """Make what is missing of the run, or of one part of it, then the manifest once nothing is missing."""
    storage, identity = storage_of(config.out), runs.identity(config)
    is_part = config.shard_index is not None
    with shards.locked(storage, shared=is_part):
        shards.require(storage, folders.GAMES)
        if config.restart:
            if config.cluster:
                executors.check_cluster(config.cluster)
            else:
                workers.check()
            shards.delete(storage)
        before = _manifest(identity, storage)
        # Never shrink a run, even when an interrupted extension left no manifest.
        games = max(config.games, before["games"] if before else 0, shards.games_there(identity, storage))
        indices = range(shards.shard_count(games, config.shard_games))[config.shard_index :: config.num_shards]
        plan = shards.plan(config, games, storage, indices if is_part else None)
        for line in plan.damaged:
            say(f"rebuilding: {line}")
        if not plan.todo and before and before["games"] == games:
            return f"finished before: {before['games']:,} games, {before['rows']:,} rows in {storage}"
        storage.delete(schema.MANIFEST)
        again = dataclasses.replace(config, cluster=None, shard_index=None, num_shards=1)
        storage.write("config.json", json_bytes(folders.stored(folders.GAMES, again)))
        made, simulations, seconds = _make(config, plan, storage)
        done = [*plan.done, *made]
        if is_part:
            done, missing = _with_other_parts(config, games, storage)
            if missing:
                return (
                    f"part {config.shard_index} of {config.num_shards} is made: {len(indices):,} shards in {storage} "
                    f"({duration(seconds)}); {missing:,} shards of other parts are missing, the last part to end "
                    "writes the manifest"
                )
        manifest = shards.declare(identity, done, storage)
    speed = f"{simulations / seconds / 1e6:.2f} M simulations/s"
    return f"{manifest['games']:,} games, {manifest['rows']:,} rows in {storage} ({duration(seconds)}, {speed})"


def _manifest(identity: dict[str, Any], storage: Storage) -> dict[str, Any] | None:
    """The manifest of this run; None where there is none, or one that cannot be read or is of another run."""
    try:
        manifest = schema.parse_manifest(f"{storage}/{schema.MANIFEST}", storage.read(schema.MANIFEST))
    except FileNotFoundError:
        return None
    except DataError as error:
        say(f"rebuilding: {error}")
        return None
    return manifest if manifest.get("identity") == identity else None


def _with_other_parts(config: GenerateConfig, games: int, storage: Storage) -> tuple[list[Shard], int]:
    """All shards of the run and how many are missing; they are read only once none is missing."""
    names = storage.names()
    wanted = range(shards.shard_count(games, config.shard_games))
    if missing := sum(shards.shard_name(index) not in names for index in wanted):
        return [], missing
    whole = shards.plan(config, games, storage)
    return whole.done, len(whole.todo)


def _make(config: GenerateConfig, plan: shards.Plan, storage: Storage) -> tuple[list[Shard], int, float]:
    """Make what is missing; returns the shards, and the simulations and seconds that this took."""
    settings, made = runs.settings_of(config), list[Shard]()
    if not plan.todo:
        return made, 0, 1e-9
    there = sum(shard.games for shard in plan.done)
    before = checkpoints.counts(shards.checkpoints_of(settings, plan.todo, storage))
    if not config.cluster and not config.labeller:
        compiling.prepare("uct", config.engine)
    began = time.monotonic()

    # The first games end together, so they say nothing about the rate. Clusters and URLs count whole shards.
    by_game = isinstance(storage, Folder) and not config.cluster
    games = there + sum(task.games for task in plan.todo)
    with Progress(games, "games", done=there + before.games, warm_up=by_game) as progress:

        def show(tasks: Iterable[Task] = ()) -> None:
            """Show finished games, of finished shards and of the shards that are being made."""
            now = checkpoints.counts(shards.checkpoints_of(settings, tasks, storage))
            simulations = sum(shard.simulations for shard in made) - before.simulations + now.simulations
            rate = simulations / (time.monotonic() - began) / 1e6
            ended = there + now.games + sum(shard.games for shard in made)
            # The call after each shard counts no unfinished games; the number shown must not fall.
            progress.reach(max(ended, progress.done), f"{rate:.2f} M simulations/s" if simulations > 0 else "")

        if config.cluster:
            found = executors.make_on_cluster(settings, plan.todo, storage, config.cluster, watch=show)
        else:
            found = executors.make_locally(settings, plan.todo, storage, config.workers or cores(), watch=show)
        for shard in found:
            made.append(shard)
            show()
    executed = sum(shard.simulations for shard in made) - before.simulations
    return made, executed, time.monotonic() - began


main = cli.Command("generate", GenerateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

"""Play games with a search, or with your own engine, and store every labelled position.

    python -m distill.generate --games 5000
    python -m distill.generate --labeller my_engine:label      # mcts/labeller.py says what label returns

writes shards of rows (`games/schema.py`) to `data/games/`, and last the result into the folder's record `_run.json`.
Started again, it resumes; more `--games` extend a finished run. `--cluster` plays on the workers of a Dask cluster
(docs/scaling.md).
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("generate")

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from distill.common import Progress, cli, cores, executors, listed
from distill.common.cluster import Cluster
from distill.common.settings import CommandLine, NameOrPath, build
from distill.games import reader, shards
from distill.games.settings import NOISE, RunSettings
from distill.mcts import compiling
from distill.mcts.settings import UctSettings

SEARCH = UctSettings()
"""The search by default."""


def _few(config: RunSettings) -> int:
    """Simulations for `--preset smoke`; a labeller reads none."""
    return SEARCH.simulations if config.labeller else 100


PRESETS = cli.smoke(games=12, simulations=_few, shard_games=4, out=str(cli.SMOKE_DATA / "games"))


class GenerateConfig(RunSettings):
    """Play games with a search and store every labelled position."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=(
            *("games", "out", "restart", "workers", "cluster", "labeller", "opening_moves", "seed", "shard_games"),
            *("search.simulations", "search.votes", "search.rollout", "search.noise_fraction", "search.noise_at"),
        ),
        examples=("--games 5000", "--votes 1 --set search.exploration=1.4"),
        page="docs/train.md",
    )
    games: int = Field(5000, ge=1, le=1_000_000_000)
    """games in the finished run"""
    workers: int | None = Field(None, ge=1, le=1024)
    """processes; default: one per core"""
    out: NameOrPath = Field("data/games", title="FOLDER|URL")
    """where shards go, such as s3://bucket/games"""
    restart: bool = False
    """delete the run in the folder and start from scratch"""
    cluster: str | None = Field(None, title="URL")
    """Dask scheduler whose workers play: tcp://head:8786"""

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        read = NOISE if self.search.noise_at == "move" else ()
        unread = [name for name, value in self.search if name not in read and value != getattr(SEARCH, name)]
        if self.labeller and unread:
            hint = "your engine labels, and noise acts with --noise-at move"
            raise ValueError(f"--labeller does not read {listed(unread)}: {hint}")
        return self


def generate_games(out: str | Path = "data/games", *, games: int = 5000, **settings: Any) -> reader.GamesRun:
    """Play games and store every labelled position, as `python -m distill.generate` does; returns the finished run.

        run = distill.generate_games("data/mine", games=100, simulations=500)
        run = distill.generate_games("data/engine", games=100, labeller="my_engine:label")

    Args:
      out: a folder; where it holds the run already, nothing is played, and more games extend it.
      settings: flags of `python -m distill.generate --help`, with underscores, such as simulations=500, and objects of
        other settings: search={"exploration": 1.4}.

    Works in a notebook and needs no main guard. Raises ValueError for a wrong setting and UserError for a folder that
    holds something else.
    """
    if "://" in str(out):
        raise ValueError(f"out {out}: name a folder; only the command `generate` writes to URLs")
    run(build(GenerateConfig, settings | {"out": out, "games": games}))
    return reader.open_run(Path(out))


def run(config: GenerateConfig) -> str:
    """Play what is missing of the run, then record the result."""
    identity = config.games_identity()
    stored = config.replace(cluster=None, restart=False)
    with shards.opened(config.out, stored, config.games, identity, restart=config.restart) as folder:
        plan = shards.plan(folder, config.games)
        if folder.result and not plan.todo:
            return f"finished before: {plan.games:,} games, {folder.result['rows']:,} rows in {config.out}"
        if config.labeller is None:
            compiling.prepare("uct")
        processes = max(1, min(config.workers or cores(), len(plan.todo)))
        started = Cluster(config.cluster, shards.versions_here) if config.cluster else executors.started(processes)
        with started as workers, Progress(plan.games, "games", sum(shard.games for shard in plan.done)) as progress:
            calls, work = [([task],) for task in plan.todo], partial(shards.play_shards, config, identity)
            result = shards.complete(folder, plan, workers, work, calls, progress.advance)
    return f"{result['games']:,} games, {result['rows']:,} rows in {config.out}"


main = cli.Command("distill generate", GenerateConfig, run, PRESETS)

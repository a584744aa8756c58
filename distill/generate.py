"""Play games with the teacher and store every labelled position.

    python -m distill.generate --games 5000

writes shards of rows (`distill/data/schema.py`) and, last, a manifest to `data/games/`. Started again it
goes on where it was stopped; more `--games` extend a finished run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill import cli
from distill.cli import check, setting
from distill.data import schema, shards
from distill.data.shards import RunSettings
from distill.search import teacher

PRESETS = {
    "smoke": {"games": 12, "simulations": 100, "shard_games": 4, "out": Path("data/smoke-games")},
    "cheap": {"simulations": 1000, "votes": 1, "shard_games": 2000, "out": Path("data/cheap-games")},
}


@dataclass(frozen=True, kw_only=True)
class GenerateConfig(RunSettings):
    """Play games with the teacher and store every labelled position."""

    games: int = setting(5000, "games in the finished run")
    workers: int | None = setting(None, "processes; none: one a core")
    out: Path = setting(Path("data/games"), "folder of the shards and the manifest")
    restart: bool = setting(False, "delete what the folder holds of a run and begin anew")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(1 <= self.games <= 10**9, "games", self.games, "from 1 to 1,000,000,000")
        check(self.workers is None or 1 <= self.workers <= 1024, "workers", self.workers, "from 1 to 1024, or none")


def run(config: GenerateConfig) -> str:
    """Make what is missing of the run, then its manifest."""
    folder = config.out
    if folder.exists() and not folder.is_dir():
        raise cli.UserError(f"{folder}: is a file; --out names a folder")
    with shards.locked(folder):
        if config.restart:
            shards.delete(folder)
        games = max(config.games, _finished_games(config, folder))
        todo = shards.plan(config, games, folder)
        for line in todo.damaged:
            cli.say(f"made again: {line}")
        if not todo.todo and (folder / schema.MANIFEST).exists():
            manifest = schema.read_manifest(folder)
            return f"finished before: {manifest['games']:,} games, {manifest['rows']:,} rows in {folder}"
        (folder / schema.MANIFEST).unlink(missing_ok=True)
        stored = json.dumps(cli.as_json(config), indent=1) + "\n"
        schema.write_atomically(folder / "config.json", stored.encode())
        teacher.warm_up()
        made, seconds = _make(config, games, todo, folder)
        manifest = shards.finish(config, [*todo.done, *made], folder)
    executed = sum(shard.simulations for shard in made)
    nominal = sum(shard.rows for shard in made) * config.simulations * config.votes
    speed = f"{executed / seconds / 1e6:.2f} M simulations/s"
    if config.savings != "off":
        speed += f" ({nominal / seconds / 1e6:.2f} M/s nominal)"
    return f"{manifest['games']:,} games, {manifest['rows']:,} rows in {folder} ({cli.duration(seconds)}, {speed})"


def _finished_games(config: GenerateConfig, folder: Path) -> int:
    """Games of the finished run that the folder holds: fewer `--games` never take any away."""
    if not (folder / schema.MANIFEST).exists():
        return 0
    manifest = schema.read_manifest(folder)
    same = manifest.get("identity") == shards.identity(config)
    return int(manifest["games"]) if same else 0


def _make(config: GenerateConfig, games: int, todo: shards.Plan, folder: Path) -> tuple[list[shards.Shard], float]:
    began = time.monotonic()
    made: list[shards.Shard] = []
    before = sum(shard.games for shard in todo.done)
    with cli.Progress(games, "games", done=before) as progress:
        for shard in shards.make_locally(config, todo.todo, folder, config.workers or cli.cores()):
            made.append(shard)
            rate = sum(each.simulations for each in made) / (time.monotonic() - began)
            progress.advance(shard.games, f"{rate / 1e6:.2f} M simulations/s")
    return made, time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return cli.main("generate", GenerateConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())

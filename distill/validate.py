"""Check games row by row against the rules, packed boards by their hashes, and all files against the manifest.

    python -m distill.validate data/games

In: folders or URLs that `generate`, `selfplay --games-only` or `prepare --packed` finished. Out: for each file a few of
its violations, with the game, and how many more there are; exit 1 where there is any. Checked are page checksums,
schema and version, the manifest, and every row of games: positions, legal columns, sums, the majority, the order of
each game and its result (`games/checks.py`). The last line names the command that makes again what is wrong.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from distill.common import Progress, UserError, cli, run_folder
from distill.common.storage import Folder, storage_of
from distill.games import inspection, reader, schema


@dataclass(frozen=True, kw_only=True)
class ValidateConfig(cli.Settings):
    """Check games row by row, packed boards by their hashes."""

    places: tuple[str, ...] = cli.setting(
        ("data/games",), "folders of games or of packed boards, or URLs such as s3://bucket/games", positional=True
    )
    lines: int | None = cli.setting(5, "most violations printed per file; `none`: all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.places:
            raise ValueError("name a folder of games")
        cli.check_within(self, "[1, inf)", "lines")


PRESETS = {"smoke": cli.smoke(places=(str(cli.SMOKE_DATA / "games"),))}


def run(config: ValidateConfig) -> str:
    """Check each folder; returns the line that says how much was found sound, or raises UserError."""
    began = time.perf_counter()
    files, rows, wrong, repairs = 0, 0, 0, []
    for place in config.places:
        storage, before = storage_of(place), wrong
        with Progress(sum(map(schema.is_shard, storage.names())), "shards") as progress:
            for inspected in inspection.inspect(storage):
                found = inspected.violations
                wrong += len(found)
                for violation in found[: config.lines]:
                    print(f"{place}/{violation}")
                if more := len(found) - len(found[: config.lines]):
                    print(f"{place}/{inspected.name}: and {more:,} more (--lines none prints all)")
                rows += inspected.shard.rows if inspected.shard else 0
                if inspected.name != run_folder.RECORD:
                    files += 1
                    progress.advance(1, f"{rows:,} rows, {wrong} violations")
        if wrong > before:
            local = storage.path if isinstance(storage, Folder) else None
            command = reader.remake_command(local) if local else f"the command that made {place}"
            repairs.append(f"to make again what is wrong: {command}")
    seconds = time.perf_counter() - began
    if wrong:
        raise UserError(f"{wrong:,} violations in {rows:,} rows; {'; '.join(repairs)}")
    names = ", ".join(config.places)
    return f"{names}: {files:,} shards, {rows:,} rows, no violation ({seconds:.1f} s, {rows / seconds:,.0f} rows/s)"


main = cli.Command("validate", ValidateConfig, run, PRESETS, resumes=False)

if __name__ == "__main__":
    raise SystemExit(main())

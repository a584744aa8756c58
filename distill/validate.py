"""Check every file, page, row and game of finished games or packed boards, and the manifest against them.

    python -m distill.validate data/games

In: folders or URLs that `generate`, `selfplay --games-only` or `prepare --packed` finished. Out: for each kind of
violation a few lines, with file and game, and how many more there are; exit 1 where there is any. Checked are page
checksums, schema and version, the manifest, and every row: positions, legal columns, sums, the majority, the order of
each game and its result; of packed boards keys, visits and ranges (`games/checks.py`). The last line names the command
that makes again what is wrong.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from distill.common import Progress, UserError, cli
from distill.games import inspection, reader, schema
from distill.games.storage import storage_of


@dataclass(frozen=True, kw_only=True)
class ValidateConfig(cli.Settings):
    """Check finished games or packed boards, row by row."""

    places: tuple[str, ...] = cli.setting(
        ("data/games",), "folders of games or of packed boards, or URLs such as s3://bucket/games", positional=True
    )
    lines: int | None = cli.setting(5, "most violations printed of one kind, for each folder; none prints all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.places:
            raise ValueError("name a folder of games")
        cli.check_within(self, "[1, inf)", "lines")


PRESETS = {"smoke": cli.smoke(places=(str(cli.SMOKE_DATA / "games"),))}


def run(config: ValidateConfig) -> str:
    """Check each folder; returns the line that says how much was found sound, or raises UserError."""
    began = time.monotonic()
    files, rows, wrong, repairs = 0, 0, 0, []
    for place in config.places:
        storage, kinds = storage_of(place), Counter[str]()
        with Progress(sum(map(schema.is_shard, storage.names())), "shards") as progress:
            for inspected in inspection.inspect(storage):
                for violation in inspected.violations:
                    kind = _kind(violation.what)
                    kinds[kind] += 1
                    if config.lines is None or kinds[kind] <= config.lines:
                        print(f"{place}/{violation}")
                rows += inspected.shard.rows if inspected.shard else 0
                if inspected.name != schema.MANIFEST:
                    files += 1
                    progress.advance(1, f"{rows:,} rows, {wrong + kinds.total()} violations")
        for kind, number in kinds.items():
            if config.lines is not None and number > config.lines:
                print(f"{place}: and {number - config.lines:,} more: {kind} (--lines none prints all)")
        wrong += kinds.total()
        if kinds:
            repairs.append(f"to make again what is wrong: {reader.remake_command(Path(place))}")
    seconds = time.monotonic() - began
    if wrong:
        raise UserError(f"{wrong:,} violations in {rows:,} rows; {'; '.join(repairs)}")
    names = ", ".join(config.places)
    return f"{names}: {files:,} shards, {rows:,} rows, no violation ({seconds:.1f} s, {rows / seconds:,.0f} rows/s)"


def _kind(what: str) -> str:
    """What violations that differ only in numbers or hashes have in common."""
    return re.sub(r"\b[0-9a-f]{16,}\b|-?\d+([.,]\d+)*( -?\d+)*", "…", what)


main = cli.Command("validate", ValidateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

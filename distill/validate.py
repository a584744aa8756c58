"""Check every file, page, row and game of finished games, and the manifest against them.

    python -m distill.validate data/games

In: places that `generate` finished: folders, or URLs. Out: one line a violation, with file, row group and game; exit 1
where there is any. Checked are page checksums, schema and version, the manifest, and the truth of every row: positions,
legal columns, sums, the majority, the order of each game, its result (`rows/checks.py`).
What is wrong is made again by `generate`, or by `selfplay` where a network played, with the run's own settings:
--config FOLDER/config.json --out FOLDER.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

from distill.base import Progress, UserError, cli, folders
from distill.rows import inspection, schema
from distill.rows.places import Folder, place_of


@dataclass(frozen=True, kw_only=True)
class ValidateConfig(cli.Settings):
    """Check finished games, row by row."""

    places: tuple[str, ...] = cli.setting(
        ("data/games",), "folders of games, or URLs such as s3://bucket/games", positional=True
    )
    lines: int | None = cli.setting(100, "violations printed for each file at most; none prints all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.places:
            raise ValueError("name a folder of games")
        cli.check_least(self, lines=1)


PRESETS = {"smoke": {"places": (str(cli.SMOKE_DATA / "games"),)}}


def run(config: ValidateConfig) -> str:
    """Check each place; returns the line that says how much was found sound, or raises UserError."""
    began = time.monotonic()
    files, rows, wrong, repairs = 0, 0, 0, []
    for word in config.places:
        place, before = place_of(word), wrong
        with Progress(sum(map(inspection.is_shard, place.names())), "shards") as progress:
            for inspected in inspection.inspect(place):
                _show(word, inspected.violations, config.lines)
                wrong += len(inspected.violations)
                rows += inspected.rows
                if inspected.name != schema.MANIFEST:
                    files += 1
                    progress.advance(1, f"{rows:,} rows, {wrong} violations")
        if wrong > before:
            repairs.append(_repair(word))
    seconds = time.monotonic() - began
    if wrong:
        raise UserError(f"{wrong:,} violations in {rows:,} rows; to make again what is wrong: {'; '.join(repairs)}")
    names = ", ".join(config.places)
    return f"{names}: {files:,} shards, {rows:,} rows, no violation ({seconds:.1f} s, {rows / seconds:,.0f} rows/s)"


def _repair(word: str) -> str:
    """The line that makes again what is wrong in a place, or what can be said instead."""
    place = place_of(word)
    settings = folders.settings_in(["config.json"], place.read) if isinstance(place, Folder) else None
    for kind, command in ((folders.TEACHER_GAMES, "generate"), (folders.NETWORK_GAMES, "selfplay")):
        if settings is not None and kind.known(settings):
            words = ["python", "-m", f"distill.{command}", "--config", f"{word}/config.json", "--out", word]
            return shlex.join(words)
    return f"{word}: the command that made it"


def _show(word: str, violations: Sequence[inspection.Violation], most: int | None) -> None:
    for violation in violations[:most]:
        print(f"{word}/{violation}")
    if most is not None and len(violations) > most:
        print(f"{word}/{violations[0].file}: and {len(violations) - most:,} more (--lines none prints all)")


main = cli.Command("validate", ValidateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

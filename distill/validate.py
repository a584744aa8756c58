"""Check every file, page, row and game of finished games or packed boards, and the manifest against them.

    python -m distill.validate data/games
    python -m distill.validate data/mine --accept-labels     # a copy whose labels were replaced becomes a new run

In: places that `generate`, `selfplay --games-only` or `prepare --packed` finished: folders, or URLs. Out: for each kind
of violation some lines, with file, row group and game, and how many more there are; exit 1 where there is any. Checked
are page checksums, schema and version, the manifest, and the truth of every row: positions, legal columns, sums, the
majority, the order of each game, its result; of packed boards keys, visits and ranges (`games/checks.py`).
What is wrong is made again by `generate`, or by `selfplay` where a network played, with the run's own settings:
--config FOLDER/config.json --out FOLDER. Labels that were changed on purpose are accepted instead
(`datasets/relabelling.py`).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from distill.common import Progress, UserError, cli
from distill.datasets import relabelling
from distill.games import inspection, reader, schema, shards
from distill.games.storage import Folder, storage_of


@dataclass(frozen=True, kw_only=True)
class ValidateConfig(cli.Settings):
    """Check finished games or packed boards, row by row."""

    places: tuple[str, ...] = cli.setting(
        ("data/games",), "folders of games or of packed boards, or URLs such as s3://bucket/games", positional=True
    )
    lines: int | None = cli.setting(5, "violations of one kind printed for each place at most; none prints all")
    accept_labels: bool = cli.setting(
        False, "where labels were changed: check boards, moves, results and ranges, then make the folder a new run"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.places:
            raise ValueError("name a folder of games")
        cli.check_least(self, lines=1)


PRESETS = {"smoke": cli.smoke(places=(str(cli.SMOKE_DATA / "games"),))}


def run(config: ValidateConfig) -> str:
    """Check each place; returns the line that says how much was found sound, or raises UserError."""
    if config.accept_labels:
        return "\n".join(map(_accept, config.places))
    began = time.monotonic()
    files, rows, wrong, repairs = 0, 0, 0, []
    for word in config.places:
        place, shown = storage_of(word), _Shown(word, config.lines)
        with Progress(sum(map(inspection.is_shard, place.names())), "shards") as progress:
            for inspected in inspection.inspect(place):
                shown.add(inspected.violations)
                rows += inspected.rows
                if inspected.name != schema.MANIFEST:
                    files += 1
                    progress.advance(1, f"{rows:,} rows, {wrong + shown.number} violations")
        wrong += shown.number
        if shown.number:
            shown.end()
            repairs.append(_repair(word, shown.changed))
    seconds = time.monotonic() - began
    if wrong:
        raise UserError(f"{wrong:,} violations in {rows:,} rows; {'; '.join(repairs)}")
    names = ", ".join(config.places)
    return f"{names}: {files:,} shards, {rows:,} rows, no violation ({seconds:.1f} s, {rows / seconds:,.0f} rows/s)"


def _accept(word: str) -> str:
    place = storage_of(word)
    inspection.require_run(place, place.names())  # before its lock file is made
    with shards.locked(place):
        manifest = relabelling.accept(place)
    what = "changed labels accepted" if schema.RELABELLED in manifest["identity"] else "labels are unchanged"
    return (
        f"{word}: {what}; run {manifest['run'][:16]}, {manifest['rows']:,} rows in {len(manifest['shards']):,} shards"
    )


def _repair(word: str, changed: bool) -> str:
    """What can be done about a place; `changed` where a file is whole but not the one that the manifest describes."""
    place = storage_of(word)
    command = reader.remake_command(place.path) if isinstance(place, Folder) else None
    advice = command or f"{word}: the command that made it"
    return reader.changed_advice(word, advice) if changed else f"to make again what is wrong: {advice}"


def _kind(what: str) -> str:
    """What violations that differ in numbers or hashes alone have in common."""
    return re.sub(r"\b[0-9a-f]{16,}\b|-?\d+([.,]\d+)*( -?\d+)*", "…", what)


class _Shown:
    """The violations of a place as they are printed: some of each kind, and in the end how many more there were."""

    def __init__(self, word: str, most: int | None) -> None:
        self.word, self.most = word, most
        self.kinds: Counter[str] = Counter()

    @property
    def number(self) -> int:
        return self.kinds.total()

    @property
    def changed(self) -> bool:
        return _kind(inspection.CHANGED) in self.kinds

    def add(self, violations: Sequence[inspection.Violation]) -> None:
        """Print those of which not enough were printed yet."""
        for violation in violations:
            kind = _kind(violation.what)
            self.kinds[kind] += 1
            if self.most is None or self.kinds[kind] <= self.most:
                print(f"{self.word}/{violation}")

    def end(self) -> None:
        """Print how many were not."""
        for kind, number in self.kinds.items():
            if self.most is not None and number > self.most:
                print(f"{self.word}: and {number - self.most:,} more: {kind} (--lines none prints all)")


main = cli.Command("validate", ValidateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())

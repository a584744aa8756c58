"""Check games and packed boards, file by file and row by row, and print what they hold and how good the labels are.

    python -m distill.inspect data/games
    python -m distill.inspect data/games data/reference/validation --labels 2000    # a larger sample of labels
    python -m distill.inspect s3://bucket/games --labels 0                          # checks and counts alone

In: folders or URLs that `generate`, `selfplay --games-only` or `prepare --packed` finished. Out: a few violations of
each file, with the game, and exit 1 where there is any; else a table of counts. Checked are page checksums, schema and
version, the record, and every row of games: positions, legal columns, sums, the majority, the order of each game and
its result (`games/inspection.py`). The solver grades a sample of the labels where it is installed, and the teacher
labels the sample again where it can (`evaluation/labels.py`).
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("inspect")

import time
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from distill.common import Progress, UserError, cli, cores, provenance, run_folder
from distill.common.settings import CommandLine, NameOrPath, Settings
from distill.common.storage import storage_of
from distill.common.tables import table
from distill.evaluation import labels
from distill.evaluation.report import percent
from distill.game.rules import canonical_keys
from distill.games import inspection, reader, schema
from distill.players import solver

LINES = 5
"""Most violations printed per file."""
SEED = 0
"""Seed of the sample of labels and of the teacher's searches."""


class InspectConfig(Settings):
    """Check games and packed boards, and count what they hold."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="places",
        flags=("labels", "workers"),
        examples=("data/games", "s3://bucket/games --labels 0"),
        page="docs/data.md",
    )
    places: tuple[NameOrPath, ...] = Field(("data/games",), min_length=1, title="FOLDER|URL")
    """folders of games or of packed boards, or URLs"""
    labels: int = Field(200, ge=0)
    """labels that the solver grades and the teacher repeats; 0: none"""
    workers: int = Field(cores(), ge=1)
    """processes for the solver and the teacher"""


PRESETS = cli.smoke(places=(str(cli.SMOKE_DATA / "games"),), labels=20)


def run(config: InspectConfig) -> str:
    """Check each place and print its table; returns the line that says how much is sound, or raises UserError."""
    began, files, rows, wrong = time.perf_counter(), 0, 0, 0
    for place in config.places:
        record = run_folder.finished(storage_of(place), *reader.KINDS)
        parts, sound = list[reader.Columns](), True
        with Progress(len(record.files), "shards") as progress:
            for name, violations, columns in inspection.inspect(storage_of(place)):
                for violation in violations[:LINES]:
                    print(f"{place}/{violation}")
                if more := len(violations[LINES:]):
                    print(f"{place}/{name}: and {more:,} more")
                sound, wrong = sound and not violations, wrong + len(violations)
                parts += [columns] if columns else []
                progress.advance(1)
        files, rows = files + len(parts), rows + sum(len(part["mask"]) for part in parts)
        if sound:
            raw = reader.raw_rows_of(parts)
            lines = _counts(raw, record.kind) + _quality(raw, record.identity, config)
            print(f"{table((place, ''), lines)}\n")
    if wrong:
        todo = "delete the files that are wrong and start the command that wrote them again"
        raise UserError(f"{wrong:,} violations in {rows:,} rows; {todo}")
    names, seconds = ", ".join(config.places), time.perf_counter() - began
    shards = "1 shard" if files == 1 else f"{files:,} shards"
    return f"{names}: {shards}, {rows:,} rows, no violation ({seconds:.1f} s)"


def _counts(rows: reader.RawRows, kind: str) -> list[list[str]]:
    """Lines that count games, rows, distinct boards, rows by stones, and results."""
    ply, outcome = rows.ply, rows.outcome
    boards = np.unique(canonical_keys(rows.current, rows.mask))
    lines = [["rows", f"{len(ply):,}"], ["distinct boards, up to mirror", f"{len(boards):,}"]]
    for low, high in labels.BANDS:
        lines.append([f"rows with {low} to {high} stones", f"{((ply >= low) & (ply <= high)).sum():,}"])
    if kind == schema.PACKED_BOARDS:
        return lines
    last = np.flatnonzero(np.diff(rows.game, append=-1))  # rows are sorted by game and ply
    of_first = np.where(ply[last] % 2, -outcome[last], outcome[last])
    results = (f"{(of_first == result).sum():,} {name}" for result, name in ((1, "wins"), (0, "draws"), (-1, "losses")))
    return [["games", f"{len(last):,}"], *lines, ["results of the first player", ", ".join(results)]]


def _quality(rows: reader.RawRows, identity: dict[str, Any], config: InspectConfig) -> list[list[str]]:
    """Lines on a sample of the labels: how good they are, and how often the teacher repeats itself."""
    rows = labels.sample(rows, config.labels, SEED)
    if not len(rows):
        return []
    lines = [["labels", f"not graded, because the solver is missing: {provenance.install_line('solver')}"]]
    if solver.is_installed():
        graded = labels.quality(rows, config.workers)
        lines = [[f"labels, {name}, %", f"{percent(share)} of {share.units:,} games"] for name, share in graded.items()]
    if teacher := labels.teacher_of(identity):
        ceiling = labels.noise_ceiling(rows, teacher, SEED, config.workers)
        lines.append(["noise ceiling, %", f"{percent(ceiling)} of {ceiling.units:,} games"])
    return lines


main = cli.Command("distill inspect", InspectConfig, run, PRESETS)

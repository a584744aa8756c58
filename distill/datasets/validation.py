"""The rows that top-1 accuracy against the teacher is measured on: raw rows, in the orientation they were played in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distill.common import listed, provenance
from distill.games import schema
from distill.games.reader import GamesRun, RawRows, open_run, raw_rows

VALIDATION_SET = "data/reference/validation"
"""The rows of the teacher that ship."""
NOT_THE_TEACHER = ("seed", "shard_games", "opening_moves")
"""Entries of a run's identity that do not change how a given position is labelled."""


def validation_rows(folders: Sequence[Path], fraction: float) -> tuple[str, RawRows]:
    """The name of the validation rows and the rows themselves.

    They are the shipped set where the same teacher labelled all of the data and the set is not part of the data.
    Otherwise they are the validation split of the data.
    """
    shipped = provenance.shipped(VALIDATION_SET)
    if shipped is not None:
        reference, *runs = map(open_run, (shipped, *folders))
        # Another teacher's labels would measure the difference of the teachers, and known games what was memorised.
        if all(_teacher(run) == _teacher(reference) and run.name != reference.name for run in runs):
            return VALIDATION_SET, raw_rows([shipped], None, 0)
    return f"the validation split of {listed(folders)}", raw_rows(folders, schema.VALIDATION, fraction)


def _teacher(run: GamesRun) -> dict[str, Any]:
    """The entries of a run's identity that decide its labels."""
    return {name: value for name, value in run.identity.items() if name not in NOT_THE_TEACHER}

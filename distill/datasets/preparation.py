"""Turns raw rows into tables to train on: canonical boards, split, merged.

In: folders of finished games (`games/reader.py`). Out: `<out>/<hash>/` with `training.parquet`, `validation.parquet`
(rows of `schema.PREPARED_ROW`) and the record with every count. The hash covers the inputs, the settings,
the excluded boards and the schema: other data have another hash. Tables are reused only while their shards are the
files that the record describes, and loaded only while they are those of theirs.

What happens to a row:

1. Its game decides the split (`reader.in_validation`). Rows on an excluded board are left out of both tables, because
   what grades a network must not have chosen its best epoch either.
2. The board becomes canonical: the smaller of it and its mirror. Where that is the mirror, the visits are flipped and
   the label is 6 - label.
3. Rows of one canonical board merge, within a split only. Visits are summed, value and outcome averaged, rows counted.
   The label is the column with most rows, then most visits, then nearest the centre, then the lower. On a board that is
   its own mirror a column and its mirror are one answer: the visits are added to their flip, each row counts for both
   columns, and the lower of the two is kept.
4. A validation board that is also in the training table is removed from validation.

The shipped benchmark is excluded unless the user says otherwise. The reference validation set is not: it has every
board of the first plies, so leaving it out would take the openings out of the tables, and `top1_unseen` would equal
`top1_all`. Naming it is possible.

The rows are in memory, about 60 bytes each, as the tables are in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from distill.common import DataError, Progress, json_hash, listed, run_folder, say
from distill.common.settings import NameOrPath, Settings
from distill.datasets.batching import Examples
from distill.datasets.canonical import canonical, excluded_keys, merged
from distill.games import reader, schema
from distill.games.reader import Columns, chosen, joined
from distill.games.schema import PREPARED_ROW, TRAINING, VALIDATION

PREPARATION_VERSION = 3
"""Raised when the same games and settings make other tables. 2: excluded boards leave validation as well."""

FILES = {TRAINING: "training.parquet", VALIDATION: "validation.parquet"}

GROUP_ROWS = 1 << 17
"""Rows in each row group of a table."""

TABLES = "prepared tables"
"""The kind of folder, in its record."""


class TableSettings(Settings):
    """Which games become tables, and which of them are held out."""

    data: tuple[Path, ...] = Field((Path("data/games"),), min_length=1)
    """folders of finished games, one per run"""
    validation_fraction: float = Field(0.15, ge=0, lt=1)
    """share of the games held out for validation (0 to below 1)"""
    exclude: tuple[NameOrPath, ...] = Field(("benchmark",), title="BOARDS")
    """boards kept out of the tables: benchmark, reference, or Parquet files or folders with current and mask"""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A finished folder of tables, the result in its record, and whether it existed already."""

    folder: Path
    result: dict[str, Any]
    reused: bool

    def summary(self, data: Sequence[Path]) -> str:
        """The line that says which tables are used, and whether they were made now."""
        return f"{self.folder}: {'reused' if self.reused else 'prepared'} tables of {listed(data)}"


def prepare(settings: TableSettings, out: Path, *, restart: bool = False) -> Prepared:
    """Prepare the games of several runs into `out/<hash>/`, or find that this was done; shards are verified first.

    Args:
      settings: those of `train` and `prepare` have others, too, which do not matter here.
      restart: prepare again even where the result exists.

    The tables' bytes depend on the inputs and settings alone. An interrupted run leaves no result, so the next one
    writes the tables again. Raises DataError for inputs that cannot be used, naming the file.
    """
    runs, fraction = reader.open_runs(settings.data), settings.validation_fraction
    reader.verify(runs)
    excluded = np.unique(np.concatenate([np.zeros(0, np.uint64), *map(excluded_keys, settings.exclude)]))
    identity = {
        "schema_version": schema.SCHEMA_VERSION,
        "preparation_version": PREPARATION_VERSION,
        "validation_fraction": fraction,
        "runs": {run.name: json_hash([shard.content_hash for shard in run.shards]) for run in runs},
        "excluded": json_hash(excluded.tolist()),
    }
    # Other inputs or settings give another folder, so tables never need to be compared with them.
    folder = out / json_hash(identity)[:16]
    stored = settings.model_dump(mode="json", include={*TableSettings.model_fields}) | {"out": str(out)}
    files = FILES.values()
    with run_folder.opened(
        folder, TABLES, identity, settings=stored, files=files, restart=restart, wait=True
    ) as record:
        if record.result and all((folder / name).is_file() for name in files):
            return Prepared(folder=folder, result=record.result, reused=True)
        say(f"preparing tables of {listed([run.folder for run in runs])}")
        rows, counts = _read(runs, fraction, excluded)
        boards, of_boards = _merge(rows)
        record.begin()
        hashes = {}
        for split, name in FILES.items():
            about = {"schema_version": schema.SCHEMA_VERSION, "kind": "tables", "prepared": folder.name, "split": split}
            table = schema.table_of(chosen(boards, boards["split"] == split), PREPARED_ROW)
            hashes[name] = schema.write_table(folder / name, table, about, GROUP_ROWS)
        known = [
            {"run": run.name, "sources": sorted(run.sources), "games": run.games, "rows": run.rows}
            | {"settings": run.identity}
            for run in runs
        ]
        result = {"inputs": known, "counts": counts | of_boards, "files": hashes}
        record.finish(result)
    return Prepared(folder=folder, result=result, reused=False)


def load(folder: Path, split: int) -> Examples:
    """The table of a prepared folder for TRAINING or VALIDATION.

    Raises DataError for a file that the record does not describe, and for missing values.
    """
    path, result = folder / FILES[split], run_folder.finished(folder, TABLES).result or {}
    content = schema.content_of(path, result["files"][path.name], f"delete {folder} to rebuild it")
    table, _ = schema.read_table(path, PREPARED_ROW, content)
    return Examples(**schema.arrays(path, table.drop_columns("split")))


def _read(
    runs: Sequence[reader.GamesRun], validation_fraction: float, excluded: NDArray[np.uint64]
) -> tuple[Columns, dict[str, Any]]:
    """All rows that are not excluded, on their canonical boards and with their split; and what was counted."""
    parts, games = list[Columns](), list[NDArray[np.bool_]]()
    with Progress(sum(run.rows for run in runs), "rows") as progress:
        for name, shard in ((run.name, shard) for run in runs for shard in run.shards):
            numbers = shard.first_game + np.arange(shard.games)
            games.append(reader.in_validation(name, numbers, validation_fraction))
            part = reader.read(shard, ("game_id", "current", "mask", "label", "visits", "value", "outcome"))
            split = reader.in_validation(name, part.pop("game_id"), validation_fraction)
            parts.append(canonical(part) | {"split": split.astype(np.int8)})
            progress.advance(len(split), "made canonical")
    rows, of_games = joined(parts), _by_split(np.concatenate(games))
    is_excluded = np.isin(rows["current"] + rows["mask"], excluded)
    gone = {"boards": len(excluded), "rows": int(is_excluded.sum())}
    rows = chosen(rows, ~is_excluded)
    of_rows = _by_split(rows["split"])
    if not of_rows["training"]:
        where = f"{of_games['training']} games fell to training, {of_games['validation']} to validation"
        raise DataError(f"no training rows: {where}, {gone['rows']} rows are excluded; generate more games")
    return rows, {"rows_read": len(is_excluded), "games": of_games, "rows": of_rows, "excluded": gone}


def _merge(rows: Columns) -> tuple[Columns, dict[str, Any]]:
    """The boards of both tables, sorted by (stones, current, mask), and their counts."""
    stones = np.bitwise_count(rows["mask"])
    # One number of stones at a time needs little memory beside the rows. Rows merge inside their split only.
    plies = (chosen(rows, stones == ply) for ply in np.unique(stones))
    boards = joined([merged(part, ("current", "mask", "split")) for part in plies])
    # The training row of a board sorts just before its validation row, which goes.
    in_training = np.append(False, np.diff(boards["current"] + boards["mask"]) == 0)
    removed = {"boards": int(in_training.sum()), "rows": int(boards["count"][in_training].sum())}
    boards = chosen(boards, ~in_training)
    return boards, {"boards": _by_split(boards["split"]), "removed_from_validation": removed}


def _by_split(splits: NDArray[Any]) -> dict[str, int]:
    """How many of the splits are training and validation, as the record has it."""
    training, validation = np.bincount(splits, minlength=2).tolist()
    return {"training": training, "validation": validation}

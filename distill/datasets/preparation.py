"""Turns raw rows into tables to train on: canonical boards, split, merged.

In: folders of finished games (`games/reader.py`). Out: `<out>/<hash>/` with `training.parquet`, `validation.parquet`
(rows of `schema.PREPARED_ROW`) and the record with every count. The hash covers the inputs, the settings,
the excluded boards and the schema: other data have another hash. Tables are reused only while their shards, and the
tables themselves, are the files that their records describe.

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

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError, Progress, canonical_json, listed, run_folder, say
from distill.datasets.canonical import canonical, excluded_keys, merged
from distill.games import reader, schema
from distill.games.reader import Columns
from distill.games.schema import PREPARED_ROW, TRAINING, VALIDATION

PREPARATION_VERSION = 2
"""Raised when the same games and settings make other tables. 2: excluded boards leave validation as well."""

FILES = {TRAINING: "training.parquet", VALIDATION: "validation.parquet"}

GROUP_ROWS = 1 << 17
"""Rows in each row group of a table."""

TABLES = "prepared tables"
"""The kind of folder, in its record."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A finished folder of tables, the result in its record, and whether it existed already."""

    folder: Path
    result: dict[str, Any]
    reused: bool

    def summary(self, data: Sequence[Path]) -> str:
        """The line that says which tables are used, and whether they were made now."""
        return f"{self.folder}: {'reused' if self.reused else 'prepared'} tables of {listed(data)}"


def prepare(
    folders: Sequence[Path],
    out: Path,
    *,
    validation_fraction: float = 0.15,
    exclude: Sequence[str] = ("benchmark",),
    restart: bool = False,
) -> Prepared:
    """Prepare the games of several runs into `out/<hash>/`, or find that this was done; shards are verified first.

    Args:
      folders: finished games, each folder another run.
      validation_fraction: expected share of games in validation.
      exclude: boards left out of both tables: names of `canonical.SHIPPED_BOARDS` (a line says where the set is not
        shipped), Parquet files with columns `current` and `mask`, or folders of such files.
      restart: prepare again even where the result exists.

    The tables' bytes depend on the inputs and settings alone. An interrupted run leaves no result, so the next one
    writes the tables again. Raises DataError for inputs that cannot be used, naming the file.
    """
    runs = reader.open_runs(folders)
    reader.verify(runs)
    excluded = {name: keys for name in exclude if len(keys := excluded_keys(name))}
    identity = {
        "schema_version": schema.SCHEMA_VERSION,
        "preparation_version": PREPARATION_VERSION,
        "validation_fraction": validation_fraction,
        "runs": {run.name: _digest([shard.content_hash for shard in run.shards]) for run in runs},
        "excluded": _digest(sorted({int(key) for keys in excluded.values() for key in keys})),
    }
    # Other inputs or settings give another folder, so tables never need to be compared with them.
    folder, inputs = out / _digest(identity)[:16], [_input(run) for run in runs]
    settings = {"data": [*map(str, folders)], "validation_fraction": validation_fraction, "exclude": [*exclude]}
    with run_folder.opened(
        folder,
        TABLES,
        identity,
        settings=settings | {"out": str(out)},
        files=FILES.values(),
        restart=restart,
        wait=True,
    ) as record:
        # The same hashes of rows, but in files that were not read yet, are prepared again.
        if record.result and record.result.get("inputs") == inputs:
            for split in FILES:
                table_content(folder, record.result, split)
            return Prepared(folder=folder, result=record.result, reused=True)
        say(f"preparing tables of {listed([run.folder for run in runs])}")
        rows, counts = _read(runs, validation_fraction, excluded)
        tables, of_boards = _merge(rows)
        record.begin()
        about = {"schema_version": schema.SCHEMA_VERSION, "kind": "tables", "prepared": folder.name}
        files = {
            name: schema.write_table(folder / name, tables[split], about | {"split": split}, GROUP_ROWS)
            for split, name in FILES.items()
        }
        result = {"inputs": inputs, "counts": counts | of_boards, "files": files}
        record.finish(result)
    return Prepared(folder=folder, result=result, reused=False)


def _input(run: reader.Run) -> dict[str, Any]:
    """What the record says of a run that was read."""
    return {
        "run": run.name,
        "sources": sorted(run.sources),
        "games": run.games,
        "rows": run.rows,
        "files": _digest([shard.sha256 for shard in run.shards]),
        "settings": run.identity,
    }


def table_content(folder: Path, result: Mapping[str, Any], split: int) -> bytes:
    """The bytes of a table. Raises DataError unless they are those that the record describes."""
    path = folder / FILES[split]
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != result.get("files", {}).get(path.name):
        what = "not the file that its record describes (damaged or changed)"
        raise DataError(f"{path}: {what}; delete {folder} to rebuild it")
    return content


def _read(
    runs: Sequence[reader.Run], validation_fraction: float, excluded: dict[str, NDArray[np.uint64]]
) -> tuple[Columns, dict[str, Any]]:
    """All rows that are not excluded, on their canonical boards and with their split; and what was counted."""
    parts, games = list[Columns](), {TRAINING: 0, VALIDATION: 0}
    with Progress(sum(run.rows for run in runs), "rows") as progress:
        for name, shard in ((run.name, shard) for run in runs for shard in run.shards):
            numbers = shard.first_game + np.arange(shard.games)
            held_out = int(reader.in_validation(name, numbers, validation_fraction).sum())
            games[VALIDATION] += held_out
            games[TRAINING] += shard.games - held_out
            part = reader.read(shard, ("game_id", "current", "mask", "label", "visits", "value", "outcome"))
            game = part.pop("game_id")
            part["split"] = reader.in_validation(name, game, validation_fraction).astype(np.int8)
            parts.append(canonical(part))
            progress.advance(len(game), "made canonical")
    if not parts:
        raise DataError("no training rows: the games have no rows; generate more games")
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # A row goes once, however many sets of excluded boards have its board; each set counts it.
    kept, of_sets = np.ones(len(rows["split"]), np.bool_), {}
    for name, boards in excluded.items():
        keys = rows["current"] + rows["mask"]
        excluded_rows = np.isin(keys, boards)
        of_sets[name] = {
            "boards": len(boards),
            "boards_found": len(np.unique(keys[excluded_rows])),
            "rows": _by_split(np.bincount(rows["split"][excluded_rows], minlength=2)),
        }
        kept &= ~excluded_rows
    split_rows = np.bincount(rows["split"][kept], minlength=2)
    if not split_rows[TRAINING]:
        raise DataError(
            f"no training rows: {games[TRAINING]} games fell to training, {games[VALIDATION]} to validation, "
            f"{np.sum(~kept)} rows are excluded; generate more games"
        )
    return {name: values[kept] for name, values in rows.items()}, {
        "rows_read": sum(run.rows for run in runs),
        "games": _by_split(games),
        "rows": _by_split(split_rows),
        "excluded": of_sets,
    }


def _merge(rows: Columns) -> tuple[dict[int, pa.Table], dict[str, Any]]:
    """Both tables, sorted by (stones, current, mask), and the counts of their boards."""
    stones = np.bitwise_count(rows["mask"])
    parts: dict[int, list[Columns]] = {TRAINING: [], VALIDATION: []}
    removed = {"boards": 0, "rows": 0}
    for ply in np.unique(stones).tolist():  # one number of stones at a time needs little memory beside the rows
        places = np.flatnonzero(stones == ply)
        # Rows of one board merge inside their split only; the training row of a board sorts before its validation row.
        boards = merged({name: values[places] for name, values in rows.items()}, ("current", "mask", "split"))
        key = boards["current"] + boards["mask"]
        in_training = np.concatenate([[False], key[1:] == key[:-1]])  # a board's training row comes just before
        removed["boards"] += int(in_training.sum())
        removed["rows"] += int(boards["count"][in_training].sum())
        for split in FILES:
            chosen = (boards["split"] == split) & ~in_training
            parts[split].append({name: values[chosen] for name, values in boards.items()})
    tables = {
        split: schema.table_of(
            {name: np.concatenate([part[name] for part in pieces]) for name in pieces[0]}, PREPARED_ROW
        )
        for split, pieces in parts.items()
    }
    counts = _by_split([len(tables[split]) for split in FILES])
    return tables, {"boards": counts, "removed_from_validation": removed}


def _by_split(counts: Any) -> dict[str, int]:
    """Counts by split, as the record has them."""
    return {"training": int(counts[TRAINING]), "validation": int(counts[VALIDATION])}


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()

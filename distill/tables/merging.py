"""Raw rows become tables to train on: canonicalise, split, merge.

In: folders of finished games (`distill.rows.games`). Out: `<out>/<hash>/` with `training.parquet`,
`validation.parquet` (rows of `schema.PREPARED_ROW`) and, last, `manifest.json` with every count. The
hash covers the inputs, the settings, the excluded boards and the schema: stale data have another hash.

How a row travels:

1. Its game decides the split (`games.in_validation`). Rows on an excluded board are left out of both: what grades a
   network must not have chosen the epoch that is kept either.
2. The board becomes canonical: of it and its mirror the smaller. Where that is the mirror, the visits
   are flipped and the label is 6 - label.
3. Rows of one canonical board merge, inside a split only. Visits are summed, value and outcome
   averaged, rows counted. The label is the column with most rows, then most visits, then nearest the
   centre, then the lower. On a board that is its own mirror a column and its mirror are one answer: the
   visits are added to their flip, each row counts for both columns, and the lower of the two is kept.
4. A validation board that the training table holds too leaves validation.

The shipped benchmark is excluded unless told otherwise. The reference validation set is
not: it holds every board of the first plies, so leaving it out would strip the openings from
the tables, and `agreement_unseen` would be `agreement_all` under another name. Naming it is possible.

More rows than memory: the rows are laid down on disk by split and number of stones, between which
nothing merges (`distill.tables.parts`), and DuckDB groups a few parts at a time within its memory limit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill.base import provenance
from distill.base.errors import UserError
from distill.base.files import canonical_json, file_hash
from distill.base.folders import locked, replaced, sweep
from distill.base.progress import Progress
from distill.game import rules
from distill.rows import database, games, schema
from distill.rows.database import Database
from distill.rows.games import Columns
from distill.rows.majority import majority
from distill.rows.schema import PREPARED_ROW, TRAINING, VALIDATION
from distill.tables import parts

PREPARATION_VERSION = 2
"""Raised when the same games and settings make other tables. 2: excluded boards leave validation as well."""

FILES = {TRAINING: "training.parquet", VALIDATION: "validation.parquet"}

QUERY_ROWS = 1 << 20
"""Rows grouped by one query, as long as no single part has more."""

GROUP_ROWS = 1 << 17
"""Rows in each row group of a table."""

_OWN = {*FILES.values(), schema.MANIFEST, "config.json"}

_VOTES = [f"rows_{column}" for column in range(rules.COLUMNS)]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A finished folder of tables, its manifest, and whether it was there already."""

    folder: Path
    manifest: dict[str, Any]
    reused: bool


def prepare(
    folders: Sequence[Path],
    out: Path,
    *,
    validation_fraction: float = 0.15,
    exclude: Sequence[str] = ("benchmark",),
    memory_gib: float = 1.0,
    threads: int = 2,
    restart: bool = False,
) -> Prepared:
    """Prepare the games of several runs into `out/<hash>/`, or find that this was done.

    Args:
      folders: finished games, each folder another run.
      validation_fraction: expected share of games in validation.
      exclude: boards left out of both tables: words of `parts.SHIPPED_BOARDS` (where the set is not shipped,
        that is said), Parquet files with columns `current` and `mask`, or folders of such files.
      memory_gib: what DuckDB may use before it spills; the rest of the process needs about 0.5 GiB.
      restart: prepare again even where the result exists.

    The tables' bytes depend on the inputs and settings alone. An interrupted run leaves nothing but a hidden
    folder, which the next one removes. Raises DataError for inputs that cannot be used, naming the file.
    """
    runs = games.open_runs(folders)
    excluded = {name: keys for name in exclude if (keys := parts.excluded_keys(name)) is not None}
    identity = {
        "schema_version": schema.SCHEMA_VERSION,
        "preparation_version": PREPARATION_VERSION,
        "validation_fraction": validation_fraction,
        "runs": {run.name: _digest([shard.content_hash for shard in run.shards]) for run in runs},
        "excluded": _digest(sorted({int(key) for keys in excluded.values() for key in keys})),
    }
    folder = out / _digest(identity)[:16]

    def finished() -> Prepared | None:
        done = not restart and (folder / schema.MANIFEST).exists()
        return Prepared(folder=folder, manifest=schema.read_manifest(folder), reused=True) if done else None

    if before := finished():
        return before
    if folder.exists() and not {entry.name for entry in folder.iterdir()} <= _OWN:
        raise UserError(f"{folder}: holds files that are no prepared tables; name another folder than {out}")
    games.verify(runs)
    with locked(out, wait=True):
        if meanwhile := finished():
            return meanwhile
        for killed in filter(_is_partial, out.iterdir()):  # who still worked would hold the lock
            sweep(out / killed.name[1:17])
        with replaced(folder) as new:
            spill = new.parent / "spill"
            spill.mkdir()
            new.mkdir()
            metadata = {"schema_version": schema.SCHEMA_VERSION, "kind": "tables", "prepared": folder.name}
            counts = parts.lay_down(runs, spill, validation_fraction, excluded)
            counts |= _merge(spill, new, metadata, memory_gib, threads)
            manifest = metadata | {
                "identity": identity,
                "inputs": [{"run": run.name, "games": run.games, "rows": run.rows} for run in runs],
                "counts": counts,
                "files": {file: file_hash(new / file) for file in FILES.values()},
                "commit": provenance.commit(),
                "versions": provenance.versions("duckdb", "numpy", "pyarrow"),
            }
            schema.write_manifest(new, manifest)
    return Prepared(folder=folder, manifest=manifest, reused=False)


def _merge(spill: Path, out: Path, metadata: dict[str, Any], memory_gib: float, threads: int) -> dict[str, Any]:
    """Group every part by board and write both tables, sorted by (stones, current, mask); return the counts."""
    work = list(_work(spill))
    boards, self_mirror = np.zeros(2, np.int64), np.zeros(2, np.int64)
    removed_boards, removed_rows = np.zeros(rules.CELLS, np.int64), np.zeros(rules.CELLS, np.int64)
    room = out.parent.parent  # which stays when the hidden folder goes
    opened = database.opened(f"{room}: the rows could not be merged", room, memory_gib=memory_gib, threads=threads)
    with opened as grouping, Progress(sum(rows for *_, rows in work), "rows") as progress:

        def tables_of(split: int) -> Iterator[pa.Table]:
            for files, rows in ((files, rows) for of, files, rows in work if of == split):
                for batch in _grouped(grouping, files, _training_parts(files) if split == VALIDATION else []):
                    group = {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
                    seen = group["seen"]
                    stones = np.bitwise_count(group["mask"][seen])
                    np.add.at(removed_boards, stones, 1)
                    np.add.at(removed_rows, stones, group["count"][seen])
                    table, own_mirror = _merged({name: values[~seen] for name, values in group.items()}, split)
                    boards[split] += len(table)
                    self_mirror[split] += own_mirror.sum()
                    yield table
                progress.advance(rows, "merged")

        for split, name in FILES.items():
            with schema.table_writer(out / name, PREPARED_ROW, metadata | {"split": split}) as writer:
                for table in _row_groups(tables_of(split)):
                    writer.write_table(table)
    return {
        "boards": parts.by_split(boards),
        "self_mirror_boards": parts.by_split(self_mirror),
        "removed_from_validation": {"boards": _by_ply(removed_boards), "rows": _by_ply(removed_rows)},
    }


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows cut into pieces of GROUP_ROWS: DuckDB's own pieces depend on its threads and memory."""
    waiting = PREPARED_ROW.empty_table()
    for table in tables:
        waiting = pa.concat_tables([waiting, table])
        while len(waiting) >= GROUP_ROWS:
            yield waiting.slice(0, GROUP_ROWS).combine_chunks()
            waiting = waiting.slice(GROUP_ROWS)
    if len(waiting):
        yield waiting.combine_chunks()


def _work(spill: Path) -> Iterator[tuple[int, list[Path], int]]:
    """Split, parts and rows of each query: neighbouring parts together while they are small."""
    for split in FILES:
        files: list[Path] = []
        rows = 0
        for path in sorted(spill.glob(f"{split}-??.parquet")):
            size = pq.read_metadata(path).num_rows
            if files and rows + size > QUERY_ROWS:
                yield split, files, rows
                files, rows = [], 0
            files.append(path)
            rows += size
        if files:
            yield split, files, rows


def _training_parts(files: Sequence[Path]) -> list[Path]:
    """The training rows with as many stones as these validation rows."""
    candidates = (path.with_name(f"{TRAINING}{path.name.removeprefix(str(VALIDATION))}") for path in files)
    return [path for path in candidates if path.exists()]


def _grouped(grouping: Database, files: Sequence[Path], seen_in: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """One row a board of some parts, ordered: sums, rows per label, and whether `seen_in` has the board."""
    sums = [f"sum({name})::BIGINT AS {name}" for name in (*parts.VISITS, "value", "outcome")]
    votes = [f"count(*) FILTER (label = {column}) AS {name}" for column, name in enumerate(_VOTES)]
    others = (
        "SELECT 1 FROM read_parquet($others) AS other WHERE other.current = board.current AND other.mask = board.mask"
    )
    query = f"""
        SELECT *, {f"EXISTS ({others})" if seen_in else "false"} AS seen
        FROM (
            SELECT current, mask, count(*) AS count, {", ".join(sums + votes)}
            FROM read_parquet($files) GROUP BY current, mask
        ) AS board
        ORDER BY bit_count(mask), current, mask
    """
    parameters = {"files": [str(path) for path in files]}
    if seen_in:
        parameters["others"] = [str(path) for path in seen_in]
    return grouping.batches(query, parameters, GROUP_ROWS)


def _merged(group: Columns, split: int) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Prepared rows of grouped boards, and which of them are their own mirror."""
    current, mask, count = group["current"], group["mask"], group["count"]
    own_mirror = rules.is_own_mirror(current, mask)
    visits, votes = (np.stack([group[name] for name in names], axis=1) for names in (parts.VISITS, _VOTES))
    visits[own_mirror] += visits[own_mirror][:, ::-1]
    votes[own_mirror] += votes[own_mirror][:, ::-1]
    columns = [
        current,
        mask,
        pa.FixedSizeListArray.from_arrays(pa.array(visits.ravel()), rules.COLUMNS),
        majority(votes, visits),
        (group["value"] * parts.VALUE_UNIT / count).astype(np.float32),
        (group["outcome"] / count).astype(np.float32),
        count.astype(np.int32),
        np.full(len(count), split, np.int8),
    ]
    return pa.table(columns, schema=PREPARED_ROW), own_mirror


def _by_ply(counts: NDArray[np.int64]) -> dict[str, int]:
    return {str(ply): int(count) for ply, count in enumerate(counts) if count}


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _is_partial(path: Path) -> bool:
    return re.fullmatch(r"\.[0-9a-f]{16}\.(.*\.)?partial", path.name) is not None and path.is_dir()

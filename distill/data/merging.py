"""Raw rows become tables to train on: canonicalise, split, merge.

In: folders of finished games (`distill.data.games`). Out: `<out>/<hash>/` with `training.parquet`,
`validation.parquet` (rows of `schema.PREPARED_ROW`) and, last, `manifest.json` with every count. The
hash covers the inputs, the settings, the excluded boards and the schema: stale data have another hash.

How a row travels:

1. Its game decides the split (`games.in_validation`). Training rows on an excluded board are left out.
2. The board becomes canonical: of it and its mirror the smaller. Where that is the mirror, the visits
   are flipped and the label is 6 - label.
3. Rows of one canonical board merge, inside a split only. Visits are summed, value and outcome
   averaged, rows counted. The label is the column with most rows, then most visits, then nearest the
   centre, then the lower. On a board that is its own mirror a column and its mirror are one answer: the
   visits are added to their flip, each row counts for both columns, and the lower of the two is kept.
4. A validation board that the training table holds too leaves validation.

The shipped benchmark is excluded from training unless told otherwise. The reference validation set is
not: it holds every board of the first plies, so leaving it out would strip the openings from
training, and `agreement_unseen` would be `agreement_all` under another name. Naming it is possible.

More rows than memory: the rows are laid down on disk by split and number of stones, between which
nothing merges, and DuckDB groups one such part at a time within its memory limit.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill import provenance
from distill.cli import Progress
from distill.data import games, schema
from distill.data.games import Columns
from distill.data.schema import PREPARED_ROW, TRAINING, VALIDATION, DataError
from distill.game import rules

FILES = {TRAINING: "training.parquet", VALIDATION: "validation.parquet"}
SHIPPED_BOARDS = {"benchmark": "data/benchmark", "reference": "data/reference"}
"""Words that `exclude` understands beside paths."""

SPILL_ROWS = 1 << 20
"""Rows gathered before they are laid down by split and stones: 60 MB, and row groups worth reading."""

QUERY_ROWS = 1 << 20
"""Rows grouped by one query, as long as no single part has more."""

GROUP_ROWS = 1 << 17
"""Rows in each row group of a table."""

VALUE_UNIT = 2.0**-32
"""Values are summed as whole multiples of this, so that a mean does not depend on the order of its rows."""

_VISITS = [f"visits_{column}" for column in range(rules.COLUMNS)]
_VOTES = [f"rows_{column}" for column in range(rules.COLUMNS)]
_SPILLED = pa.schema(
    [("current", pa.uint64()), ("mask", pa.uint64()), ("label", pa.int8())]
    + [(name, pa.int32()) for name in _VISITS]
    + [("value", pa.int64()), ("outcome", pa.int8())]
)


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
      exclude: boards left out of training: words of SHIPPED_BOARDS (ignored where the set is not
        shipped), Parquet files with columns `current` and `mask`, or folders of such files.
      memory_gib: what DuckDB may use before it spills; the rest of the process needs about 0.3 GiB.
      restart: prepare again even where the result exists.

    The tables' bytes depend on the inputs and settings alone. An interrupted run leaves nothing but a hidden
    folder, which the next one removes. Raises DataError for inputs that cannot be used, naming the file.
    """
    runs = games.open_runs(folders)
    excluded = {name: keys for name in exclude if (keys := _excluded_keys(name)) is not None}
    identity = {
        "schema_version": schema.SCHEMA_VERSION,
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
    games.verify(runs)
    out.mkdir(parents=True, exist_ok=True)
    with _locked(out / ".lock"):
        if meanwhile := finished():
            return meanwhile
        for leaving in out.glob(".*.partial"):  # of a killed run: whoever still worked would hold the lock
            shutil.rmtree(leaving)
        partial = out / f".{folder.name}.partial"
        try:
            (partial / "spill").mkdir(parents=True)
            metadata = {"schema_version": schema.SCHEMA_VERSION, "kind": "tables", "prepared": folder.name}
            counts = _spill(runs, partial / "spill", validation_fraction, excluded)
            counts |= _merge(partial / "spill", partial, metadata, memory_gib, threads)
            shutil.rmtree(partial / "spill")
            manifest = metadata | {
                "identity": identity,
                "inputs": [{"run": run.name, "games": run.games, "rows": run.rows} for run in runs],
                "counts": counts,
                "files": {file: schema.file_hash(partial / file) for file in FILES.values()},
                "commit": provenance.commit(),
                "versions": provenance.versions("duckdb", "numpy", "pyarrow"),
            }
            schema.write_manifest(partial, manifest)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Prepared(folder=folder, manifest=manifest, reused=False)


# ---------------------------------------------------------------------------------------------- rows to parts


def board_keys(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64 (B,): one number a canonical board, the same for a board and its mirror.

    current + mask tells positions apart: a column of k stones adds its pattern, below 2^k, to 2^k - 1, so
    columns of different heights have disjoint sums, and no sum leaves its seven bits. (Known from
    Pascal Pons' solver.)
    """
    current, mask, _ = rules.canonicalise(np.asarray(current, np.uint64), np.asarray(mask, np.uint64))
    return current + mask


def _excluded_keys(name: str) -> NDArray[np.uint64] | None:
    """The sorted keys of a set of boards, or None for a shipped set that is not there."""
    place = provenance.shipped(SHIPPED_BOARDS[name]) if name in SHIPPED_BOARDS else Path(name)
    if place is None:
        return None
    files = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
    if not files:
        if name in SHIPPED_BOARDS:
            return None
        raise DataError(f"--exclude {name}: no Parquet file there")
    keys = []
    for file in files:
        try:
            table = pq.read_table(file, columns=["current", "mask"], page_checksum_verification=True)
            current, mask = (table[column].cast(pa.uint64()).to_numpy() for column in ("current", "mask"))
        except (OSError, KeyError, pa.ArrowException) as error:
            raise DataError(f"{file}: no columns current and mask can be read ({str(error).splitlines()[0]})") from None
        keys.append(board_keys(current, mask))
    return np.unique(np.concatenate(keys))


def _spill(
    runs: Sequence[games.Run], folder: Path, validation_fraction: float, excluded: dict[str, NDArray[np.uint64]]
) -> dict[str, Any]:
    """Lay the rows down in `folder` as `<split>-<stones>.parquet`, canonical; return what was counted."""
    split_rows = np.zeros(2, np.int64)
    hits = {name: np.zeros(len(keys), np.int64) for name, keys in excluded.items()}
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:
        for rows in _gathered(_canonical_rows(runs, validation_fraction), SPILL_ROWS):
            kept = _not_excluded(rows, excluded, hits)
            split_rows += np.bincount(rows["split"][kept], minlength=2)
            for part, table in _parts({name: values[kept] for name, values in rows.items()}):
                if part not in writers:
                    writers[part] = files.enter_context(
                        pq.ParquetWriter(folder / f"{part}.parquet", _SPILLED, compression="lz4", use_dictionary=False)
                    )
                writers[part].write_table(table)
    of_runs = [games.count_games(run, validation_fraction) for run in runs]
    split_games = [sum(counts[split] for counts in of_runs) for split in (TRAINING, VALIDATION)]
    if not split_rows[TRAINING]:
        left_out = sum(int(found.sum()) for found in hits.values())
        raise DataError(
            f"no training rows: {split_games[TRAINING]} games fell to training, {split_games[VALIDATION]} to "
            f"validation, {left_out} rows are excluded; generate more games"
        )
    return {
        "rows_read": sum(run.rows for run in runs),
        "games": _by_split(split_games),
        "rows": _by_split(split_rows),
        "excluded": {
            name: {"boards": len(keys), "boards_found": int((hits[name] > 0).sum()), "rows": int(hits[name].sum())}
            for name, keys in excluded.items()
        },
    }


def _canonical_rows(runs: Sequence[games.Run], validation_fraction: float) -> Iterator[Columns]:
    """All rows of the runs on their canonical boards, with their split, a piece at a time."""
    columns = ("game_id", "current", "mask", "label", "visits", "value", "outcome")
    with Progress(sum(run.rows for run in runs), "rows") as progress:
        for run in runs:
            for shard in run.shards:
                for rows in games.read(shard, columns):
                    split = games.in_validation(run.name, rows["game_id"], validation_fraction).astype(np.int8)
                    yield _canonical(rows) | {"split": split}
                    progress.advance(len(split), "made canonical")


def _gathered(pieces: Iterable[Columns], size: int) -> Iterator[Columns]:
    """The pieces joined until they have at least `size` rows; the last may have fewer."""
    waiting: list[Columns] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(each["split"]) for each in waiting) >= size:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(pieces: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _canonical(rows: Columns) -> Columns:
    """The rows seen on their canonical boards."""
    current, mask, mirrored = rules.canonicalise(rows["current"], rows["mask"])
    return {
        "current": current,
        "mask": mask,
        "label": np.where(mirrored, rules.COLUMNS - 1 - rows["label"], rows["label"]).astype(np.int8),
        "visits": np.where(mirrored[:, None], rows["visits"][:, ::-1], rows["visits"]),
        "value": np.rint(rows["value"].astype(np.float64) / VALUE_UNIT).astype(np.int64),
        "outcome": rows["outcome"],
    }


def _not_excluded(
    rows: Columns, excluded: dict[str, NDArray[np.uint64]], hits: dict[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """bool (B,): rows that stay; `hits` counts, per set and board, the training rows that do not."""
    kept = np.ones(len(rows["label"]), np.bool_)
    keys = rows["current"] + rows["mask"]
    for name, boards in excluded.items():
        places = np.minimum(np.searchsorted(boards, keys), max(len(boards) - 1, 0))
        found = (boards[places] == keys) & (rows["split"] == TRAINING) if len(boards) else ~kept
        hits[name] += np.bincount(places[found], minlength=len(boards))
        kept &= ~found
    return kept


def _parts(rows: Columns) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each split and number of stones, with the part's name."""
    part = rows["split"].astype(np.uint8) * np.uint8(64) + np.bitwise_count(rows["mask"])
    order = np.argsort(part, kind="stable")
    names, starts = np.unique(part[order], return_index=True)
    visits = rows["visits"].T
    arrays = {**rows, **dict(zip(_VISITS, visits, strict=True))}
    for name, places in zip(names, np.split(order, starts[1:]), strict=True):
        table = pa.table([arrays[field.name][places] for field in _SPILLED], schema=_SPILLED)
        yield f"{name // 64}-{name % 64:02d}", table


# ------------------------------------------------------------------------------------------- parts to tables


def _merge(spill: Path, out: Path, metadata: dict[str, Any], memory_gib: float, threads: int) -> dict[str, Any]:
    """Group every part by board and write both tables, sorted by (stones, current, mask); return the counts."""
    work = list(_work(spill))
    boards, self_mirror = np.zeros(2, np.int64), np.zeros(2, np.int64)
    removed_boards, removed_rows = np.zeros(rules.CELLS, np.int64), np.zeros(rules.CELLS, np.int64)
    with duckdb.connect() as database, Progress(sum(rows for *_, rows in work), "rows") as progress:
        database.execute(f"SET memory_limit = '{memory_gib * 1024:.0f}MiB'")
        database.execute(f"SET threads = {threads}")
        database.execute("SET temp_directory = ?", [str(spill / "duckdb")])

        def tables_of(split: int) -> Iterator[pa.Table]:
            for parts, rows in ((parts, rows) for of, parts, rows in work if of == split):
                for batch in _grouped(database, parts, _training_parts(parts) if split == VALIDATION else []):
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
        "boards": _by_split(boards),
        "self_mirror_boards": _by_split(self_mirror),
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
        parts: list[Path] = []
        rows = 0
        for path in sorted(spill.glob(f"{split}-??.parquet")):
            size = pq.read_metadata(path).num_rows
            if parts and rows + size > QUERY_ROWS:
                yield split, parts, rows
                parts, rows = [], 0
            parts.append(path)
            rows += size
        if parts:
            yield split, parts, rows


def _training_parts(parts: Sequence[Path]) -> list[Path]:
    """The training rows with as many stones as these validation rows."""
    candidates = (path.with_name(f"{TRAINING}{path.name.removeprefix(str(VALIDATION))}") for path in parts)
    return [path for path in candidates if path.exists()]


def _grouped(
    database: duckdb.DuckDBPyConnection, parts: Sequence[Path], seen_in: Sequence[Path]
) -> pa.RecordBatchReader:
    """One row a board of the parts, ordered: sums, rows per label, and whether `seen_in` has the board."""
    sums = [f"sum({name})::BIGINT AS {name}" for name in (*_VISITS, "value", "outcome")]
    votes = [f"count(*) FILTER (label = {column}) AS {name}" for column, name in enumerate(_VOTES)]
    others = (
        "SELECT 1 FROM read_parquet($others) AS other WHERE other.current = board.current AND other.mask = board.mask"
    )
    query = f"""
        SELECT *, {f"EXISTS ({others})" if seen_in else "false"} AS seen
        FROM (
            SELECT current, mask, count(*) AS count, {", ".join(sums + votes)}
            FROM read_parquet($parts) GROUP BY current, mask
        ) AS board
        ORDER BY bit_count(mask), current, mask
    """
    parameters = {"parts": [str(path) for path in parts]}
    if seen_in:
        parameters["others"] = [str(path) for path in seen_in]
    return database.sql(query, params=parameters).to_arrow_reader(GROUP_ROWS)


def _merged(group: Columns, split: int) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Prepared rows of grouped boards, and which of them are their own mirror."""
    current, mask, count = group["current"], group["mask"], group["count"]
    own_mirror = (rules.mirror_bits(mask) == mask) & (rules.mirror_bits(current) == current)
    visits, votes = (np.stack([group[name] for name in names], axis=1) for names in (_VISITS, _VOTES))
    visits[own_mirror] += visits[own_mirror][:, ::-1]
    votes[own_mirror] += votes[own_mirror][:, ::-1]
    columns = [
        current,
        mask,
        pa.FixedSizeListArray.from_arrays(pa.array(visits.ravel()), rules.COLUMNS),
        majority(votes, visits),
        (group["value"] * VALUE_UNIT / count).astype(np.float32),
        (group["outcome"] / count).astype(np.float32),
        count.astype(np.int32),
        np.full(len(count), split, np.int8),
    ]
    return pa.table(columns, schema=PREPARED_ROW), own_mirror


def majority(votes: NDArray[np.int64], visits: NDArray[np.int64]) -> NDArray[np.int8]:
    """int8 (B,): the column with most votes, then most visits, then nearest the centre, then the lower; both (B, 7)."""
    order = np.array(rules.COLUMNS_FROM_CENTRE)
    votes, visits = votes[:, order], visits[:, order]
    leading = np.where(votes == votes.max(axis=1, keepdims=True), visits, -1)
    best: NDArray[np.int8] = order[leading.argmax(axis=1)].astype(np.int8)
    return best


def _by_split(counts: Sequence[int] | NDArray[np.int64]) -> dict[str, int]:
    return {"training": int(counts[TRAINING]), "validation": int(counts[VALIDATION])}


def _by_ply(counts: NDArray[np.int64]) -> dict[str, int]:
    return {str(ply): int(count) for ply, count in enumerate(counts) if count}


def _digest(value: Any) -> str:
    return hashlib.sha256(schema.canonical_json(value).encode()).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process prepares here; the system releases the lock when a process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

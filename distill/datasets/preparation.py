"""Raw rows become tables to train on: canonicalise, split, merge.

In: folders of finished games (`distill.games.reader`). Out: `<out>/<hash>/` with `training.parquet`,
`validation.parquet` (rows of `schema.PREPARED_ROW`) and, last, `manifest.json` with every count. The
hash covers the inputs, the settings, the excluded boards and the schema: stale data have another hash. Tables are
reused only while the shards they were made of, and the tables themselves, are the files their manifests describe.

How a row travels:

1. Its game decides the split (`reader.in_validation`). Rows on an excluded board are left out of both: what grades a
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

More rows than memory: the rows go into a table of DuckDB's, which spills, in pieces sorted by the number of stones, and
are grouped one number of stones at a time: a query skips the blocks of the table that have no such rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError, Progress, UserError, canonical_json, file_hash, provenance, say
from distill.common.folders import all_visible, check_replaceable, locked, replaced, sweep
from distill.datasets.canonical import canonical, excluded_keys
from distill.game import rules
from distill.games import database, reader, schema
from distill.games.database import Database
from distill.games.majority import majority
from distill.games.reader import Columns
from distill.games.schema import PREPARED_ROW, TRAINING, VALIDATION

PREPARATION_VERSION = 2
"""Raised when the same games and settings make other tables. 2: excluded boards leave validation as well."""

FILES = {TRAINING: "training.parquet", VALIDATION: "validation.parquet"}

PIECE_ROWS = 1 << 20
"""Rows gathered before they are sorted by stones and go into the table: 80 MB."""

GROUP_ROWS = 1 << 17
"""Rows in each row group of a table."""

VALUE_UNIT = 2.0**-32
"""Values are summed as whole multiples of this, so that a mean does not depend on the order of its rows."""

_OWN = {*FILES.values(), schema.MANIFEST, "config.json"}

_VISITS, _VOTES = ([f"{what}_{column}" for column in range(rules.COLUMNS)] for what in ("visits", "rows"))

_ROW = {
    "stones": "UTINYINT",
    "split": "TINYINT",
    "current": "UBIGINT",
    "mask": "UBIGINT",
    "label": "TINYINT",
    **dict.fromkeys(_VISITS, "INTEGER"),
    "value": "BIGINT",  # in units of VALUE_UNIT
    "outcome": "TINYINT",
}
_SUMS = [f"sum({name})::BIGINT AS {name}" for name in (*_VISITS, "value", "outcome")]
_COUNTS = [f"count(*) FILTER (label = {column}) AS {name}" for column, name in enumerate(_VOTES)]
_BOARDS = f"""
    SELECT current, mask, split, count(*) AS count, {", ".join(_SUMS + _COUNTS)}
    FROM rows WHERE stones = $stones GROUP BY current, mask, split ORDER BY current, mask, split
"""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A finished folder of tables, its manifest, and whether it was there already."""

    folder: Path
    manifest: dict[str, Any]
    reused: bool

    def told(self, data: Sequence[Path]) -> str:
        """The line that says which tables are used, and whether they were made now."""
        return f"{self.folder}: {'reused' if self.reused else 'prepared'} tables of {', '.join(map(str, data))}"


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
    """Prepare the games of several runs into `out/<hash>/`, or find that this was done; shards are verified first.

    Args:
      folders: finished games, each folder another run.
      validation_fraction: expected share of games in validation.
      exclude: boards left out of both tables: words of `canonical.SHIPPED_BOARDS` (where the set is not shipped,
        that is said), Parquet files with columns `current` and `mask`, or folders of such files.
      memory_gib: what DuckDB may use before it spills; the rest of the process needs about 0.5 GiB.
      restart: prepare again even where the result exists.

    The tables' bytes depend on the inputs and settings alone. An interrupted run leaves nothing but a hidden
    folder, which the next one removes. Raises DataError for inputs that cannot be used, naming the file.
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
    folder = out / _digest(identity)[:16]
    inputs = [
        {
            "run": run.name,
            "games": run.games,
            "rows": run.rows,
            "files": _digest([shard.sha256 for shard in run.shards]),
            "settings": _settings(run),
        }
        for run in runs
    ]

    def finished() -> Prepared | None:
        if restart or not (folder / schema.MANIFEST).exists():
            return None
        manifest = schema.read_manifest(folder)
        if manifest.get("inputs") != inputs:  # the same hashes of rows, but in files that were not looked into yet
            return None
        _verify_tables(folder, manifest)
        return Prepared(folder=folder, manifest=manifest, reused=True)

    if before := finished():
        return before
    if not {*all_visible(folder)} <= _OWN:
        raise UserError(f"{folder}: holds files that are no prepared tables; name another folder than {out}")
    check_replaceable(folder)
    reader.verify_contents(runs)
    with locked(out, wait=True):
        if meanwhile := finished():
            return meanwhile
        for killed in filter(_is_partial, out.iterdir()):  # who still worked would hold the lock
            sweep(out / killed.name[1:17])
        say(f"preparing tables of {', '.join(str(run.folder) for run in runs)}")
        with replaced(folder) as new:
            new.mkdir()
            metadata = {"schema_version": schema.SCHEMA_VERSION, "kind": "tables", "prepared": folder.name}
            task = f"{out}: the rows could not be merged"
            with database.opened(task, out, memory_gib=memory_gib, threads=threads) as grouping:
                counts = _lay_down(grouping, runs, validation_fraction, excluded)
                counts |= _merge(grouping, new, metadata)
            manifest = metadata | {
                "identity": identity,
                "inputs": inputs,
                "counts": counts,
                "files": {file: file_hash(new / file) for file in FILES.values()},
                "commit": provenance.commit(),
                "versions": provenance.versions("duckdb", "numpy", "pyarrow"),
            }
            schema.write_manifest(new, manifest)
    return Prepared(folder=folder, manifest=manifest, reused=False)


def _verify_tables(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise DataError unless the tables are the files that their manifest describes."""
    for name in FILES.values():
        path = folder / name
        if not path.is_file() or file_hash(path) != manifest.get("files", {}).get(name):
            raise DataError(
                f"{path}: not the file its manifest describes (damaged or changed); delete {folder} to have it rebuilt"
            )


def _settings(run: reader.Run) -> dict[str, Any]:
    """How a run was made, as its manifest says."""
    settings: dict[str, Any] = schema.read_manifest(run.folder).get("identity", {})
    return settings


def _lay_down(
    grouping: Database, runs: Sequence[reader.Run], validation_fraction: float, excluded: dict[str, NDArray[np.uint64]]
) -> dict[str, Any]:
    """Put the rows into the table `rows`, canonical; return what was counted."""
    split_rows = np.zeros(2, np.int64)
    hits = {name: np.zeros((2, len(keys)), np.int64) for name, keys in excluded.items()}
    grouping.create("rows", _ROW)
    for rows in _gathered(_canonical_rows(runs, validation_fraction)):
        kept = _not_excluded(rows, excluded, hits)
        split_rows += np.bincount(rows["split"][kept], minlength=2)
        order = np.flatnonzero(kept)[np.argsort(rows["stones"][kept], kind="stable")]
        grouping.insert("rows", pa.table({name: rows[name][order] for name in _ROW}))
    of_runs = [reader.count_games(run, validation_fraction) for run in runs]
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
            name: {
                "boards": len(keys),
                "boards_found": int(hits[name].any(axis=0).sum()),
                "rows": _by_split(hits[name].sum(axis=1)),
            }
            for name, keys in excluded.items()
        },
    }


def _canonical_rows(runs: Sequence[reader.Run], validation_fraction: float) -> Iterator[Columns]:
    """All rows of the runs on their canonical boards, with their split, a piece at a time."""
    columns = ("game_id", "current", "mask", "label", "visits", "value", "outcome")
    with Progress(sum(run.rows for run in runs), "rows") as progress:
        for run in runs:
            for shard in run.shards:
                for rows in reader.read(shard, columns):
                    found = canonical(rows)
                    found |= dict(zip(_VISITS, found["visits"].T, strict=True))
                    found["stones"] = np.bitwise_count(found["mask"])
                    found["split"] = reader.in_validation(run.name, rows["game_id"], validation_fraction).astype(
                        np.int8
                    )
                    found["value"] = np.rint(rows["value"].astype(np.float64) / VALUE_UNIT).astype(np.int64)
                    yield {name: found[name] for name in _ROW}
                    progress.advance(len(rows["mask"]), "made canonical")


def _gathered(pieces: Iterable[Columns]) -> Iterator[Columns]:
    """The pieces joined until they have PIECE_ROWS rows or more; the last may have fewer."""
    waiting: list[Columns] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(each["split"]) for each in waiting) >= PIECE_ROWS:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(pieces: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _not_excluded(
    rows: Columns, excluded: dict[str, NDArray[np.uint64]], hits: dict[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """bool (B,): rows that stay; `hits`, (2, boards) a set, counts by split and board the rows that do not."""
    kept = np.ones(len(rows["label"]), np.bool_)
    keys = rows["current"] + rows["mask"]
    for name, boards in excluded.items():
        places = np.minimum(np.searchsorted(boards, keys), max(len(boards) - 1, 0))
        found = boards[places] == keys if len(boards) else ~kept
        np.add.at(hits[name], (rows["split"][found], places[found]), 1)
        kept &= ~found
    return kept


def _merge(grouping: Database, out: Path, metadata: dict[str, Any]) -> dict[str, Any]:
    """Group the rows by board and write both tables, sorted by (stones, current, mask); return the counts."""
    boards, self_mirror = np.zeros(2, np.int64), np.zeros(2, np.int64)
    removed_boards, removed_rows = np.zeros(rules.CELLS, np.int64), np.zeros(rules.CELLS, np.int64)
    with ExitStack() as open_files:
        files = [_in_row_groups(out / name, metadata | {"split": split}) for split, name in FILES.items()]
        add = {split: open_files.enter_context(file) for split, file in zip(FILES, files, strict=True)}
        progress = open_files.enter_context(Progress(grouping.execute("SELECT count(*) FROM rows")[0][0], "rows"))
        for stones in range(rules.CELLS):
            latest = np.uint64(2**64 - 1)  # no board's key
            for batch in grouping.batches(_BOARDS, {"stones": stones}, GROUP_ROWS):
                group = {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
                keys = group["current"] + group["mask"]
                seen = keys == np.append(latest, keys[:-1])  # a board's training row comes just before
                latest = keys[-1]
                removed_boards[stones] += seen.sum()
                removed_rows[stones] += group["count"][seen].sum()
                for split in FILES:
                    chosen = (group["split"] == split) & ~seen
                    table, own_mirror = _merged({name: values[chosen] for name, values in group.items()}, split)
                    boards[split] += len(table)
                    self_mirror[split] += own_mirror.sum()
                    add[split](table)
                progress.advance(int(group["count"].sum()), "merged")
    return {
        "boards": _by_split(boards),
        "self_mirror_boards": _by_split(self_mirror),
        "removed_from_validation": {"boards": _by_ply(removed_boards), "rows": _by_ply(removed_rows)},
    }


@contextmanager
def _in_row_groups(path: Path, metadata: dict[str, Any]) -> Iterator[Callable[[pa.Table], None]]:
    """What adds rows to a file, GROUP_ROWS at a time: DuckDB's own pieces depend on its threads and memory."""
    waiting = PREPARED_ROW.empty_table()

    def add(table: pa.Table) -> None:
        nonlocal waiting
        waiting = pa.concat_tables([waiting, table])
        while len(waiting) >= GROUP_ROWS:
            writer.write_table(waiting.slice(0, GROUP_ROWS).combine_chunks())
            waiting = waiting.slice(GROUP_ROWS)

    with schema.table_writer(path, PREPARED_ROW, metadata) as writer:
        yield add
        if len(waiting):
            writer.write_table(waiting.combine_chunks())


def _merged(group: Columns, split: int) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Prepared rows of grouped boards, and which of them are their own mirror."""
    current, mask, count = group["current"], group["mask"], group["count"]
    own_mirror = rules.is_own_mirror(current, mask)
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


def _by_split(counts: Sequence[int] | NDArray[np.int64]) -> dict[str, int]:
    """Counts by split, as a manifest writes them."""
    return {"training": int(counts[TRAINING]), "validation": int(counts[VALIDATION])}


def _by_ply(counts: NDArray[np.int64]) -> dict[str, int]:
    return {str(ply): int(count) for ply, count in enumerate(counts) if count}


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _is_partial(path: Path) -> bool:
    return re.fullmatch(r"\.[0-9a-f]{16}\.(.*\.)?partial", path.name) is not None and path.is_dir()

"""Raw rows on their canonical boards, laid down on disk in parts between which nothing merges.

In: verified runs of games. Out: one Parquet file for each split and number of stones, plain columns that
DuckDB can group, and the counts of what was read, split off and left out. Memory: SPILL_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distill.base import provenance
from distill.base.errors import DataError, first_line
from distill.base.progress import Progress, say
from distill.game import rules
from distill.rows import games
from distill.rows.games import Columns
from distill.rows.schema import TRAINING, VALIDATION

SHIPPED_BOARDS = {"benchmark": "data/benchmark", "reference": "data/reference"}
"""Words that `exclude` understands beside paths."""

SPILL_ROWS = 1 << 20
"""Rows gathered before they are laid down by split and stones: 60 MB, and row groups worth reading."""

VALUE_UNIT = 2.0**-32
"""Values are summed as whole multiples of this, so that a mean does not depend on the order of its rows."""

VISITS = [f"visits_{column}" for column in range(rules.COLUMNS)]
"""Columns of a part that hold the visits: plain numbers are what DuckDB sums fastest."""

_PART = pa.schema(
    [("current", pa.uint64()), ("mask", pa.uint64()), ("label", pa.int8())]
    + [(name, pa.int32()) for name in VISITS]
    + [("value", pa.int64()), ("outcome", pa.int8())]
)


def board_keys(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64 (B,): one number a canonical board, the same for a board and its mirror.

    current + mask tells positions apart: a column of k stones adds its pattern, below 2^k, to 2^k - 1, so
    columns of different heights have disjoint sums, and no sum leaves its seven bits. (Known from
    Pascal Pons' solver.)
    """
    current, mask, _ = rules.canonicalise(np.asarray(current, np.uint64), np.asarray(mask, np.uint64))
    return current + mask


def excluded_keys(name: str) -> NDArray[np.uint64] | None:
    """The sorted keys of a set of boards, or None, which is said, for a shipped set that is not there."""
    place = provenance.shipped(SHIPPED_BOARDS[name]) if name in SHIPPED_BOARDS else Path(name)
    files = [] if place is None else [place] if place.is_file() else sorted(place.rglob("*.parquet"))
    if not files:
        if name in SHIPPED_BOARDS:
            say(f"the shipped boards {SHIPPED_BOARDS[name]} are not here: none of them is kept out of the tables")
            return None
        raise DataError(f"--exclude {name}: no Parquet file there")
    keys = []
    for file in files:
        try:
            table = pq.read_table(file, columns=["current", "mask"], page_checksum_verification=True)
            current, mask = (table[column].cast(pa.uint64()).to_numpy() for column in ("current", "mask"))
        except (OSError, KeyError, pa.ArrowException) as error:
            raise DataError(f"{file}: no columns current and mask can be read ({first_line(error)})") from None
        keys.append(board_keys(current, mask))
    return np.unique(np.concatenate(keys))


def lay_down(
    runs: Sequence[games.Run], folder: Path, validation_fraction: float, excluded: dict[str, NDArray[np.uint64]]
) -> dict[str, Any]:
    """Lay the rows down in `folder` as `<split>-<stones>.parquet`, canonical; return what was counted."""
    split_rows = np.zeros(2, np.int64)
    hits = {name: np.zeros((2, len(keys)), np.int64) for name, keys in excluded.items()}
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:
        for rows in _gathered(_canonical_rows(runs, validation_fraction), SPILL_ROWS):
            kept = _not_excluded(rows, excluded, hits)
            split_rows += np.bincount(rows["split"][kept], minlength=2)
            for part, table in _parts({name: values[kept] for name, values in rows.items()}):
                if part not in writers:
                    writers[part] = files.enter_context(
                        pq.ParquetWriter(folder / f"{part}.parquet", _PART, compression="lz4", use_dictionary=False)
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
        "games": by_split(split_games),
        "rows": by_split(split_rows),
        "excluded": {
            name: {
                "boards": len(keys),
                "boards_found": int(hits[name].any(axis=0).sum()),
                "rows": by_split(hits[name].sum(axis=1)),
            }
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
    """bool (B,): rows that stay; `hits`, (2, boards) a set, counts by split and board the rows that do not."""
    kept = np.ones(len(rows["label"]), np.bool_)
    keys = rows["current"] + rows["mask"]
    for name, boards in excluded.items():
        places = np.minimum(np.searchsorted(boards, keys), max(len(boards) - 1, 0))
        found = boards[places] == keys if len(boards) else ~kept
        np.add.at(hits[name], (rows["split"][found], places[found]), 1)
        kept &= ~found
    return kept


def _parts(rows: Columns) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each split and number of stones, with the part's name."""
    if not len(rows["mask"]):
        return
    part = rows["split"].astype(np.uint8) * np.uint8(64) + np.bitwise_count(rows["mask"])
    order = np.argsort(part, kind="stable")
    names, starts = np.unique(part[order], return_index=True)
    visits = rows["visits"].T
    arrays = {**rows, **dict(zip(VISITS, visits, strict=True))}
    for name, places in zip(names, np.split(order, starts[1:]), strict=True):
        table = pa.table([arrays[field.name][places] for field in _PART], schema=_PART)
        yield f"{name // 64}-{name % 64:02d}", table


def by_split(counts: Sequence[int] | NDArray[np.int64]) -> dict[str, int]:
    """Counts by split, as a manifest writes them."""
    return {"training": int(counts[TRAINING]), "validation": int(counts[VALIDATION])}

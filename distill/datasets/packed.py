"""Prepared tables kept small, 6 to 7 bytes a board, so that they can travel with a repository.

In: a folder of `preparation.prepare`. Out: a folder that `--data` takes like one of games, one row a board, both splits
together: `reader.read` says what it gives for each. Lost are how often a board was met, visits beyond one part in 255
of the largest, value beyond one in 127, and of the games' outcomes all but their rounded mean.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from distill.common import UserError, canonical_json, file_hash, folders, provenance, write_json
from distill.datasets import batching
from distill.datasets.preparation import Prepared
from distill.game import rules
from distill.games import reader, schema
from distill.games.schema import PACKED, PACKED_ROW, TRAINING, VALIDATION, VALUE_STEPS, Shard

SHARD_ROWS = 1 << 21
"""Boards of a file at most: 14 MB."""

MOST_VISITS = 255


def require(out: Path, restart: bool = False) -> None:
    """Raise UserError unless `out` is free, or holds packed boards that may stay or, with `restart`, go."""
    folders.require(out, folders.PACKED_BOARDS, own=_own(out), restart=restart)


def pack(prepared: Prepared, out: Path, restart: bool = False) -> int:
    """Write the boards of prepared tables, training and validation, into `out`; returns how many there are.

    The manifest comes last; a killed run leaves a folder without one, which the next run fills. Raises UserError where
    `out` holds boards of other tables, or files that were changed since, unless `restart` deletes them.
    """
    source = prepared.manifest
    identity = source["identity"] | {"kind": PACKED}
    with folders.locked(out):
        require(out, restart)
        if restart:
            folders.clear(out, _own(out))
        elif (out / schema.MANIFEST).is_file():
            before = schema.read_manifest(out)
            if before["identity"] != identity:
                raise UserError(f"{out}: holds boards of other tables; name another folder, or add --restart")
            reader.verify([reader.open_run(out)], "to write the boards again: add --restart")
            return int(before["rows"])
        write_json(out / "config.json", identity)
        boards = _rows(prepared.folder)
        run = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
        about = {"schema_version": schema.SCHEMA_VERSION, "kind": PACKED, "run": run, "identity": identity}
        shards = []
        for number, first in enumerate(range(0, len(boards), SHARD_ROWS)):
            path = out / f"shard-{number:05}.parquet"
            shards.append(write_shard(path, boards.slice(first, SHARD_ROWS), first, about))
        for left in {*out.glob("shard-*.parquet")} - {out / shard.name for shard in shards}:
            left.unlink()  # by a killed run of other tables
        write_manifest(out, about, shards, inputs=source["inputs"], versions=source["versions"])
    return len(boards)


def write_manifest(
    out: Path, about: Mapping[str, Any], shards: Sequence[Shard], inputs: Sequence[Any], versions: Mapping[str, str]
) -> None:
    """Say that a folder is whole: `about` as in its files, which are `shards`, and what they were made of and by."""
    boards = sum(shard.rows for shard in shards)
    written = {"games": boards, "rows": boards, "shards": list(map(dataclasses.asdict, shards))}
    made = {"inputs": inputs, "commit": provenance.commit(), "versions": versions}
    schema.write_manifest(out, {**about, **written, **made})


def write_shard(path: Path, boards: pa.Table, first: int, about: Mapping[str, Any]) -> Shard:
    """Write boards, rows of `PACKED_ROW` of which the first has that number; returns the entry of their file."""
    schema.write_table(path, boards, {**about, "first_game": first, "games": len(boards)})
    return Shard(
        name=path.name,
        first_game=first,
        games=len(boards),
        rows=len(boards),
        simulations=0,
        sha256=file_hash(path),
        content_hash=schema.content_hash(boards),
    )


def _own(out: Path) -> list[str]:
    return [schema.MANIFEST, *sorted(path.name for path in out.glob("shard-*.parquet"))]


def _rows(folder: Path) -> pa.Table:
    """A prepared folder's boards as rows of `PACKED_ROW`, by key: neighbours differ little, which packs well."""
    learned, held_out = (batching.load(folder, split) for split in (TRAINING, VALIDATION))
    key, value, outcome, visits = (
        np.concatenate([getattr(learned, name), getattr(held_out, name)])
        for name in ("current", "value", "outcome", "visits")
    )
    key += np.concatenate([learned.mask, held_out.mask])
    largest = visits.max(1, keepdims=True)
    visits = np.rint(visits * np.minimum(1, MOST_VISITS / np.maximum(largest, 1))).astype(np.uint8)
    order = np.argsort(key)
    columns = [
        key[order],
        pa.FixedSizeListArray.from_arrays(pa.array(visits[order].ravel()), rules.COLUMNS),
        np.rint(value[order] * VALUE_STEPS).astype(np.int8),
        np.rint(outcome[order]).astype(np.int8),
    ]
    return pa.table(columns, schema=PACKED_ROW)

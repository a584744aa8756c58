"""Canonical boards (the smaller of a board and its mirror), merged rows, keys, and boards that tables leave out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError, provenance, say
from distill.game import rules
from distill.game.rules import canonical_keys
from distill.games import schema
from distill.games.reader import Columns
from distill.mcts.labeller import majority

VALUE_UNIT = 2.0**-32
"""Values are summed as whole multiples of this, so that a mean does not depend on the order of its rows."""

BOARD = pa.schema([("current", pa.uint64()), ("mask", pa.uint64())])
"""What is read of a file of boards."""

SHIPPED_BOARDS = {"benchmark": "data/benchmark", "reference": "data/reference/validation"}
"""Words that `exclude` understands beside paths."""


def canonical(rows: Columns) -> Columns:
    """The rows seen on their canonical boards: visits and label turn with the board."""
    current, mask, mirrored = rules.canonicalise(rows["current"], rows["mask"])
    return rows | {
        "current": current,
        "mask": mask,
        "label": np.where(mirrored, rules.COLUMNS - 1 - rows["label"], rows["label"]).astype(np.int8),
        "visits": np.where(mirrored[:, None], rows["visits"][:, ::-1], rows["visits"]),
    }


def merged(rows: Columns, by: Sequence[str]) -> Columns:
    """Prepared columns of canonical rows grouped by these columns, in their order.

    Visits are summed, value and outcome averaged, and rows counted. The label is the column with most rows, then most
    visits, then nearest the centre, then the lower. On a board that is its own mirror both columns count.
    """
    # Sort the rows by group; a group starts where one of its columns changes.
    order = np.lexsort([rows[name] for name in reversed(by)])
    group = {name: rows[name][order] for name in by}
    is_new = np.any([np.diff(values, prepend=values[:1]) != 0 for values in group.values()], axis=0)
    is_new[:1] = True
    starts = np.flatnonzero(is_new)

    def total(values: NDArray[Any]) -> NDArray[np.int64]:
        """Sums of each group."""
        return np.add.reduceat(values[order].astype(np.int64), starts)

    group = {name: values[starts] for name, values in group.items()}
    count = np.diff(starts, append=len(order))
    visits, votes = total(rows["visits"]), total(rows["label"][:, None] == np.arange(rules.COLUMNS))
    # On a board that is its own mirror, a column and its mirror are one answer.
    own_mirror = rules.is_own_mirror(group["current"], group["mask"])
    for counts in (visits, votes):
        counts[own_mirror] += counts[own_mirror][:, ::-1]
    # Whole numbers add up to the same sum in any order, floats do not.
    units = {name: np.rint(rows[name].astype(np.float64) / VALUE_UNIT) for name in ("value", "outcome")}
    means = {name: total(values) * VALUE_UNIT / count for name, values in units.items()}
    return group | means | {"visits": visits, "label": majority(votes, visits), "count": count}


def excluded_keys(name: str) -> NDArray[np.uint64]:
    """The sorted keys of a set of boards; none, with a line that says so, for a shipped set that is missing."""
    place = provenance.shipped(SHIPPED_BOARDS[name]) if name in SHIPPED_BOARDS else Path(name)
    inside = sorted(place.rglob("*")) if place else []
    files = [place] if place and place.is_file() else [path for path in inside if path.suffix == ".parquet"]
    if links := [path for path in inside if path.is_symlink() and path.is_dir()]:
        raise DataError(f"--exclude {name}: {links[0]} is a link to a folder, which is not followed; name that folder")
    if not files:
        if name in SHIPPED_BOARDS:
            say(f"the shipped boards {SHIPPED_BOARDS[name]} are missing: none of them is left out of the tables")
            return np.zeros(0, np.uint64)
        raise DataError(f"--exclude {name}: no Parquet file there")
    keys = []
    for file in files:
        bits = schema.arrays(file, schema.read_table(file, BOARD, ours=False)[0])
        for wrong, what in rules.faults(**bits):  # another program's mask may be the opponent's stones
            if wrong.any():
                raise DataError(f"{file}: row {wrong.argmax()} is no position: {what}")
        keys.append(canonical_keys(**bits))
    return np.unique(np.concatenate(keys))

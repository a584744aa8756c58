"""Packed boards: boards and labels in 6 to 7 bytes each, small enough to travel with a repository.

In: a folder of `preparation.prepare`, or a user's own boards and labels. Out: a folder that `--data` takes like one of
games, one row a board; `reader.read` unpacks it. What is lost: how often a board occurred, visits beyond one part in
255 of the largest, value beyond one in 127, of the games' outcomes all but their rounded mean, and the label, which
becomes the column with most visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from distill.common import UserError, first_line, json_hash, run_folder, write_atomically
from distill.datasets import preparation
from distill.datasets.canonical import canonical, merged
from distill.game import encoding, inputs, outputs, rules
from distill.games import reader, schema, shards
from distill.games.reader import Columns, chosen, joined
from distill.games.schema import PACKED, PACKED_ROW, TRAINING, VALIDATION, VALUE_STEPS
from distill.mcts.labeller import Labels, check_labels

MOST_VISITS = 255
"""The largest number of visits of a column; larger ones are scaled down to it."""


def write_labels(
    boards: ArrayLike, visits: ArrayLike, value: ArrayLike, out: str | Path, *, outcome: ArrayLike | None = None
) -> Path:
    """Write your own labels into a folder of packed boards, which `prepare`, `train` and `inspect` read.

        boards = np.array([...], np.int8)      # (B, 6, 7): row 0 on top, +1 the side to move, -1 the opponent, 0 empty
        visits = np.array([[0, 0, 10, 90, 0, 0, 0], ...])     # (B, 7): weight of each column, 0 on full ones
        value = np.array([0.4, ...])           # (B,): expected outcome in [-1, 1] for the side to move
        distill.write_labels(boards, visits, value, "data/mine")    # then: python -m distill.train --data data/mine

    Args:
      visits: whole numbers; networks learn their shares, so for probabilities multiply by 1000 and round.
      out: a new folder, or one with the same labels.
      outcome: (B,), results of the games in [-1, 1] for the side to move; without it the value.

    A board and its mirror image are one: visits of the same board are summed, values averaged. On a board that is its
    own mirror a column and its mirror are one move, so the visits are added to their flip. Raises UserError in one line
    for arrays of a wrong shape, type or range, for no boards, and for boards on which the game is over.
    """
    if "://" in str(out) or not str(out).strip():
        raise UserError(f"write_labels: out {str(out)!r} must be a folder of this machine")
    try:
        counts, values = np.asarray(visits), np.asarray(value, np.float64)
        results = values if outcome is None else np.asarray(outcome, np.float64)
        current, mask = encoding.bitboards(inputs.boards(boards).reshape(-1, rules.ROWS, rules.COLUMNS))
    except Exception as error:  # ragged lists, texts, a tensor on a GPU: any library raises its own
        raise UserError(f"write_labels: {first_line(error)}") from error
    if counts.dtype.kind == "f":
        raise UserError("write_labels: visits must be whole numbers; multiply probabilities by 1000 and round")
    if not len(mask):
        raise UserError("write_labels: there are no boards")
    if (over := rules.are_over(current, mask)).any():
        raise UserError(f"write_labels: the game is over on {over.sum()} of {len(over)} boards")
    with outputs.named("write_labels"):
        checked = check_labels(Labels(visits=counts, value=values), rules.legal_mask(mask))
    with outputs.named("write_labels: outcome"):
        results = outputs.values(results, len(mask))
    assert checked.label is not None
    labels = {"visits": checked.visits, "label": checked.label, "value": checked.value, "outcome": results}
    rows = canonical({"current": current, "mask": mask} | labels)
    _write(Path(out), merged(rows, ("current", "mask")), inputs=[])
    return Path(out)


def pack(prepared: preparation.Prepared, out: Path, *, restart: bool = False) -> int:
    """Write the boards of prepared tables, training and validation, into `out`; returns how many there are.

    Raises UserError where `out` holds other boards, or files that were changed since.
    """
    tables = [vars(preparation.load(prepared.folder, split)) for split in (TRAINING, VALIDATION)]
    return _write(out, joined(tables), prepared.result["inputs"], restart)


def _write(out: Path, boards: Columns, inputs: Sequence[Any], restart: bool = False) -> int:
    """Write boards, or find that the folder has them; returns how many there are.

    `inputs` describes the runs of games that they are from.
    """
    keys = boards["current"] + boards["mask"]
    # Shares of visits matter, not their number: scale down what does not fit a byte.
    largest = boards["visits"].max(axis=1, keepdims=True)
    columns = {
        "key": keys,
        "visits": np.rint(boards["visits"] * np.minimum(1, MOST_VISITS / np.maximum(largest, 1))),
        "value": np.rint(boards["value"] * VALUE_STEPS),
        "outcome": np.rint(boards["outcome"]),
    }
    # By key, because neighbours differ little, which compresses well.
    table, name = schema.table_of(chosen(columns, np.argsort(keys)), PACKED_ROW), schema.shard_name(0)
    identity = {"rows": schema.content_hash(table)}
    run = json_hash(identity)
    metadata = {
        "schema_version": schema.SCHEMA_VERSION, "kind": PACKED, "run": run, "identity": identity,
        "first_game": 0, "games": len(table),
    }  # fmt: skip
    with run_folder.opened(out, schema.PACKED_BOARDS, identity, settings={}, files=[name], restart=restart) as folder:
        if folder.result is None or not (out / name).is_file():
            folder.begin()
            content = schema.table_bytes(table, metadata)
            write_atomically(out / name, content)
            shard = schema.shard_of(name, table, metadata, content)
            folder.finish(shards.result(run, [shard]) | {"inputs": [*inputs]})
        reader.verify([reader.open_run(out)])
    return len(table)

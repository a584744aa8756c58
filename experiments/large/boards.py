"""Labelled boards as `.npz` files of packed columns, which an accelerator's machine reads with NumPy alone.

    python -m experiments.large.boards --data data/reference/labels-200 --out boards.npz --graded graded.npz

In: folders of games or packed boards, and `.npz` files of this module. Out: a folder of packed boards for
`distill.train`, or, where `--out` ends in `.npz`, one file with an entry a canonical board, by key:

    key      uint64 (N,)    canonical current + mask (`rules.from_keys`)
    visits   uint8 (N, 7)   of the search; where the largest is above 255, scaled down to that
    value    int8 (N,)      VALUE_STEPS times the root value of the search, for the side to move
    outcome  int8 (N,)      rounded mean of the games' results
    reply    int8 (N,)      the column that the opponent played next, −1 if unknown or if the game ended
    children int8 (N, 7)    VALUE_STEPS times the value of each move, UNKNOWN where the search has none

Boards of the graded sets are left out. Where a board occurs several times in a part (a shard, a thread's
games), visits are summed and values averaged; of several parts that hold it, the last one's entry stays.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS, canonicalise, from_keys

VALUE_STEPS = 127
"""Steps of a stored value between 0 and 1, as in packed tables."""
MOST_VISITS = 255
UNKNOWN = -128
"""In place of the value of a move that is not known."""
GRADED = {
    "midgame": ["midgame"],
    "heldout": ["heldout"],
    "hard": ["begin-hard", "begin-medium", "middle-medium", "zugzwang"],
}
"""Names that `train.py` prints, and the graded sets behind them."""
COLUMNS_OF_FILE = ("key", "visits", "value", "outcome", "reply", "children")

Boards = dict[str, NDArray[Any]]


def pack(
    current: NDArray[np.uint64],
    mask: NDArray[np.uint64],
    visits: NDArray[Any],
    value: NDArray[Any],
    outcome: NDArray[Any],
    reply: NDArray[Any],
    children: NDArray[np.int8] | None = None,
) -> Boards:
    """Columns of the file for rows in any orientation: `value` in [−1, 1], `outcome` −1, 0 or 1."""
    if children is None:
        children = np.full((len(mask), COLUMNS), UNKNOWN, np.int8)
    own, stones, mirrored = canonicalise(current, mask)
    visits = np.where(mirrored[:, None], visits[:, ::-1], visits).astype(np.float64)
    reply = np.where(mirrored & (reply >= 0), COLUMNS - 1 - reply, reply)
    key, first, place, count = np.unique(own + stones, return_index=True, return_inverse=True, return_counts=True)
    summed = np.stack([np.bincount(place, visits[:, column], len(key)) for column in range(COLUMNS)], axis=1)
    largest = summed.max(axis=1, keepdims=True)
    mean = {name: np.bincount(place, each, len(key)) / count for name, each in (("value", value), ("outcome", outcome))}
    return {
        "key": key,
        "visits": np.rint(summed * np.minimum(1, MOST_VISITS / np.maximum(largest, 1))).astype(np.uint8),
        "value": np.rint(mean["value"] * VALUE_STEPS).astype(np.int8),
        "outcome": np.rint(mean["outcome"]).astype(np.int8),
        "reply": reply[first].astype(np.int8),
        "children": np.where(mirrored[:, None], children[:, ::-1], children)[first],
    }


def merge(parts: Iterable[Boards], excluded: NDArray[np.uint64] | None = None) -> Boards:
    """One entry a board: of several parts that hold it, the last one's. Exits where there is no part."""
    parts = list(parts)[::-1]
    if not parts:
        raise SystemExit("no boards: give more positions or more --minutes")
    whole = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS_OF_FILE}
    key, first = np.unique(whole["key"], return_index=True)
    if excluded is not None:
        first = first[~np.isin(key, excluded)]
    return {name: values[first] for name, values in whole.items()}


def load(paths: Sequence[Path]) -> Boards:
    """The boards of `.npz` files and of folders of games or packed boards (which need PyArrow)."""
    return merge(_npz(path) if path.suffix == ".npz" else _folder(path) for path in paths)


def save(path: Path, boards: Boards, compressed: bool = True) -> None:
    """Write the file at once: a killed process leaves none, or the whole of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.partial.npz")
    write = np.savez_compressed if compressed else np.savez
    write(temporary, **boards)  # type: ignore[arg-type]
    os.replace(temporary, path)


def _npz(path: Path) -> Boards:
    with np.load(path) as stored:
        found = dict(stored)
    return {"children": np.full((len(found["key"]), COLUMNS), UNKNOWN, np.int8)} | found


def _folder(path: Path) -> Boards:
    """Boards of every shard; a row's reply is the move of the next row of its game."""
    from distill.games import schema

    parts = []
    for file in sorted(path.glob("shard-*.parquet")):
        table, metadata = schema.read_table(file, None)
        column = schema.arrays(file, table)
        visits = column.pop("visits")
        if metadata.get("kind") == schema.PACKED:
            unknown = np.full(len(visits), -1, np.int8)
            children = np.full((len(visits), COLUMNS), UNKNOWN, np.int8)
            parts.append({"visits": visits, "reply": unknown, "children": children} | column)
        else:
            same_game = np.append(column["game_id"][1:] == column["game_id"][:-1], False)
            reply = np.where(same_game, np.append(column["move"][1:], -1), -1)
            board = column["current"], column["mask"]
            parts.append(pack(*board, visits, column["value"], column["outcome"], reply))
    return merge(parts)


def save_graded(path: Path) -> None:
    """Write the dev half of the graded boards, `SET:boards` int8 (B, 6, 7) and `SET:scores` (B, 7), and `excluded`."""
    from distill.datasets import benchmark
    from distill.datasets.canonical import excluded_keys
    from distill.game import encoding

    found: dict[str, NDArray[Any]] = {"excluded": excluded_keys("benchmark")}
    for name, sets in GRADED.items():
        graded = benchmark.read(half="dev", sets=sets)
        found |= {f"{name}:boards": encoding.boards(graded.current, graded.mask), f"{name}:scores": graded.scores}
    np.savez_compressed(path, **found)  # type: ignore[arg-type]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graded", type=Path, help="write the graded boards (dev half) and excluded boards there, too")
    parser.add_argument("--most", type=int, help="this many boards at most, drawn at random")
    options = parser.parse_args(words)
    from distill.datasets.canonical import excluded_keys

    boards = merge([load(options.data)], excluded_keys("benchmark"))
    if options.most is not None:
        drawn = np.sort(np.random.default_rng(0).permutation(len(boards["key"]))[: options.most])
        boards = {name: values[drawn] for name, values in boards.items()}
    if options.out.suffix == ".npz":
        save(options.out, boards)
    else:
        from distill.datasets import packed
        from distill.game import encoding

        cells = encoding.boards(*from_keys(boards["key"]))
        value, outcome = boards["value"] / VALUE_STEPS, boards["outcome"]
        packed.write_labels(cells, boards["visits"], value, options.out, outcome=outcome)
    print(f"{options.out}: {len(boards['key']):,} boards")
    if options.graded:
        save_graded(options.graded)


if __name__ == "__main__":
    main()

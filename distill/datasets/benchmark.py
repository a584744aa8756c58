"""The graded boards shipped in `data/benchmark/`: every legal move's exact score, read without a solver.

Two Parquet files, one row a board. Boards are distinct up to mirror, over all sets; one
orientation is stored. `data/benchmark/README.md` says what the sets are and how they were made,
`experiments/boards/` makes them, `players/solver.py` defines the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError
from distill.common.arrays import Arrays
from distill.common.provenance import shipped
from distill.games.schema import arrays, read_table

Half = Literal["dev", "test"]

FILES = ("boards.parquet", "heldout.parquet")
"""Boards of mixed play, including a network's, and boards of games in which no player of this project took part."""

HEADLINES = ("midgame", "heldout")
"""Sets of boards of 10 to 16 stones, of mixed play and of games in which no player of this project took part."""

GRADED_BOARD = pa.schema(
    [
        ("set", pa.string()),  # the stratum, one of `data/benchmark/README.md`'s
        ("half", pa.string()),  # "dev" for choices, "test" for headlines
        ("current", pa.uint64()),  # stones of the side to move
        ("mask", pa.uint64()),  # all stones
        ("ply", pa.int8()),  # stones on the board
        ("scores", pa.list_(pa.int8(), 7)),  # exact score of each move; FULL_COLUMN for full columns
        ("moves_to_end", pa.int8()),  # plies left under perfect play
    ]
)


@dataclass(frozen=True, kw_only=True)
class GradedBoards(Arrays):
    """B boards with the exact score of every move.

    Attributes:
      set, half: str (B,), the stratum and its half.
      current, mask: uint64 (B,), the position.
      scores: int8 (B, 7), from the side to move; FULL_COLUMN for full columns.
      ply, moves_to_end: int8 (B,), stones on the board and plies left under perfect play.
    """

    set: NDArray[np.str_]
    half: NDArray[np.str_]
    current: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    scores: NDArray[np.int8]
    ply: NDArray[np.int8]
    moves_to_end: NDArray[np.int8]

    @property
    def sets(self) -> list[str]:
        """The strata in the order of the file."""
        return list(dict.fromkeys(self.set.tolist()))


def read(
    folder: Path | None = None,
    half: Half | None = None,
    sets: Sequence[str] | None = None,
    files: Sequence[str] = FILES,
) -> GradedBoards:
    """The graded boards of a folder, by default the shipped one, or one half or some sets of them.

    Of `files` those that are there are read. Raises DataError for a folder without any, a damaged file, a set that is
    not there, or no board.
    """
    place = folder or shipped("data/benchmark") or Path("data/benchmark")
    paths = [place / name for name in files if (place / name).is_file()]
    if not paths:
        raise DataError(f"{place / files[0]}: no such file; data/benchmark of a checkout has the graded boards")
    parts = [arrays(path, read_table(path, GRADED_BOARD)[0]) for path in paths]
    boards = GradedBoards(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    if unknown := sorted(set(sets or ()) - set(boards.sets)):
        raise DataError(f"{place}: no set {', '.join(unknown)}; there are {', '.join(boards.sets)}")
    chosen = np.ones(len(boards), np.bool_)
    if half is not None:
        chosen &= boards.half == half
    if sets is not None:
        chosen &= np.isin(boards.set, sets)
    if not chosen.any():
        raise DataError(f"{place}: no board of these sets" + (f" in the {half} half" if half else ""))
    return boards[chosen]

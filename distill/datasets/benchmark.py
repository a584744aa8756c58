"""The graded boards shipped in `data/benchmark/`: every legal move's exact score, read without a solver.

A Parquet file for each origin and half, one row a board. Boards are distinct up to mirror, over all sets; one
orientation is stored. `data/cards/benchmark.md` says what the sets are and how they were made, `experiments/boards/`
makes them, `players/solver.py` defines the score.
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
from distill.games.reader import joined
from distill.games.schema import arrays, read_table

Half = Literal["dev", "test"]
HALVES: tuple[Half, ...] = ("dev", "test")

ORIGINS = ("boards", "heldout")
"""Boards of mixed play, including a network's, and boards of games in which no player of this project took part."""

HEADLINES = ("midgame", "heldout")
"""Sets of boards of 10 to 16 stones, of mixed play and of games in which no player of this project took part."""

GRADED_BOARD = pa.schema(
    [
        ("set", pa.string()),  # the stratum, one of `data/cards/benchmark.md`'s
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


def file_name(origin: str, half: Half) -> str:
    """The name of a file of graded boards: heldout-test.parquet."""
    return f"{origin}-{half}.parquet"


def read(
    folder: Path | None = None,
    half: Half | None = None,
    sets: Sequence[str] | None = None,
    origins: Sequence[str] = ORIGINS,
) -> GradedBoards:
    """The graded boards of a folder, by default the shipped one, or one half or some sets of them.

    Files that are missing are left out. Raises DataError for a folder without any, a damaged file and an unknown set.
    """
    place, halves = folder or shipped("data/benchmark") or Path("data/benchmark"), [half] if half else HALVES
    files = [place / file_name(origin, part) for origin in origins for part in halves]
    paths = [file for file in files if file.is_file()]
    if not paths:
        raise DataError(f"{files[0]}: no such file; data/benchmark of a checkout has the graded boards")
    boards = GradedBoards(**joined([arrays(path, read_table(path, GRADED_BOARD)[0]) for path in paths]))
    if unknown := sorted(set(sets or ()) - set(boards.sets)):
        raise DataError(f"{place}: no set {', '.join(unknown)}; there are {', '.join(boards.sets)}")
    return boards if sets is None else boards[np.isin(boards.set, sets)]

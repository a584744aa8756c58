"""The rules of Connect 4 on two bitboards.

A position is two 49-bit integers. Every column has seven bits: six cells, from the bottom up, and one
spare bit on top that is always 0, so that no line of four runs from one column into the next.

    .  spare   6 13 20 27 34 41 48
    row 0      5 12 19 26 33 40 47      row 0 is the top row, everywhere outside bitboards
    row 1      4 11 18 25 32 39 46
    row 2      3 10 17 24 31 38 45
    row 3      2  9 16 23 30 37 44
    row 4      1  8 15 22 29 36 43
    row 5      0  7 14 21 28 35 42
    column     0  1  2  3  4  5  6      columns are 0-6 in code and 1-7 on screen

Worked example, the moves "445" (X begins, so O is to move):

    . . . . . . .
    . . . . . . .      mask    = bits 21, 22, 28 = 0x10600000   all stones
    . . . . . . .      current = bit 22          = 0x00400000   stones of the side to move (O)
    . . . . . . .
    . . . O . . .
    . . . X X . .

Functions on bits take Python integers or uint64 arrays, of NumPy or of JAX. The winner of a finished game is always
the side that has just moved: its stones are `current ^ mask`, not `current`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bitboards: TypeAlias = NDArray[np.uint64]
"""uint64 (B,): the stones of one side, or all stones, of B positions."""

ROWS = 6
COLUMNS = 7
CELLS = ROWS * COLUMNS
BITS_PER_COLUMN = ROWS + 1
CENTRE = COLUMNS // 2

BOTTOM_ROW = sum(1 << (BITS_PER_COLUMN * column) for column in range(COLUMNS))
TOP_ROW = BOTTOM_ROW << (ROWS - 1)
COLUMN_0 = (1 << ROWS) - 1
FULL_BOARD = BOTTOM_ROW * COLUMN_0

COLUMNS_FROM_CENTRE = (3, 2, 4, 1, 5, 0, 6)
"""The order of tie-breaks: nearest to the centre first; of two equally near columns, the lower one first."""

LINE_SHIFTS = (1, BITS_PER_COLUMN - 1, BITS_PER_COLUMN, BITS_PER_COLUMN + 1)
"""Bit distances between neighbouring cells: vertical, falling diagonal, horizontal, rising diagonal."""


@dataclass(frozen=True, slots=True)
class Position:
    """Stones of the side to move and all stones, both as bitboards in the layout above."""

    current: int
    mask: int

    @property
    def opponent(self) -> int:
        """Stones of the side that has just moved."""
        return self.current ^ self.mask

    @property
    def ply(self) -> int:
        """Stones on the board."""
        return self.mask.bit_count()


EMPTY = Position(0, 0)


def column_bits(column: int) -> int:
    """The six cells of a column."""
    return COLUMN_0 << (BITS_PER_COLUMN * column)


def is_legal(position: Position, column: int) -> bool:
    """Whether the column exists and has an empty cell."""
    return 0 <= column < COLUMNS and not position.mask & (TOP_ROW & column_bits(column))


def legal_columns(position: Position) -> list[int]:
    """Columns that are not full, in ascending order."""
    return [column for column in range(COLUMNS) if is_legal(position, column)]


def next_position(position: Position, column: int) -> Position:
    """The position after a stone of the side to move falls into a column that is not full."""
    stone = (position.mask + (1 << (BITS_PER_COLUMN * column))) & column_bits(column)
    return Position(position.opponent, position.mask | stone)


def has_four(stones: Any) -> Any:
    """Whether the stones hold four in a line; bool for an integer, bool array for an array. Searches compile this."""
    # Stones with a neighbour, then such pairs two cells apart: four in a line.
    fours = stones ^ stones
    for shift in LINE_SHIFTS:
        pairs = stones & (stones >> shift)
        fours = fours | (pairs & (pairs >> (2 * shift)))
    return fours != 0


def winning_cells(stones: Any) -> Any:
    """Cells that complete a line of four for these stones, uint64; may include filled and spare cells.

    For each direction, a cell completes four if three neighbours on one side are stones, or two on one side and one on
    the other. Searches compile this, so its constants are uint64, too.
    """
    cells = (stones << np.uint64(1)) & (stones << np.uint64(2)) & (stones << np.uint64(3))  # vertical: only from below
    for shift in (np.uint64(6), np.uint64(7), np.uint64(8)):  # falling, horizontal, rising
        below, above = stones << shift, stones >> shift
        two_below = below & (stones << (shift + shift))
        two_above = above & (stones >> (shift + shift))
        cells |= two_below & ((stones << (shift + shift + shift)) | above)
        cells |= two_above & ((stones >> (shift + shift + shift)) | below)
    return cells


def playable_cells(mask: Any) -> Any:
    """The cells on which a stone can land, one in each column that is not full; `mask` is uint64."""
    # Adding 1 at a column's foot carries past its stones to the first empty cell.
    return (mask + np.uint64(BOTTOM_ROW)) & np.uint64(FULL_BOARD) & ~mask


def is_won(position: Position) -> bool:
    """Whether the side that has just moved has four in a line."""
    return has_four(position.opponent)


def is_over(position: Position) -> bool:
    """Whether the game is won or the board is full."""
    return position.mask == FULL_BOARD or is_won(position)


def are_over(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool (B,): whether a side has four in a line or the board is full."""
    return has_four(current) | has_four(current ^ mask) | (mask == np.uint64(FULL_BOARD))


def mirror_bits(bits: Any) -> Any:
    """The bits reflected left to right."""
    # The centre column stays; each other one changes places with its opposite.
    mirrored = bits & column_bits(CENTRE)
    for column in range(CENTRE):
        distance = BITS_PER_COLUMN * (COLUMNS - 1 - 2 * column)
        mirrored = mirrored | ((bits & column_bits(column)) << distance)
        mirrored = mirrored | ((bits & column_bits(COLUMNS - 1 - column)) >> distance)
    return mirrored


def is_own_mirror(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool (B,), True where a board equals its mirror image, so that a column and its mirror are the same move."""
    return (mirror_bits(current) == current) & (mirror_bits(mask) == mask)


def mirror(position: Position) -> Position:
    """The position reflected left to right; the side to move stays."""
    return Position(mirror_bits(position.current), mirror_bits(position.mask))


def canonicalise(current: Any, mask: Any, xp: Any = np) -> tuple[Any, Any, Any]:
    """The smaller of each board and its mirror image, compared by (current, mask); `xp` is NumPy or JAX's numpy.

    Returns:
      current, mask: uint64, any shape, the canonical boards.
      mirrored: bool, True where the mirror was taken.
    """
    other_current, other_mask = mirror_bits(current), mirror_bits(mask)
    mirrored = (other_current < current) | ((other_current == current) & (other_mask < mask))
    return xp.where(mirrored, other_current, current), xp.where(mirrored, other_mask, mask), mirrored


def best_columns(scores: Any) -> NDArray[np.int64]:
    """(B,): the column with the highest of scores (B, A), of equal ones the nearest to the centre, then the lower."""
    order = np.array(COLUMNS_FROM_CENTRE)
    return order[scores[:, order].argmax(1)]


def canonical_keys(current: Any, mask: Any, xp: Any = np) -> Any:
    """uint64, any shape: the key of each board or its mirror image, as `canonicalise` chooses."""
    current, mask, _ = canonicalise(current, mask, xp)
    return current + mask


def from_keys(keys: Any) -> tuple[Any, Any]:
    """Current and mask, uint64 (B,) each, of positions given by their keys, current + mask.

    A column of k stones adds its pattern, below 2^k, to 2^k - 1, so columns of different heights have disjoint sums,
    and no sum leaves its seven bits; with 1 added to it, its highest bit is 2^k. (Known from Pascal Pons' solver.)
    """
    current = mask = keys & np.uint64(0)
    one, column_sums = np.uint64(1), np.uint64((1 << BITS_PER_COLUMN) - 1)
    for shift in (np.uint64(BITS_PER_COLUMN * column) for column in range(COLUMNS)):
        total = ((keys >> shift) & column_sums) + one
        stones = total
        for distance in (1, 2, 4):
            stones = stones | (stones >> np.uint64(distance))
        stones = stones >> one  # every bit below the highest
        current, mask = current | (total & stones) << shift, mask | stones << shift
    return current, mask


def legal_mask(mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool (B, 7), True = the column may be played; `mask` is uint64 (B,)."""
    return landing(mask) != 0


def landing(mask: Any) -> Any:
    """uint64 (B, 7), the bit of the cell on which a stone in each column lands; 0 for a full column; `mask` is (B,)."""
    columns = np.array([column_bits(column) for column in range(COLUMNS)], np.uint64)
    bottoms = np.array([1 << (BITS_PER_COLUMN * column) for column in range(COLUMNS)], np.uint64)
    return (mask[:, None] + bottoms) & columns


def after_moves(current: Bitboards, mask: Bitboards, columns: NDArray[np.integer]) -> tuple[Any, Any, Any]:
    """`current` and `mask`, uint64 (B,), after a stone in each column, (B,), and bool (B,), whether it wins.

    Raises ValueError for a full column.
    """
    stone = landing(mask)[np.arange(len(mask)), columns]
    if not stone.all():
        raise ValueError(f"a move into a full column, in {int((stone == 0).sum())} of {len(mask)} positions")
    return current ^ mask, mask | stone, has_four(current | stone)


def faults(current: Any, mask: Any) -> Iterator[tuple[Any, str]]:
    """The rules of a position: whether two bitboards, integers or arrays, break each, and the words that say so."""
    yield mask | FULL_BOARD != FULL_BOARD, "stones outside the 42 cells"
    yield current | mask != mask, "stones of the side to move on empty cells"
    yield (mask + BOTTOM_ROW) & mask != 0, "a stone floats above an empty cell"
    half = np.bitwise_count(mask) // 2
    yield np.bitwise_count(current) != half, "the stone counts do not fit alternating moves"


def problem_with(position: Position) -> str | None:
    """Why two integers are not a position of a game, or None if they may be one."""
    problems = (what for is_wrong, what in faults(position.current, position.mask) if is_wrong)
    return next(problems, "the side to move already has four in a line" if has_four(position.current) else None)


def from_moves(moves: str | Iterable[int]) -> Position:
    """The position after a move string such as "4455" (columns 1-7) or after columns 0-6.

    Raises ValueError naming the move that is no column, falls into a full one, or comes after the end.
    """
    position = EMPTY
    on_screen: Iterable[str] = moves if isinstance(moves, str) else (str(column + 1) for column in moves)
    for number, text in enumerate(on_screen, start=1):
        if len(text) != 1 or text not in "1234567":
            raise ValueError(f"move {number} is {text!r}, not a column from 1 to 7")
        column = int(text) - 1
        if is_over(position):
            raise ValueError(f"move {number} comes after the end of the game")
        if not is_legal(position, column):
            raise ValueError(f"move {number} falls into column {text}, which is full")
        position = next_position(position, column)
    return position


def parse_board(drawing: str) -> Position:
    """A drawing of six lines, top row first, X for the first player, O for the second, . for empty.

    Blanks are ignored. The side to move follows from the counts. Raises ValueError for a drawing
    that is no position.
    """
    rows = ["".join(line.split()) for line in drawing.strip().splitlines()]
    if len(rows) != ROWS or any(len(row) != COLUMNS or set(row) - set("XO.") for row in rows):
        raise ValueError(f"a board is {ROWS} lines of {COLUMNS} cells, each X, O or .")
    stones = {"X": 0, "O": 0, ".": 0}
    for row, line in enumerate(rows):
        for column, cell in enumerate(line):
            stones[cell] |= 1 << (BITS_PER_COLUMN * column + ROWS - 1 - row)
    mask = stones["X"] | stones["O"]
    position = Position(stones["O"] if mask.bit_count() % 2 else stones["X"], mask)
    if problem := problem_with(position):
        raise ValueError(f"not a position: {problem}")
    return position


def draw(position: Position) -> str:
    """Six lines, top row first, which `parse_board` reads."""
    first = position.opponent if position.ply % 2 else position.current
    lines = []
    for row in range(ROWS):
        cells = [1 << (BITS_PER_COLUMN * column + ROWS - 1 - row) for column in range(COLUMNS)]
        lines.append(" ".join("." if not position.mask & c else "X" if first & c else "O" for c in cells))
    return "\n".join(lines)

"""The slow twin of the search room: rules, playouts and UCT in plain Python, on lists instead of bits.

It shares no code with `distill.search` and draws the same random numbers, so for the same draws it
must grow the same tree. A board is a list of seven columns, each a list of sides (0 or 1), bottom first.
"""

from __future__ import annotations

import math

import numpy as np

ROWS, COLUMNS = 6, 7
CENTRE_FIRST = [3, 2, 4, 1, 5, 0, 6]
WORD = 2**64 - 1

LINES = [
    [(column + i * dc, row + i * dr) for i in range(4)]
    for column in range(COLUMNS)
    for row in range(ROWS)
    for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1))
    if 0 <= column + 3 * dc < COLUMNS and 0 <= row + 3 * dr < ROWS
]
assert len(LINES) == 69
THROUGH = {(c, r): [line for line in LINES if (c, r) in line] for c in range(COLUMNS) for r in range(ROWS)}


class Board:
    """A position with its history forgotten; `side` is to move."""

    def __init__(self, columns: list[list[int]], side: int) -> None:
        self.columns, self.side = columns, side

    @classmethod
    def from_bits(cls, current: int, mask: int) -> Board:
        side = mask.bit_count() % 2
        columns = []
        for column in range(COLUMNS):
            stones = []
            for row in range(ROWS):
                bit = 1 << (7 * column + row)
                if mask & bit:
                    stones.append(side if current & bit else 1 - side)
            columns.append(stones)
        return cls(columns, side)

    def copy(self) -> Board:
        return Board([list(column) for column in self.columns], self.side)

    def legal(self) -> list[int]:
        return [column for column in range(COLUMNS) if len(self.columns[column]) < ROWS]

    def play(self, column: int) -> None:
        self.columns[column].append(self.side)
        self.side = 1 - self.side

    def at(self, column: int, row: int) -> int | None:
        return self.columns[column][row] if row < len(self.columns[column]) else None

    def has_four(self, side: int) -> bool:
        return any(all(self.at(column, row) == side for column, row in line) for line in LINES)

    def wins_at(self, column: int, side: int) -> bool:
        """Whether a stone there makes a line for a side that has none yet."""
        self.columns[column].append(side)
        lines = THROUGH[column, len(self.columns[column]) - 1]
        won = any(all(self.at(column, row) == side for column, row in line) for line in lines)
        self.columns[column].pop()
        return won


def mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def playout_seed(key: int, simulation: int) -> int:
    return mix((key + simulation * 0x9E3779B97F4A7C15) & WORD) | 1


def playout(board: Board, random: int, heuristic: bool) -> int:
    """1, 0 or -1 for the side to move on a board where the game is not over."""
    board = board.copy()
    first = board.side
    while legal := board.legal():
        random = (random ^ (random << 13)) & WORD
        random ^= random >> 7
        random = (random ^ (random << 17)) & WORD
        side = board.side
        wins = [column for column in legal if board.wins_at(column, side)]
        blocks = [column for column in legal if board.wins_at(column, 1 - side)]
        move = legal[(random >> 32) * len(legal) >> 32]
        if heuristic:
            if wins:
                move = wins[0]
            elif blocks:
                move = blocks[0]
            elif 3 in legal and random % 2**32 < round(0.2 * 2**32):
                move = 3
        board.play(move)
        if board.has_four(side):
            return 1 if side == first else -1
    return 0


class Node:
    def __init__(self) -> None:
        self.visits = [0] * COLUMNS
        self.total = [0] * COLUMNS
        self.children: list[Node | None] = [None] * COLUMNS
        self.proven = [0] * COLUMNS  # 1 won, -1 lost for the side to move here


def uct(
    board: Board,
    simulations: int,
    key: int,
    order: list[float],
    weights: list[float],
    exploration: float,
    heuristic: bool,
    proving: bool = False,
) -> Node:
    """The tree after so many simulations; `weights` multiply the exploration term at the root."""
    root = Node()
    for simulation in range(simulations):
        node, here, path, visits = root, board.copy(), [], simulation
        while True:
            column = _select(node, here, visits, order, weights if node is root else [1.0] * COLUMNS, exploration)
            visits = node.visits[column]
            path.append((node, column))
            mover = here.side
            here.play(column)
            if here.has_four(mover):
                value = -1
                break
            if node.proven[column]:
                value = -node.proven[column]
                break
            if not here.legal():
                value = 0
                break
            if visits == 0:
                value = playout(here, playout_seed(key, simulation), heuristic)
                break
            if node.children[column] is None:
                node.children[column] = Node()
            node = node.children[column]
        won = here.has_four(1 - here.side)
        for node, column in reversed(path):
            value = -value
            node.visits[column] += 1
            node.total[column] += value
        if proving and won:
            _prove(path, board)
    return root


def _prove(path: list[tuple[Node, int]], board: Board) -> None:
    """Mark the last move won; each node above by what its children prove, as far as that reaches."""
    boards = [board.copy()]
    for _, column in path:
        boards.append(boards[-1].copy())
        boards[-1].play(column)
    result = 1
    for (node, column), here in reversed(list(zip(path, boards[:-1], strict=True))):
        node.proven[column] = result
        node.total[column] = result * 2**30
        if result == -1 and any(node.proven[other] != -1 for other in here.legal()):
            break
        result = -result


def _select(node: Node, board: Board, visits: int, order: list[float], weights: list[float], exploration: float) -> int:
    unvisited = [column for column in board.legal() if node.visits[column] == 0]
    if unvisited and 1 not in node.proven:
        return max(unvisited, key=lambda column: order[column])
    f32 = np.float32
    bonus = f32(exploration * math.sqrt(math.log(visits)))
    best, best_score = -1, f32(-np.inf)
    for column in board.legal():
        if node.visits[column] == 0:
            continue
        r = f32(1) / np.sqrt(f32(node.visits[column]))
        score = (f32(node.total[column]) * r + bonus * f32(weights[column])) * r
        if score > best_score:
            best, best_score = column, score
    return best


def choose(node: Node, board: Board) -> int:
    """Most visits, then higher mean, then nearest the centre, then lower column."""
    legal = [column for column in CENTRE_FIRST if column in board.legal()]
    return max(
        legal,
        key=lambda column: (
            node.visits[column],
            node.total[column] / node.visits[column] if node.visits[column] else -2.0,
            -CENTRE_FIRST.index(column),
        ),
    )


def majority(votes: list[int], visits: list[int]) -> int:
    """Most votes, then most summed visits, then nearest the centre, then lower column."""
    return max(set(votes), key=lambda column: (votes.count(column), visits[column], -CENTRE_FIRST.index(column)))


def draws(seed: int, game: int, vote: int, steps: int, alpha: float) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Keys, orders (S, 7) and gammas (S, 7) of one vote of one game."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed, game], np.uint64), counter=[0, 0, 0, 1 + vote]))
    key = [int(word) for word in random.integers(0, 2**64, steps, np.uint64)]
    order = random.random((steps, COLUMNS)).argsort(-1)
    return key, order, random.standard_gamma(alpha, (steps, COLUMNS))


def root_weights(board: Board, gamma: np.ndarray, noise: float) -> list[float]:
    legal = board.legal()
    total = sum(float(gamma[column]) for column in legal)
    return [
        len(legal) * ((1.0 - noise) / len(legal) + noise * (float(gamma[column]) / total)) for column in range(COLUMNS)
    ]

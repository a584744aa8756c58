"""The moves of a puzzle after its first: what the person may play, and what the opponent answers.

In: a position in which one column keeps the result. Out: a list of `Node`s, one per position in which the person is to
move, the puzzle's own first. The solver package scores them.

The person goes on with any best column. The opponent answers with its best reply; of equal ones with the one that
leaves the fewest best columns, then with the one nearest to the centre. A won puzzle ends with four in a row. A drawn
one ends when no answer leads to a position where a column would lose.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from distill.game.encoding import FULL_COLUMN
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, Position, is_over, next_position
from distill.players import solver

NONE = "-"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A position in which the person is to move.

    Attributes:
      position: the position.
      scores: exact score of each column for the person, FULL_COLUMN for a full one.
      replies: a digit from 1 to 7 per column, the opponent's answer; "-" for full columns, for winning columns that
        are not best, and where the game or the puzzle ends.
      next: per column the index of the node after it and the answer to it; 0 for columns that are not best, and where
        the puzzle ends.
    """

    position: Position
    scores: list[int]
    replies: str
    next: list[int]

    @property
    def best(self) -> list[int]:
        """The columns with the highest score."""
        return [column for column in range(COLUMNS) if self.scores[column] == max(self.scores)]


def tree(start: Position, most: int) -> list[Node] | None:
    """The nodes of a puzzle, with fewer stones first; None where there are more than `most`."""
    found = {start: 0}
    nodes: list[Node] = []
    while len(nodes) < len(found):
        position = list(found)[len(nodes)]
        scores = _scores(position)
        replies, following = [NONE] * COLUMNS, [0] * COLUMNS
        for column in range(COLUMNS):
            is_best = scores[column] == max(scores)
            if scores[column] == FULL_COLUMN or (scores[column] > 0 and not is_best):
                continue
            after = next_position(position, column)
            reply = _reply(after, needs_choice=is_best)
            if reply is None:
                continue
            replies[column] = str(reply + 1)
            if is_best:
                following[column] = found.setdefault(next_position(after, reply), len(found))
        if len(found) > most:
            return None
        nodes.append(Node(position=position, scores=scores, replies="".join(replies), next=following))
    return nodes


def _reply(position: Position, needs_choice: bool) -> int | None:
    """The opponent's best column; None where the game is over, or has to leave the person a choice and cannot."""
    if is_over(position):
        return None
    scores = _scores(position)
    best = [column for column in COLUMNS_FROM_CENTRE if scores[column] == max(scores)]
    if not needs_choice:
        return best[0]
    left = {column: _scores(after) for column in best if not is_over(after := next_position(position, column))}
    if max(scores) == 0:  # a draw: only while something can go wrong
        left = {column: after for column, after in left.items() if any(FULL_COLUMN < score < 0 for score in after)}
    return min(left, key=lambda column: left[column].count(max(left[column])), default=None)


def depth(nodes: Sequence[Node]) -> int:
    """The largest number of moves that the person plays."""
    moves = [1] * len(nodes)
    for index in reversed(range(len(nodes))):  # a node comes before the ones it leads to
        moves[index] += max((moves[after] for after in nodes[index].next if after), default=0)
    return moves[0]


@functools.lru_cache(maxsize=100_000)
def _scores(position: Position) -> list[int]:
    return solver.scores(position)

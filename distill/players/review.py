"""A game reviewed: each move marked, the accuracy of each side, and the better move with the line that proves it.

In: a game and its grader: the solver, or a search where it is not installed. Out: a `Review`, as text or as JSON. The
page has the same rule in `web/page/review.js`; a test compares the two.

Marks by exact scores (`players/solver.py`) of the side to move; the outcome is win, draw or loss:

    forced      the only legal column
    only move   every other column has a worse outcome
    best        no column has a higher score
    good        the outcome is kept, and fewer than SLOW moves are lost by it
    inaccuracy  the outcome is kept, but a win takes at least SLOW more own moves, or a loss comes at least SLOW sooner
    mistake     the outcome drops by one: a win becomes a draw, or a draw a loss
    blunder     a win becomes a loss

Marks by a search are estimates. The outcome of a value v is win from v ≥ DECIDED and loss from v ≤ −DECIDED; the value
of a move is that of the next position, with the other sign. The column with most visits is best, and one with a share
of at least SERIOUS is good at worst. Another is good if its value is less than SLIP below that of the position;
else the outcome decides as above, and an inaccuracy keeps it. No move is called the only one: a search does not prove
that others fail.

Accuracy: the mean of POINTS over a side's moves that were not forced, in whole percent, rounded down. So it is 100 if
and only if each of them was best or the only move. A side without such a move has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import UserError
from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import COLUMNS_FROM_CENTRE, Position
from distill.players import names
from distill.players.player import checked_choices
from distill.players.solver import is_installed, moves_to_end, score_boards
from distill.players.terminal import SIDES

SLOW = 3
DECIDED, SLIP, SERIOUS = 0.2, 0.3, 0.25
POINTS = {"only move": 100, "best": 100, "good": 90, "inaccuracy": 70, "mistake": 30, "blunder": 0}
ERRORS = ("inaccuracy", "mistake", "blunder")
DROPS = {1: "mistake", 2: "blunder"}
"""Marks by how far the outcome drops."""
SIGNS = {"inaccuracy": "?!", "mistake": "?", "blunder": "??", "only move": "!"}
"""Signs written beside a move with such a mark."""
LINE = 10
"""Plies of the line that proves what was better."""
STAND_IN = "reference/pillar@puct:400"
"""The grader where the solver is not installed."""


def mark(scores: Sequence[int], column: int) -> str:
    """The mark of a move by the seven exact scores before it, FULL_COLUMN for full columns."""
    legal = [score for score in scores if score != FULL_COLUMN]
    best, played = max(legal), scores[column]
    if len(legal) == 1:
        return "forced"
    if played == best:
        # The move was best; it was the only one if no other column keeps the outcome.
        kept = sum(np.sign(score) == np.sign(best) for score in legal)
        return "only move" if kept == 1 else "best"
    return DROPS.get(int(np.sign(best) - np.sign(played))) or ("inaccuracy" if best - played >= SLOW else "good")


def estimated_mark(shares: Sequence[float], column: int, before: float, after: float) -> str:
    """The mark of a move by a search.

    Args:
      shares: of the visits, for each column; 0 for full ones.
      before: the value of the position, for the side to move.
      after: the value of the move to that side: that of the next position with the other sign, or the result.
    """
    if shares[column] == max(shares):
        return "best"
    # A search that looked at a move as often as this does not think it wrong, whatever its value.
    if shares[column] >= SERIOUS or before - after < SLIP:
        return "good"
    # Outcomes after the move and before it: 1 win, 0 draw, −1 loss.
    lost, kept = ((value >= DECIDED) - (value <= -DECIDED) for value in (after, before))
    return DROPS.get(kept - lost, "inaccuracy")


def accuracy(marks: Sequence[str]) -> tuple[int | None, int | None]:
    """Whole percent of the side that began and of the other; None for a side that never had a choice."""
    points = [[POINTS[mark] for mark in marks[side::2] if mark != "forced"] for side in range(2)]
    first, second = (sum(own) // len(own) if own else None for own in points)
    return first, second


class Grader:
    """The solver, or a player with a policy and a value: a search, or a user's own.

    Raises ValueError for the name of another player, UserError where the solver is not installed or the player cannot
    be loaded.
    """

    def __init__(self, name: str) -> None:
        check(name)
        self.name, self.is_optimal = name, name == "solver"
        self._player = names.make(name, fast=True)

    def grades(self, positions: Sequence[Position]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Grades of columns (B, 7) and of positions (B,), for the side to move; none of the positions is over.

        By the solver exact scores, FULL_COLUMN for full columns, and the best of them; by a search shares of visits,
        and values. Raises UserError for a player without a policy or a value.
        """
        current, mask = (np.array([getattr(one, name) for one in positions], np.uint64) for name in ("current", "mask"))
        if self.is_optimal:
            scores = score_boards(current, mask)
            return scores, scores.max(1, initial=FULL_COLUMN)
        choices = checked_choices(self._player, current, mask, np.zeros(len(positions), np.uint64))
        if choices.policy is None or choices.value is None:
            raise UserError(f"{self.name}: a review needs a player with a policy and a value")
        return choices.policy, choices.value


def check(name: str) -> None:
    """Raises ValueError for a name that is not that of a grader; nothing is loaded."""
    parts = names.check(name)
    if name != "solver" and not parts.simulations and not parts.custom:
        raise ValueError(f"player {name!r} reviews no game; take solver, a search such as {STAND_IN}, or module:object")


def default_grader() -> str:
    """The solver where it is installed, else a search."""
    return "solver" if is_installed() else STAND_IN


@dataclass(frozen=True, kw_only=True)
class Move:
    """A move of a reviewed game; columns are 0-6.

    Attributes:
      number: from 1.
      side: of SIDES.
      column: the one played.
      mark: one of the marks above.
      better: the best column, of equal ones the nearest to the centre; the one played, where it was best.
      line: for an error, the moves of perfect play, or of the search, from the position before it, as a move string.
      before, after: the best exact score before the move and the move's own, or the search's values, for its side.
    """

    number: int
    side: str
    column: int
    mark: str
    better: int
    line: str
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Review:
    """A reviewed game.

    Attributes:
      game: the moves in columns 1-7.
      by: the grader; is_optimal: whether it is the solver.
      accuracy: of X and of O, see `accuracy`.
      moves: one for each move of the game.
    """

    game: str
    by: str
    is_optimal: bool
    accuracy: tuple[int | None, int | None]
    moves: tuple[Move, ...]


def review(game: str, grader: Grader) -> Review:
    """Review a move string. Raises ValueError for one that is no game."""
    rules.from_moves(game)
    positions, played = [rules.EMPTY], [int(text) - 1 for text in game]
    for column in played:
        positions.append(rules.play(positions[-1], column))
    graded, values = grader.grades([position for position in positions if not rules.is_over(position)])
    columns, before = graded.tolist(), values.tolist()
    after, marks = [], []
    for ply, (position, column) in enumerate(zip(positions[1:], played, strict=True)):
        if grader.is_optimal:
            after.append(columns[ply][column])
            marks.append(mark(columns[ply], column))
            continue
        # A search values positions, so a move's value is that of the opponent's position, or the result.
        after.append(int(rules.is_won(position)) if rules.is_over(position) else -before[ply + 1])
        is_forced = len(rules.legal_columns(positions[ply])) == 1
        marks.append("forced" if is_forced else estimated_mark(columns[ply], column, before[ply], after[ply]))
    # Only errors get a line; all lines are followed at once, one batch a ply.
    errors = [ply for ply, found in enumerate(marks) if found in ERRORS]
    lines = dict(zip(errors, _lines([positions[ply] for ply in errors], grader), strict=True))
    moves = tuple(
        Move(
            number=ply + 1,
            side=SIDES[ply % 2],
            column=column,
            mark=marks[ply],
            better=column if marks[ply] in ("best", "only move", "forced") else _best(columns[ply]),
            line=lines.get(ply, ""),
            before=float(before[ply]),
            after=float(after[ply]),
        )
        for ply, column in enumerate(played)
    )
    return Review(game=game, by=grader.name, is_optimal=grader.is_optimal, accuracy=accuracy(marks), moves=moves)


def _best(grades: Sequence[float]) -> int:
    """The best column of a position, of equal ones the nearest to the centre."""
    return max(COLUMNS_FROM_CENTRE, key=lambda column: grades[column])


def _lines(positions: list[Position], grader: Grader) -> list[str]:
    """For each position the grader's best moves of both sides, until the end or LINE plies; graded as one batch."""
    lines = [""] * len(positions)
    for _ in range(LINE):
        going = [row for row, position in enumerate(positions) if not rules.is_over(position)]
        if not going:
            break
        columns, _ = grader.grades([positions[row] for row in going])
        for row, grades in zip(going, columns.tolist(), strict=True):
            best = _best(grades)
            lines[row] += str(best + 1)
            positions[row] = rules.play(positions[row], best)
    return lines


def text(found: Review) -> str:
    """A review as text: the grader, both accuracies, the moves with their signs, each error with its line."""
    kind = "Checked by the perfect solver" if found.is_optimal else f"Estimated by {found.by}"
    percents = ("only forced moves" if percent is None else f"{percent}%" for percent in found.accuracy)
    accuracies = ", ".join(f"{side} {percent}" for side, percent in zip(SIDES, percents, strict=True))
    signs = " ".join(f"{move.column + 1}{SIGNS.get(move.mark, '')}" for move in found.moves)
    errors = [_of_error(move, found.is_optimal) for move in found.moves if move.mark in ERRORS]
    return "\n".join([kind, f"Accuracy: {accuracies}", f"Moves: {signs}", *(errors or ["No mistakes found"])])


def _of_error(move: Move, is_optimal: bool) -> str:
    """An error in two lines."""
    before, after = (_result(move, how) if is_optimal else f"value {how:+.2f}" for how in (move.before, move.after))
    played = f"{move.number:3} {move.side} plays {move.column + 1}, {move.mark}: {after}"
    return f"{played}; column {move.better + 1} is better: {before}\n      best line: {' '.join(move.line)}"


def _result(move: Move, score: float) -> str:
    """How the game ends by a score of the side that is to move there."""
    if not score:
        return "a draw"
    winner = move.side if score > 0 else SIDES[move.number % 2]
    count = int(moves_to_end([score], [move.number - 1])[0] + 1) // 2
    return f"{winner} wins in {count} move{'' if count == 1 else 's'}"

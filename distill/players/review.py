"""A game reviewed: each move marked, the accuracy of each side, and the better move with the line that proves it.

In: a game and its grader: the solver, or a search where it is not installed. Out: a `Review`, as text or as JSON. The
page has the same rule in `web/page/review.js`; a test compares the two.

Marks by exact scores (`players/solver.py`) of the side to move; the outcome is win, draw or loss:

    forced      the only legal column
    only move   every other column has a worse outcome
    best        no column has a higher score
    good        the outcome is kept, and fewer than SLOW moves are lost by it
    inaccuracy  the outcome is kept, but a win takes at least SLOW more own moves, or a loss comes as many moves sooner
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
from distill.datasets.benchmark import FULL_COLUMN
from distill.game import rules
from distill.game.rules import COLUMNS_FROM_CENTRE, Position
from distill.players import names
from distill.players.player import checked_choices
from distill.players.solver import Solver, is_installed, moves_to_end

SLOW = 3
DECIDED, SLIP, SERIOUS = 0.2, 0.3, 0.25
POINTS = {"only move": 100, "best": 100, "good": 90, "inaccuracy": 70, "mistake": 30, "blunder": 0}
ERRORS = ("inaccuracy", "mistake", "blunder")
SIGNS = {"inaccuracy": "?!", "mistake": "?", "blunder": "??", "only move": "!"}
"""Signs written beside a move with such a mark."""
LINE = 10
"""Plies of the line that proves what was better."""
SIDES = "XO"
STAND_IN = "reference/pillar@puct:400"
"""The grader where the solver is not installed."""


def mark(scores: Sequence[int], column: int) -> str:
    """The mark of a move by the seven exact scores before it, FULL_COLUMN for full columns."""
    legal = [score for score in scores if score != FULL_COLUMN]
    best, played = max(legal), scores[column]
    if len(legal) == 1:
        return "forced"
    if played == best:
        kept = sum(_sign(score) == _sign(best) for score in legal)
        return "only move" if kept == 1 else "best"
    return _error(_sign(best) - _sign(played)) or ("inaccuracy" if best - played >= SLOW else "good")


def estimated_mark(shares: Sequence[float], column: int, before: float, after: float) -> str:
    """The mark of a move by a search.

    Args:
      shares: of the visits, for each column; 0 for full ones.
      before: the value of the position, for the side to move.
      after: the value of the move to that side: that of the next position with the other sign, or the result.
    """
    if shares[column] == max(shares):
        return "best"
    if shares[column] >= SERIOUS or before - after < SLIP:
        return "good"
    return _error(_outcome(before) - _outcome(after)) or "inaccuracy"


def _sign(score: float) -> int:
    return (score > 0) - (score < 0)


def _outcome(value: float) -> int:
    return (value >= DECIDED) - (value <= -DECIDED)


def _error(drop: int) -> str:
    """The mark of a move whose outcome drops by so much; empty where it keeps the outcome."""
    return {1: "mistake", 2: "blunder"}.get(drop, "")


def accuracy(marks: Sequence[str]) -> tuple[int | None, int | None]:
    """Whole percent of the side that began and of the other; None for a side that never had a choice."""
    points = [[POINTS[mark] for mark in marks[side::2] if mark != "forced"] for side in range(2)]
    first, second = (sum(own) // len(own) if own else None for own in points)
    return first, second


@dataclass(frozen=True, kw_only=True)
class Grades:
    """A grader's scores, or its policy and value, in B positions that are not over.

    Attributes:
      columns: (B, 7), exact scores as int64 with FULL_COLUMN, or probabilities as float64, such as shares of visits.
      value: float64 (B,), expected outcome for the side to move; None beside scores.
    """

    columns: NDArray[Any]
    value: NDArray[np.float64] | None

    def best(self, row: int) -> int:
        """The best column of a position, of equal ones the nearest to the centre."""
        return max(COLUMNS_FROM_CENTRE, key=lambda column: self.columns[row, column])

    def outlook(self, row: int) -> float:
        """For the side to move: the best score, or the value."""
        return float(self.columns[row].max() if self.value is None else self.value[row])


class Grader:
    """The solver, or a player with a policy and a value: a search, or a user's own.

    Raises ValueError for the name of another player, UserError where the solver is not installed or the player cannot
    be loaded.
    """

    def __init__(self, name: str) -> None:
        self.name = check(name)
        self._player = Solver() if name == "solver" else names.make(name, fast=True)
        self.is_optimal = isinstance(self._player, Solver)

    def grades(self, positions: Sequence[Position]) -> Grades:
        """The grades of positions that are not over. Raises UserError for a player without a policy or a value."""
        if isinstance(self._player, Solver):
            return Grades(columns=np.array([self._player.scores(position) for position in positions]), value=None)
        current, mask = (np.array([getattr(one, name) for one in positions], np.uint64) for name in ("current", "mask"))
        choices = checked_choices(self._player, current, mask, np.zeros(len(positions), np.uint64))
        if choices.policy is None or choices.value is None:
            raise UserError(f"{self.name}: a review needs a player with a policy and a value")
        return Grades(columns=choices.policy, value=choices.value)


def check(name: str) -> str:
    """The name, where it is that of a grader; nothing is loaded. Raises ValueError."""
    parts = names.check(name)
    if name != "solver" and not parts.simulations and not parts.custom:
        raise ValueError(f"player {name!r} reviews no game; take solver, or a search such as {STAND_IN}")
    return name


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
      outlook: before the move, for its side: the best exact score, or the search's value.
      worth: the score or value of the move, likewise.
    """

    number: int
    side: str
    column: int
    mark: str
    better: int
    line: str
    outlook: float
    worth: float


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
    columns = [int(text) - 1 for text in game]
    positions = [rules.EMPTY]
    rules.from_moves(game)
    for column in columns:
        positions.append(rules.play(positions[-1], column))
    grades = grader.grades([position for position in positions if not rules.is_over(position)])
    marks, worth = [], []
    for ply, column in enumerate(columns):
        if grader.is_optimal:
            worth.append(float(grades.columns[ply, column]))
            marks.append(mark(grades.columns[ply].tolist(), column))
            continue
        after = positions[ply + 1]
        worth.append(float(rules.is_won(after)) if rules.is_over(after) else -grades.outlook(ply + 1))
        shares = grades.columns[ply].tolist()
        is_forced = len(rules.legal_columns(positions[ply])) == 1
        marks.append("forced" if is_forced else estimated_mark(shares, column, grades.outlook(ply), worth[ply]))
    errors = [ply for ply in range(len(columns)) if marks[ply] in ERRORS]
    lines = dict(zip(errors, _lines([positions[ply] for ply in errors], grader), strict=True))
    moves = (
        Move(
            number=ply + 1,
            side=SIDES[ply % 2],
            column=column,
            mark=marks[ply],
            better=column if marks[ply] in ("best", "only move", "forced") else grades.best(ply),
            line=lines.get(ply, ""),
            outlook=grades.outlook(ply),
            worth=worth[ply],
        )
        for ply, column in enumerate(columns)
    )
    return Review(game=game, by=grader.name, is_optimal=grader.is_optimal, accuracy=accuracy(marks), moves=tuple(moves))


def _lines(positions: list[Position], grader: Grader) -> list[str]:
    """For each position the grader's best moves of both sides, until the end or LINE plies; graded as one batch."""
    lines = [""] * len(positions)
    for _ in range(LINE):
        going = [row for row, position in enumerate(positions) if not rules.is_over(position)]
        if not going:
            break
        grades = grader.grades([positions[row] for row in going])
        for place, row in enumerate(going):
            best = grades.best(place)
            lines[row] += str(best + 1)
            positions[row] = rules.play(positions[row], best)
    return lines


def text(found: Review) -> str:
    """A review as text: the grader, both accuracies, the moves with their signs, each error with its line."""
    kind = "exact" if found.is_optimal else "an estimate"
    percents = ("no choice" if percent is None else f"{percent}%" for percent in found.accuracy)
    accuracies = ", ".join(f"{side} {percent}" for side, percent in zip(SIDES, percents, strict=True))
    signs = " ".join(f"{move.column + 1}{SIGNS.get(move.mark, '')}" for move in found.moves)
    errors = [_of_error(move, found.is_optimal) for move in found.moves if move.mark in ERRORS]
    errors = errors or ["no move could clearly have been better"]
    return "\n".join([f"reviewed by {found.by}: {kind}", f"accuracy: {accuracies}", f"moves: {signs}", *errors])


def _of_error(move: Move, is_optimal: bool) -> str:
    """An error in two lines."""
    before, after = (_result(move, how) if is_optimal else f"value {how:+.2f}" for how in (move.outlook, move.worth))
    line = "best play" if is_optimal else "the search's line"
    played = f"{move.number:3} {move.side} plays {move.column + 1}, {move.mark}: {after}"
    return f"{played}; better {move.better + 1}: {before}\n      {line}: {' '.join(move.line)}"


def _result(move: Move, score: float) -> str:
    """How the game ends by a score of the side that is to move there."""
    if not score:
        return "a draw"
    winner = move.side if score > 0 else SIDES[move.number % 2]
    count = int(moves_to_end([score], [move.number - 1])[0] + 1) // 2
    return f"{winner} wins in {count} move{'' if count == 1 else 's'}"

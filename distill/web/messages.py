"""What the JSON API takes and gives, and a request turned into a position.

Columns are 0–6 in fields and 1–7 in move strings, as everywhere in the project; boards are as the SavedModel takes
them: six rows, row 0 on top, +1 side to move, −1 opponent, 0 empty. Values and scores are for the side to move.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from distill.game import encoding, rules
from distill.game.rules import Position

Cell = Literal[-1, 0, 1]
PerColumn = Field(min_length=rules.COLUMNS, max_length=rules.COLUMNS)
Row = Annotated[list[Cell], PerColumn]
Board = Annotated[list[Row], Field(min_length=rules.ROWS, max_length=rules.ROWS)]
Column = Annotated[int, Field(ge=0, lt=rules.COLUMNS)]
Moves = Annotated[
    str, Field(max_length=rules.CELLS, pattern="^[1-7]*$", description="columns 1-7 from the empty board")
]


class Reply(BaseModel, use_attribute_docstrings=True):
    """What the API gives; the docstrings of its fields describe them at /docs.html."""


class Question(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """What every request for an evaluation names."""

    player: str = Field(min_length=1, max_length=80)
    """from /api/v1/players, such as uct:1000"""
    seed: int | None = Field(None, ge=0, lt=2**63)
    """of random choices; equal seeds give equal answers"""


class Request(Question, json_schema_extra={"examples": [{"player": "uct:1000", "moves": "4453"}]}):
    """A position, as moves from the empty board or as a board, and a player."""

    moves: Moves | None = None
    """columns 1-7 from the empty board"""
    board: Board | None = None
    """instead of moves: six rows, row 0 on top, +1 the side to move"""

    def position(self) -> Position:
        """The position. Raises HTTPException (422) for an impossible or a finished one."""
        if (self.moves is None) == (self.board is None):
            raise HTTPException(422, "give moves or a board, and not both")
        position = _from_board(self.board) if self.board is not None else position_after(self.moves or "")
        if rules.is_over(position):
            reason = "four in a line" if rules.is_won(position) else "the board is full"
            raise HTTPException(422, f"the game is over: {reason}")
        return position


class GameRequest(Question, json_schema_extra={"examples": [{"player": "pillar", "moves": "4453"}]}):
    """A game from the empty board, finished or not, and a player."""

    moves: Moves

    def positions(self) -> list[Position]:
        """Each position of the game that is not over. Raises HTTPException (422) for impossible moves."""
        position_after(self.moves)
        columns = (int(column) - 1 for column in self.moves)
        positions = accumulate(columns, rules.next_position, initial=rules.EMPTY)
        return [position for position in positions if not rules.is_over(position)]


class Analysis(Reply):
    """A player's evaluation of a position; null where the player has none."""

    player: str
    move: Column
    """the column it plays, 0-6"""
    policy: Annotated[list[float], PerColumn] | None = None
    """share of each column: a network's policy, a search's visits, a level's probabilities"""
    value: float | None = Field(None, ge=-1, le=1)
    """expected outcome for the side to move"""
    scores: Annotated[list[int | None], PerColumn] | None = None
    """the solver's exact scores; null in place of a full column"""


class GameAnalysis(Reply):
    """A player's evaluation of every position of a game."""

    player: str
    analyses: list[Analysis]
    """of the position before each move, in order, and of the last position if the game is still open"""


class Card(Reply):
    """A player."""

    name: str
    """its name in requests; N stands for a number of simulations"""
    kind: Literal["level", "network", "guided", "search", "solver", "simple", "custom"]
    """level: a named strength; guided: a network with search; custom: your module:object"""
    title: str
    note: str
    elo: int | None = None
    """measured strength, the player “random” at 0; null: not measured"""


class Catalogue(Reply):
    """The players and the limits."""

    players: list[Card]
    max_simulations: int
    """the largest N of a search"""
    notices: list[str]
    """licences that must be shown to a user"""


class Problem(BaseModel):
    """Why a request was refused, in one line."""

    error: str


def position_after(moves: str) -> Position:
    """The position after a move string. Raises HTTPException (422)."""
    try:
        return rules.from_moves(moves)
    except ValueError as error:
        raise HTTPException(422, f"moves: {error}") from error


def _from_board(board: list[list[Cell]]) -> Position:
    current, mask = encoding.bitboards(np.array([board], np.int8))
    position = Position(int(current[0]), int(mask[0]))
    if problem := rules.problem_with(position):
        raise HTTPException(422, f"board: {problem}")
    return position

"""Review a game: each move marked, the accuracy of both sides, and the better moves.

    python -m distill.review 44444233223671                      # by the solver where it is installed
    python -m distill.review 44444233223671 --by reference/pillar@puct:400 # by a network's search: an estimate
    python -m distill.review 44444233223671 --json               # with each move's score or value; columns are 0-6

In: a game as columns 1-7, or as `game/notation.py` reads it. Out: the moves with their signs (`!` the only winning or
drawing move, `?!` inaccuracy, `?` mistake, `??` blunder), and for each error the better column with best play from
there. `players/review.py` defines the marks and the accuracy.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from distill.common import cli
from distill.game import notation, rules
from distill.players import review


@dataclass(frozen=True, kw_only=True)
class ReviewConfig(cli.Settings):
    """Review a game move by move."""

    game: tuple[str, ...] = cli.setting(
        (), "the game: 445323, '4, 4, 5', '1. 4 4 2. 5', ddec, or a link to the page", positional=True
    )
    by: str | None = cli.setting(
        None, f"grader: solver, a search such as {review.STAND_IN} (if none and no solver), or your own module:object"
    )
    json: bool = cli.setting(False, "print JSON")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.game) != 1:
            raise ValueError("name one game, such as 445323")
        try:
            rules.from_moves(moves := notation.read(self.game[0]))
        except ValueError as error:
            raise ValueError(f"game {self.game[0]}: {error}") from None
        if not moves:
            raise ValueError("name one game, such as 445323")
        if self.by is not None:
            review.check(self.by)


PRESETS: cli.Presets = {"smoke": cli.smoke(game=("445323",), by=f"{cli.SMOKE_MODELS / 'selfplay'}@puct:20")}


def run(config: ReviewConfig) -> str:
    """Review the game; returns the text, or JSON."""
    found = review.review(notation.read(config.game[0]), review.Grader(config.by or review.default_grader()))
    return json.dumps(dataclasses.asdict(found)) if config.json else review.text(found)


main = cli.Command("review", ReviewConfig, run, PRESETS, resumes=False)

if __name__ == "__main__":
    raise SystemExit(main())

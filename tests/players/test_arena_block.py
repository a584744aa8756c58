"""The arena of self-play (`players/match.py`): its blocks share no opening; the score is the candidate's."""

from typing import Any

from distill.players import match
from distill.players.player import RandomPlayer


def score(candidate: Any, champion: Any) -> float:
    """The candidate's score in an arena of 60 games."""
    outcomes, lines = list[float](), set()
    for first in (0, match.BLOCK):
        results, moves = match.arena_block([candidate, champion], games=60, plies=4, seed=2**63 + 5, first=first)
        outcomes += results
        lines |= {*moves}
    assert len(outcomes) == len(lines) == 60
    return (sum(outcomes) + 60) / 120


def test_the_score_is_the_candidates():
    strong, weak = RandomPlayer(name="punisher", tactical=True), RandomPlayer()
    assert score(strong, weak) > 0.8
    assert score(weak, strong) < 0.2

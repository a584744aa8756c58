"""The arena of self-play (`players/match.py`): its blocks share no opening; the score is the candidate's; with any
seed it finds all openings that there are.
"""

from typing import Any

import pytest

from distill.players import match
from distill.players.player import RandomPlayer


def score(candidate: Any, champion: Any) -> float:
    """The candidate's score in an arena of 60 games."""
    arena = {"games": 60, "plies": 4, "seed": 2**63 + 5}
    outcomes = [match.arena_block([candidate, champion], **arena, first=first) for first in (0, match.BLOCK)]
    return (sum(map(sum, outcomes)) + 60) / 120


def test_blocks_share_no_opening(monkeypatch):
    openings, play_games = [], match.play_games

    def counted(players, pairings, seed):
        openings.extend(pairing.opening for pairing in pairings)
        return play_games(players, pairings, seed)

    monkeypatch.setattr(match, "play_games", counted)
    score(RandomPlayer(), RandomPlayer())
    assert len(openings) == 60
    assert len({*openings}) == 30


def test_the_score_is_the_candidates():
    strong, weak = RandomPlayer(name="punisher", tactical=True), RandomPlayer()
    assert score(strong, weak) > 0.8
    assert score(weak, strong) < 0.2


def test_an_arena_finds_all_openings_with_any_seed():
    count, plies, seed = 568, 4, 4  # all that there are: seed 0, which the settings try, finds them in time
    assert len(match.openings(count, plies, 0)) == count
    with pytest.raises(ValueError, match="there are only about 567 openings"):
        match.openings(count, plies, seed)
    assert len(match.arena_block([RandomPlayer(), RandomPlayer()], 2 * count, plies, seed, first=0)) == match.BLOCK

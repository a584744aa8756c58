"""How a player plays (`experiments/habits/`): players with known habits get the expected figures."""

import json
import sys

import numpy as np
import pytest
from helpers import low

from distill.common import UserError
from distill.game import encoding, rules
from distill.players.intervals import share
from distill.players.names import make
from distill.players.player import as_player
from experiments.habits import article, measure
from experiments.habits.__main__ import main

THREE_ON_THE_LEFT = low("""
    O O . . . . .
    X X X O . . .
""")
TWO_IN_THE_MIDDLE = low("""
    . . X X . O O
""")
THREE_WITH_TWO_ENDS = low("""
    . . O . O . .
    . . X X X . O
""")


def bitboards(*drawings):
    return encoding.bitboards_of([rules.parse_board(drawing) for drawing in drawings])


def test_lines_begin_in_their_leftmost_column_and_a_threat_is_a_win_next_turn():
    current, mask = bitboards(THREE_WITH_TWO_ENDS)
    assert measure.line_starts(current, mask).tolist() == [[False, True, True, False]]
    current, mask = bitboards(THREE_ON_THE_LEFT)
    assert not measure.line_starts(current, mask).any(), "blocked"
    assert np.flatnonzero(measure.threats(*bitboards(TWO_IN_THE_MIDDLE))[0]).tolist() == [0, 1, 4]


def stacker(boards, seeds):
    """The highest column that is not full: on top of the last stones."""
    heights = np.abs(boards).sum(1)
    return np.where(heights < 6, heights, -1).argmax(1)


@pytest.fixture(scope="module")
def measured():
    players = [make("punisher"), as_player(stacker, "stacker")]
    return {player.name: measure.habits_of(player, 40) for player in players}


def test_one_who_wins_and_blocks_misses_no_three_and_has_no_better_side(measured):
    punisher = measured["punisher"]
    assert {one.rate.mean for one in punisher.threes.values()} == {1.0}
    assert punisher.left_less_right.mean == 0
    assert punisher.games["wins where it can"].rate.mean == punisher.games["answers a threat"].rate.mean == 1
    statements = {what: judged(punisher)[0] for (_, what), (_, judged) in article.STATEMENTS.items()}
    assert statements["miss open horizontal threes"] == "does not hold"
    assert statements["opens almost evenly"] == statements["reacts"] == "holds"
    assert statements["miss traps of two moves"] == "holds"


def test_one_who_stacks_is_seen_to_stack_and_not_to_react(measured):
    games = measured["stacker"].games
    assert games["the column just played"].rate.low > games["the column just played"].chance
    assert games["answers a threat"].rate.mean < 0.5
    assert measured["stacker"].openings[""] == [1, 0, 0, 0, 0, 0, 0]
    assert measured["stacker"].openings["15"] == [0.5, 0, 0, 0, 0.5, 0, 0] or measured["stacker"].openings["15"][0] == 1


def test_a_statement_is_open_where_the_interval_includes_its_bound():
    half = share([1, 0] * 50, trials=1)
    assert [article.above(half, bound) for bound in (0.3, 0.5, 0.7)] == ["holds", "not measurable", "does not hold"]
    assert [article.below(half, bound) for bound in (0.3, 0.5, 0.7)] == ["does not hold", "not measurable", "holds"]


def test_the_command_prints_tables_and_writes_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["habits", "punisher", "--games", "4", "--out", str(tmp_path)])
    main()
    printed = capsys.readouterr().out
    assert "the article's statements" in printed
    assert json.loads((tmp_path / "habits.json").read_text())["punisher"]["threes"]["win left"]["rate"]["mean"] == 1
    assert len(list(tmp_path.glob("*.png"))) == 4
    monkeypatch.setattr(sys, "argv", ["habits", "random", "--out", str(tmp_path)])
    with pytest.raises(UserError, match=r"habits\.json: has the habits of punisher and would be replaced"):
        main()
    (tmp_path / "habits.json").write_text("[1]")
    with pytest.raises(UserError, match=r"habits\.json: not the habits of players"):
        main()
    monkeypatch.setattr(sys, "argv", ["habits", "random", "--games", "0"])
    with pytest.raises(SystemExit):
        main()
    assert "--games 0 must be an even number" in capsys.readouterr().err

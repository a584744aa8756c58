"""The players: each plays as its name says, a move depends on its seed alone, and one whose answer cannot be used, or
whose source has changed, is named.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits
from numpy.typing import NDArray
from puct_helpers import WINNING_COLUMN, WINS, uniform
from selfplay_helpers import tiny

from distill.common import OutputError, UserError, plugins
from distill.game import rules, tactics
from distill.game.rules import EMPTY, Position, parse_board
from distill.mcts.puct import PuctSettings
from distill.players import levels, network
from distill.players.names import identity, make
from distill.players.player import Choices, as_player, checked_choices, seeds_for

FULL_CENTRE = """
    . . . O . . .
    . . . X . . .
    . . . O . . .
    . . . X . . .
    . . . O . . .
    . . . X . . .
"""


def repeated(position: Position, count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    return *bits(*[position] * count), seeds_for(3, np.arange(count))


def test_a_network_plays_by_its_name_in_every_mode_that_it_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for word in ("reference/pillar", "pillar@sample", "pillar@gumbel:2"):
        player = make(word)
        assert player.name == word
        assert player.choose(*repeated(parse_board(WINS["vertical"]), 1)).moves.tolist() == [0]
    with pytest.raises(UserError, match=str(tmp_path)):
        make(str(tmp_path))
    tiny(False).save(tmp_path / "best.keras")
    with pytest.raises(UserError, match="no value head"):
        make(f"{tmp_path}@puct:4")


def test_random_draws_every_legal_column_evenly():
    position = parse_board(FULL_CENTRE)
    choices = make("random").choose(*repeated(position, 6000))
    counts = np.bincount(choices.moves, minlength=7)
    assert counts[3] == 0
    # Binomial(6000, 1/6): standard deviation 29; five of them are exceeded once in two million draws.
    assert np.abs(counts[[0, 1, 2, 4, 5, 6]] - 1000).max() < 5 * 29
    assert choices.policy[0].tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 0, 1 / 6, 1 / 6, 1 / 6])


def test_a_move_depends_on_its_seed_and_not_on_the_batch():
    current, mask, seeds = repeated(EMPTY, 50)
    for player in (make("random"), make("uct:20")):
        together = player.choose(current, mask, seeds).moves
        alone = [int(player.choose(current[:1], mask[:1], seeds[i : i + 1]).moves[0]) for i in (0, 17, 49)]
        assert together[[0, 17, 49]].tolist() == alone
        assert len(set(together.tolist())) > 1


@pytest.mark.parametrize("direction", WINS)
def test_a_win_is_seen_in_its_direction_alone_and_punisher_takes_it_or_blocks_it(direction):
    position = parse_board(WINS[direction])
    for other in WINS:
        assert tactics.wins_in(*bits(position), other).any() == (other == direction)
    assert np.flatnonzero(tactics.wins(*bits(position))[0]).tolist() == [WINNING_COLUMN[direction]]
    threatened = Position(position.opponent, position.mask)
    assert not tactics.wins(*bits(threatened)).any(), "the drawing must not let the blocker win"
    for board in (position, threatened):
        assert set(make("punisher").choose(*repeated(board, 20)).moves.tolist()) == {WINNING_COLUMN[direction]}


def test_a_searchs_policy_is_its_share_of_visits_and_processes_give_the_moves_of_one(monkeypatch):
    choices = make("uct:140").choose(*repeated(parse_board(FULL_CENTRE), 3))
    assert choices.policy.sum(1).tolist() == pytest.approx([1, 1, 1])
    assert (choices.policy[:, 3] == 0).all()
    assert (choices.policy.argmax(1) == choices.moves).all()
    assert np.allclose(choices.policy * 140, np.round(choices.policy * 140))
    monkeypatch.setattr(network, "SHARED_SIMULATIONS", 1)
    one, two = (make("uct:30", workers=workers).choose(*repeated(EMPTY, 9)) for workers in (1, 2))
    assert (one.moves == two.moves).all()
    assert (one.policy == two.policy).all()


def test_solver_plays_each_of_the_best_moves_and_no_other():
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    choices = make("solver").choose(*repeated(rules.from_moves("334455"), 30))  # an open three
    assert set(choices.moves.tolist()) == {1, 5}
    assert set(choices.value.tolist()) == {1.0}


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_guided_search_wins_blocks_and_reports_shares_of_visits(root):
    settings = PuctSettings(simulations=30, root=root)
    player = network.GuidedPlayer(name="guided", evaluate=uniform, settings=settings)
    for direction, drawing in WINS.items():
        choices = player.choose(*repeated(parse_board(drawing), 2))
        assert choices.moves.tolist() == [WINNING_COLUMN[direction]] * 2
        assert choices.value.tolist() == [1.0, 1.0]
        assert choices.policy.sum(1) == pytest.approx([1, 1])
    empty = player.choose(*repeated(EMPTY, 3))
    assert len(set(empty.moves.tolist())) == 1  # its seed has no say: it plays in earnest


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (Choices(moves=np.array([2, 7])), "odd: returned an illegal move on 1 of 2 boards"),
        (
            Choices(moves=np.array([2, 2]), policy=np.full((2, 7), 1 / 7)),
            "a probability that is NaN, outside .0, 1. or of a full column on 1 of",
        ),
        ([2, 2], "odd: returned list, not Choices"),
    ],
)
def test_a_player_whose_answer_cannot_be_used_is_named(answer, line):
    class Odd:
        name = "odd"

        def choose(self, *_: Any) -> Any:
            return answer

    current, mask = bits(parse_board(FULL_CENTRE), EMPTY)
    with pytest.raises(OutputError, match=line):
        checked_choices(Odd(), current, mask, np.zeros(2, np.uint64))
    if isinstance(answer, Choices) and answer.policy is not None:
        level = levels.LevelPlayer(name="club", base=Odd())
        with pytest.raises(OutputError, match=line):
            level.choose(current, mask, np.zeros(2, np.uint64))


MINE = """
import numpy as np
from distill.players.player import Choices

def centre(boards, seeds):
    order = np.array([3, 2, 4, 1, 5, 0, 6])
    return order[(boards[:, 0, order] == 0).argmax(1)]

class Uniform:
    def choose(self, current, mask, seeds):
        moves = np.full(len(mask), 3)
        return Choices(moves=moves, policy=np.full((len(mask), 7), 1 / 7), value=np.zeros(len(mask)))

def fails(boards, seeds):
    return [][1]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_players_own_function_or_class_plays_under_its_spec(mine):
    current, mask = bits(EMPTY, parse_board(FULL_CENTRE))
    asked = current, mask, seeds_for(0, np.arange(2))
    function, a_class = make("mine:centre"), as_player(plugins.load("mine:Uniform", "player"), "mine:Uniform")
    assert (function.name, a_class.name) == ("mine:centre", "mine:Uniform")
    assert checked_choices(function, *asked).moves.tolist() == [3, 2]
    first = a_class.choose(current[:1], mask[:1], asked[2][:1])
    assert first.value is not None
    assert first.value.tolist() == [0]
    with pytest.raises(OutputError, match=r"a probability that is NaN, outside .* of a full column on 1 of 2"):
        checked_choices(make("mine:Uniform"), *asked)
    with pytest.raises(UserError, match=r"^mine:fails: IndexError: list index out of range \(.*mine.py:15\)$"):
        make("mine:fails")  # other mistakes: `test_plugins`


def test_another_source_is_another_identity(mine):
    before = identity("mine:centre")
    (mine / "mine.py").write_text(MINE + "\n# changed\n")
    with pytest.raises(UserError, match=r"mine\.py: changed after this process imported it"):
        identity("mine:centre")
    del sys.modules["mine"]  # as in a new process
    assert identity("mine:centre") != before == ["mine:centre", before[1]]


def test_a_player_that_writes_into_its_arrays_changes_neither_the_callers_nor_its_earlier_choices():
    class Flips:
        name = "flips"
        moves = np.zeros(1, np.int64)

        def choose(self, current, mask, seeds):
            current ^= mask
            mask[:], seeds[:] = 0, 7
            self.moves += 1
            return Choices(moves=self.moves)

    player, lent = Flips(), [np.array([value], np.uint64) for value in (1, 1 | 1 << 7, 5)]
    first, second = (checked_choices(player, *lent).moves.tolist() for _ in range(2))
    assert [values.tolist() for values in lent] == [[1], [1 | 1 << 7], [5]]
    kept = [checked_choices(player, *lent).moves for _ in range(2)]
    assert (first, second, *map(list, kept)) == ([1], [2], [3], [4])

"""Grading of moves: grades are what their formulas say, and both orientations of a board are played."""

import numpy as np
import pytest
from numpy.typing import NDArray

import distill
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import grade_moves, is_critical
from distill.evaluation import grading
from distill.evaluation.grading import grade
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import Bitboards, canonicalise, legal_mask
from distill.players.names import make
from distill.players.player import Choices, Seeds, as_player


@pytest.fixture(scope="module")
def boards() -> GradedBoards:
    return grading.sample(benchmark.read(half="dev"), 60, seed=0)


class Oracle:
    """Plays by the stored scores: the best move, or the worst."""

    def __init__(self, boards: GradedBoards, worst: bool = False) -> None:
        self.name = "worst" if worst else "oracle"
        self.scores = {}
        for current, mask, scores in zip(boards.current.tolist(), boards.mask.tolist(), boards.scores, strict=True):
            self.scores[current, mask] = np.where(scores == FULL_COLUMN, np.nan, scores)
        self.pick = np.nanargmin if worst else np.nanargmax

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        small = canonicalise(current, mask)
        moves = []
        for key_current, key_mask, mirrored in zip(*(part.tolist() for part in small), strict=True):
            scores = self.scores.get((key_current, key_mask), np.zeros(7))
            moves.append(abs((6 if mirrored else 0) - int(self.pick(scores))))
        return Choices(moves=np.array(moves, np.int64))


def leftmost(boards: NDArray[np.int8], seeds: Seeds) -> NDArray[np.int64]:
    """Plays the leftmost legal column, whatever stands there."""
    assert boards.shape == (len(seeds), 6, 7)
    return (boards[:, 0] == 0).argmax(1)


LEFTMOST = as_player(leftmost)


def test_grades_are_what_the_formulas_say():
    full = FULL_COLUMN
    rows = [[3, 1, 0, -2, full, 3, -18], [-4, -4, -5, full, full, -6, -4], [0, 0, 0, 0, 0, 0, -2]]
    scores = np.array(rows, np.int8)
    optimal, outcome = grade_moves(scores, np.array([[0, 2, 6], [1, 0, 5], [5, 5, 0], [2, 1, 3]]))
    assert optimal.tolist() == [[True, False, False], [False, True, True], [True, False, True], [False, True, True]]
    assert outcome.tolist() == [[True, True, False], [True, True, True], [True, True, True], [False, True, True]]
    assert is_critical(scores).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="full column"):
        grade_moves(scores, np.array([4, 0, 0]))


def test_the_stored_best_moves_score_100_percent_and_the_worst_keep_no_outcome_that_can_be_lost(boards):
    graded = grade(Oracle(boards), boards, seed=0)
    for name, metrics in grading.by_set(boards, graded).items():
        assert metrics["optimal"].mean == metrics["outcome"].mean == 1, name
    worst = grading.by_set(boards, grade(Oracle(boards, worst=True), boards, seed=0))
    for name, metrics in worst.items():
        assert metrics["critical"].units == 0 or metrics["critical"].mean == 0, name
    midgame = (boards.set == "midgame") & is_critical(boards.scores)
    assert worst["midgame"]["critical"].units == midgame.sum() > 0


def test_a_grade_depends_on_the_seed_alone(boards, monkeypatch):
    one = grade(make("random"), boards, seed=1)
    assert (grade(make("random"), boards, seed=2).optimal != one.optimal).any()
    monkeypatch.setattr(grading, "CHUNK", 100)
    assert (grade(make("random"), boards, seed=1).optimal == one.optimal).all()


def test_a_mirrored_rising_line_counts_as_a_falling_one(boards):
    """A player blind to falling lines, as it is shown them, fails one set and not the other."""
    from distill.game.tactics import wins_in

    class BlindToFalling:
        name = "blind"

        def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
            seen = np.logical_or.reduce([wins_in(current, mask, d) for d in ("vertical", "horizontal", "rising")])
            hidden = wins_in(current, mask, "falling")
            other = legal_mask(mask) & ~(hidden & (legal_mask(mask).sum(1, keepdims=True) > 1))
            return Choices(moves=np.where(seen.any(1), seen.argmax(1), other.argmax(1)))

    metrics = grading.by_set(boards, grade(BlindToFalling(), boards, seed=0))
    assert metrics["win-rising"]["optimal"].mean == 1
    assert metrics["win-falling"]["optimal"].mean < 0.03, "but for boards with a single legal column"
    assert metrics["win-rising"]["optimal"].units == 120, "60 boards as stored and 60 mirrored ones of the other set"


def test_players_are_graded_from_python(boards):
    grades = distill.evaluate_players(["random", leftmost], sets=["midgame"], half="dev", boards=60)
    expected = grading.by_set(boards, grade(LEFTMOST, boards, seed=0))["midgame"]
    assert list(grades) == ["random", "leftmost"]
    assert grades["leftmost"] == {"midgame": expected}
    assert [*distill.evaluate_players("random", sets="midgame", boards=1)] == ["random"]
    with pytest.raises(ValueError, match="two players have one name"):
        distill.evaluate_players([leftmost, LEFTMOST], sets="midgame", boards=1)
    for wrong in ({"boards": 0}, {"boards": -5}, {"half": None}, {"half": "all"}):
        with pytest.raises(ValueError, match="half must be dev or test, boards at least 1"):
            distill.evaluate_players("random", sets="midgame", **wrong)

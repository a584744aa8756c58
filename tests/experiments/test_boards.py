"""The makers of the graded boards: every shipped set has its size, two like halves, and only boards that belong to it;
in the games of held-out boards no player of this project takes part.
"""

from collections import Counter

import numpy as np
import pytest

from distill.common import provenance
from distill.datasets import benchmark
from distill.datasets.benchmark import HEADLINES, GradedBoards
from distill.datasets.grades import best_scores
from distill.game.rules import Position
from distill.games import schema
from experiments.boards import heldout
from experiments.boards.strata import all_strata, heldout_strata, outcome

STRATA = [*all_strata(), *heldout_strata()]


@pytest.fixture(scope="module")
def shipped() -> GradedBoards:
    return benchmark.read()


def test_every_set_has_its_size_and_two_like_halves(shipped):
    sizes: Counter[str] = Counter()
    for stratum in STRATA:
        sizes[stratum.name] += stratum.size
    assert list(sizes.values()) == [10_000] + [1000] * 6 + [500] * 13 + [5000] * 2
    for name, size in sizes.items():
        dev, test = (shipped.ply[(shipped.set == name) & (shipped.half == half)] for half in ("dev", "test"))
        assert len(dev) == len(test) == size // 2
        assert (dev <= test).all(), "halves alternate along the plies"
        assert (test[:-1] <= dev[1:]).all()
    assert len(shipped) == sizes.total()
    for name in HEADLINES:
        plies, counts = np.unique(shipped.ply[shipped.set == name], return_counts=True)
        assert plies.tolist() == list(range(10, 17))
        assert np.ptp(counts) <= 1


def test_every_board_belongs_to_its_set(shipped):
    for name in shipped.sets:
        boards = shipped[shipped.set == name]
        belongs = np.zeros(len(boards), np.bool_)
        for stratum in (one for one in STRATA if one.name == name):
            seen = stratum.seen(boards.current, boards.mask)
            belongs |= seen & stratum.graded(boards.current, boards.mask, boards.scores)
        assert belongs.all(), name


def test_in_zugzwang_a_pass_would_be_better(shipped):
    boards = shipped[shipped.set == "zugzwang"][:40]
    for row in range(len(boards)):
        passed = Position(int(boards.current[row] ^ boards.mask[row]), int(boards.mask[row]))
        best = int(np.sign(best_scores(boards.scores)[row]))
        assert -outcome(passed, {}) > best
        assert outcome(Position(int(boards.current[row]), int(boards.mask[row])), {}) == best


def test_no_player_of_this_project_chose_a_heldout_board(tmp_path):
    file = provenance.ROOT / "data/benchmark/heldout-test.parquet"
    _, metadata = schema.read_table(file, benchmark.GRADED_BOARD)
    config = heldout.Config(out=tmp_path)
    recipe = {
        "styles": [list(style) for style in heldout.STYLES],
        "exploration": heldout.openspiel.EXPLORATION,
        "share": 1.0,
    }
    assert metadata["settings"] == recipe | {"games": config.games, "seed": config.seed}
    assert {word.partition(":")[0] for word, _ in heldout.STYLES} == {"random", "punisher", "openspiel"}

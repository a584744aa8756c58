"""The shipped benchmark (`test_boards.py` checks its sets): its scores are a live solver's, and by default `prepare`
keeps every board, in either orientation, out of training tables.
"""

from typing import Any

import numpy as np
import pytest
from helpers import one_row_games, write_games

from distill.common import DataError
from distill.datasets import benchmark, preparation
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import best_scores
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import (
    Position,
    canonicalise,
    from_moves,
    is_over,
    legal_columns,
    legal_mask,
    mirror,
    mirror_bits,
    problem_with,
)
from distill.games import schema
from experiments.boards.plies import moves_to_end


@pytest.fixture(scope="module")
def shipped() -> GradedBoards:
    return benchmark.read()


def test_every_board_is_a_canonical_position_that_is_not_over(shipped):
    for current, mask, ply in zip(shipped.current.tolist(), shipped.mask.tolist(), shipped.ply.tolist(), strict=True):
        position = Position(current, mask)
        assert problem_with(position) is None
        assert not is_over(position)
        assert position.ply == ply
    *canonical, mirrored = canonicalise(shipped.current, shipped.mask)
    assert not mirrored.any()
    assert len(np.unique(np.stack(canonical, 1), axis=0)) == len(shipped), "no two are equal up to mirror"


def test_scores_cover_the_legal_columns_alone(shipped):
    legal = legal_mask(shipped.mask)
    assert ((shipped.scores != FULL_COLUMN) == legal).all()
    assert np.abs(shipped.scores[legal].astype(int)).max() <= 18
    assert (moves_to_end(best_scores(shipped.scores), shipped.ply) == shipped.moves_to_end).all()
    assert shipped.moves_to_end.min() >= 1


def test_a_live_solver_gives_the_stored_scores(shipped):
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players.solver import score_boards

    cheap = np.flatnonzero((shipped.ply <= 11) | (shipped.ply >= 17))
    rows = np.random.default_rng(0).permutation(cheap)[:600]
    mirrored = [mirror_bits(bits[rows]) for bits in (shipped.current, shipped.mask)]
    assert (score_boards(*mirrored)[:, ::-1] == shipped.scores[rows]).all()


def test_prepare_keeps_every_board_out_of_training(tmp_path, shipped):
    """Games that pass through benchmark boards, half of them in the mirror, and through one other board."""
    stored = [Position(int(c), int(m)) for c, m in zip(shipped.current[::5], shipped.mask[::5], strict=True)]
    boards = [from_moves("4"), *stored[::2], *map(mirror, stored[1::2])]
    labels = [legal_columns(position)[0] for position in boards]
    write_games(tmp_path / "games", one_row_games(boards, labels), shard_games=len(boards))

    def training_boards(**settings: Any) -> preparation.Prepared:
        chosen = preparation.TableSettings(data=[tmp_path / "games"], validation_fraction=0.0, **settings)
        return preparation.prepare(chosen, tmp_path / "out")

    everything = training_boards(exclude=())
    assert len(preparation.load(everything.folder, schema.TRAINING)) == len(boards)
    default = training_boards()
    assert preparation.load(default.folder, schema.TRAINING).mask.tolist() == [from_moves("4").mask]
    assert default.result["counts"]["excluded"] == {"boards": len(shipped), "rows": len(boards) - 1}


def test_a_half_or_some_sets_can_be_read(shipped):
    some = benchmark.read(half="dev", sets=["zugzwang", "end-easy"])
    assert some.sets == ["end-easy", "zugzwang"]
    assert set(some.half.tolist()) == {"dev"}
    assert len(some) == 750
    assert some.scores.shape == (750, 7)
    with pytest.raises(DataError, match="no set opening; there are midgame"):
        benchmark.read(sets=["opening"])


@pytest.mark.parametrize(("content", "problem"), [(None, "no such file"), (b"PAR1", "damaged, or not a Parquet file")])
def test_an_unusable_file_is_named_in_one_line(tmp_path, content, problem):
    if content is not None:
        (tmp_path / "boards-dev.parquet").write_bytes(content)
    with pytest.raises(DataError, match=rf"^{tmp_path}/boards-dev.parquet: .*{problem}.*$"):
        benchmark.read(tmp_path)

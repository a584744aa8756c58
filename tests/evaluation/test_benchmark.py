"""Properties of the shipped benchmark and of reading it; `test_boards.py` checks its sets.

* Every board is a position that is not over, canonical, and differs from every other board of any set up to mirror.
* Stored scores cover the legal columns alone, and equal a live solver's on a sample.
* `prepare` keeps every one of them out of training tables, in either orientation, by default.
* A half or some sets can be read; a missing or damaged file, and a set that is not there, are named in one line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import write_games

from distill.common import DataError
from distill.datasets import batching, benchmark, preparation
from distill.datasets.benchmark import FULL_COLUMN, GradedBoards
from distill.evaluation.grading import best_scores
from distill.game.rules import Position, canonicalise, is_over, legal_mask, mirror_bits, parse_board, problem_with
from distill.games import schema
from distill.players.solver import moves_to_end


@pytest.fixture(scope="module")
def shipped() -> GradedBoards:
    return benchmark.read()


def test_every_board_is_a_live_position(shipped: GradedBoards) -> None:
    for current, mask, ply in zip(shipped.current.tolist(), shipped.mask.tolist(), shipped.ply.tolist(), strict=True):
        position = Position(current, mask)
        assert problem_with(position) is None
        assert not is_over(position)
        assert position.ply == ply


def test_no_two_boards_are_equal_up_to_mirror(shipped: GradedBoards) -> None:
    current, mask, mirrored = canonicalise(shipped.current, shipped.mask)
    assert not mirrored.any(), "the stored orientation is the canonical one"
    assert len(np.unique(np.stack([current, mask], 1), axis=0)) == len(shipped)


def test_scores_cover_the_legal_columns_alone(shipped: GradedBoards) -> None:
    legal = legal_mask(shipped.mask)
    assert ((shipped.scores != FULL_COLUMN) == legal).all()
    assert np.abs(shipped.scores[legal].astype(int)).max() <= 18
    assert (moves_to_end(best_scores(shipped.scores), shipped.ply) == shipped.moves_to_end).all()
    assert shipped.moves_to_end.min() >= 1


def test_a_live_solver_gives_the_stored_scores(shipped: GradedBoards) -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players.solver import score_boards

    cheap = np.flatnonzero((shipped.ply <= 11) | (shipped.ply >= 17))
    rows = np.random.default_rng(0).permutation(cheap)[:600]
    mirrored = [mirror_bits(bits[rows]) for bits in (shipped.current, shipped.mask)]
    assert (score_boards(*mirrored)[:, ::-1] == shipped.scores[rows]).all()


def test_prepare_keeps_every_board_out_of_training(tmp_path: Path, shipped: GradedBoards) -> None:
    """Games that pass through benchmark boards, half of them in the mirror, and through one other board."""
    boards = [
        Position(int(turn(shipped.current[row : row + 1])[0]), int(turn(shipped.mask[row : row + 1])[0]))
        for turn in (np.copy, mirror_bits)
        for row in range(0 if turn is np.copy else 5, len(shipped), 10)
    ]
    rows = [_row(game, position) for game, position in enumerate([parse_board(ONE_STONE), *boards])]
    write_games(tmp_path / "games", pa.Table.from_pylist(rows, schema=schema.ROW), shard_games=len(rows))

    def training_boards(**settings: Any) -> preparation.Prepared:
        return preparation.prepare([tmp_path / "games"], tmp_path / "out", validation_fraction=0.0, **settings)

    everything = training_boards(exclude=())
    assert len(batching.load(everything.folder, schema.TRAINING)) == len(boards) + 1
    default = training_boards()
    assert batching.load(default.folder, schema.TRAINING).mask.tolist() == [parse_board(ONE_STONE).mask]
    excluded = default.manifest["counts"]["excluded"]["benchmark"]
    assert (excluded["boards"], excluded["boards_found"]) == (len(shipped), len(boards))


ONE_STONE = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . X . . .
"""


def _row(game: int, position: Position) -> dict[str, object]:
    row = {"game_id": game, "ply": position.ply, "current": position.current, "mask": position.mask}
    label = int(legal_mask(np.array([position.mask], np.uint64))[0].argmax())
    visits = [30 if column == label else 0 for column in range(7)]
    row |= {"votes": [label], "label": label, "visits": visits, "simulations": 30, "move": label}
    return row | {"value": 0.0, "outcome": 0}


# Reading --------------------------------------------------------------------------------------------------------------


def test_a_half_or_some_sets_can_be_read(shipped: GradedBoards) -> None:
    some = benchmark.read(half="dev", sets=["zugzwang", "end-easy"])
    assert some.sets == ["end-easy", "zugzwang"]
    assert set(some.half.tolist()) == {"dev"}
    assert len(some) == 750
    assert some.scores.shape == (750, 7)


@pytest.mark.parametrize(("content", "problem"), [(None, "no such file"), (b"PAR1", "not a readable Parquet file")])
def test_an_unusable_file_is_named_in_one_line(tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / benchmark.FILES[0]).write_bytes(content)
    with pytest.raises(DataError, match=problem) as caught:
        benchmark.read(tmp_path)
    assert str(tmp_path / benchmark.FILES[0]) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_set_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="no set opening; there are midgame"):
        benchmark.read(sets=["opening"])


def test_the_file_holds_what_was_made(tmp_path: Path, shipped: GradedBoards) -> None:
    some = shipped[np.arange(0, len(shipped), 1000)]
    schema.write_table(
        tmp_path / benchmark.FILES[0], benchmark.to_table(some), {"schema_version": schema.SCHEMA_VERSION}
    )
    read = benchmark.read(tmp_path)
    for name, values in vars(some).items():
        assert (vars(read)[name] == values).all(), name
        assert vars(read)[name].dtype.kind == values.dtype.kind

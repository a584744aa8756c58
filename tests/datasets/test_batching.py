"""Prepared tables in memory and the batches made of them.

- a table is loaded in the types promised, only from a finished folder and only when undamaged
- an epoch is a function of (seed, epoch); every row once; the leftover rows are dropped
- an epoch of some rows has each of them once, and can continue from any of its batches
- a mirrored row is the same example seen in the mirror: board, visits and label; about half are
- fewer rows than a batch make one batch; an empty table is refused in one line
- `in_order` gives every row once, unmirrored, the last batch shorter
- `seen` knows a training board in both orientations and no other board (`test_packed`: a key has one board)
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from helpers import make_games, write_games

from distill.common import DataError
from distill.datasets import batching, canonical, preparation
from distill.datasets.batching import Batch, Examples
from distill.datasets.validation import seen
from distill.game import encoding, rules
from distill.games import schema
from distill.games.schema import TRAINING, VALIDATION


def batches(examples: Examples, size: int, *, seed: int, mirror: bool = True, step: int = 0) -> Iterator[Batch]:
    """The batches of `picks`, as the training loop makes them."""
    for rows, mirrored in batching.picks(len(examples), size, seed=seed, mirror=mirror, step=step):
        yield batching.batch_of(examples, rows, mirrored)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_games(folder / "games", make_games(60, seed=1))
    return preparation.prepare([folder / "games"], folder / "out", validation_fraction=0.3, exclude=()).folder


@pytest.fixture(scope="module")
def examples(prepared):
    return batching.load(prepared, TRAINING)


def test_a_table_and_its_batches_have_the_types_promised(prepared, examples):
    types = {name: (array.dtype.name, array.shape[1:]) for name, array in vars(examples).items()}
    assert types == {
        "current": ("uint64", ()),
        "mask": ("uint64", ()),
        "visits": ("int64", (7,)),
        "label": ("int8", ()),
        "value": ("float32", ()),
        "outcome": ("float32", ()),
        "count": ("int32", ()),
    }
    assert {len(array) for array in vars(examples).values()} == {len(examples)}
    assert len(examples) > len(batching.load(prepared, VALIDATION)) > 0
    batch = next(batches(examples, 32, seed=0))
    assert {name: (array.dtype.name, array.shape) for name, array in vars(batch).items()} == {
        "boards": ("int8", (32, 6, 7)),
        "visits": ("float32", (32, 7)),
        "label": ("int32", (32,)),
        "value": ("float32", (32,)),
        "outcome": ("float32", (32,)),
        "count": ("float32", (32,)),
    }


def test_a_damaged_or_unfinished_folder_is_refused(tmp_path, prepared):
    for name in ("training.parquet", "_run.json"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    assert len(batching.load(tmp_path, TRAINING))
    with pytest.raises(DataError, match=r"validation\.parquet"):
        batching.load(tmp_path, VALIDATION)
    (tmp_path / "training.parquet").write_bytes((prepared / "training.parquet").read_bytes()[:-50])
    with pytest.raises(DataError, match=r"training\.parquet: not the file that its record describes"):
        batching.load(tmp_path, TRAINING)
    (tmp_path / "_run.json").unlink()
    with pytest.raises(DataError, match=r"no _run\.json"):
        batching.load(tmp_path, TRAINING)


def test_a_table_that_is_replaced_after_it_was_prepared_is_refused(tmp_path, prepared):
    for file in prepared.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    table, metadata = schema.read_table(tmp_path / "training.parquet", schema.PREPARED_ROW)
    schema.write_table(tmp_path / "training.parquet", table.slice(1), metadata)
    with pytest.raises(DataError, match=r"training\.parquet: not the file that its record describes"):
        batching.load(tmp_path, TRAINING)


def joined(batches: list[Batch]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in vars(batches[0])}


def test_an_epoch_is_a_function_of_seed_and_epoch(examples):
    steps = batching.batches_an_epoch(len(examples), 32)

    def epoch(seed: int, number: int) -> dict[str, np.ndarray]:
        return joined(list(islice(batches(examples, 32, seed=seed, step=number * steps), steps)))

    first = epoch(1, 2)
    for name, array in epoch(1, 2).items():
        np.testing.assert_array_equal(array, first[name])
    assert (epoch(1, 3)["boards"] != first["boards"]).any()
    assert (epoch(2, 2)["boards"] != first["boards"]).any()
    assert (epoch(2, 1)["boards"] != first["boards"]).any()


def test_every_row_appears_once_and_any_batch_is_a_beginning(examples):
    size = len(examples) // 3 - 1
    assert batching.batches_an_epoch(len(examples), size) == 3
    expected = list(islice(batches(examples, size, seed=3), 7))
    assert {len(batch.label) for batch in expected} == {size}, "the leftover rows are dropped"
    keys = keys_of(joined(expected[:3])["boards"])
    assert len(set(keys)) == 3 * size
    assert set(keys) <= set(canonical.board_keys(examples.current, examples.mask).tolist())
    assert keys_of(expected[0].boards) != keys_of(expected[3].boards)
    for step in range(7):
        left = list(islice(batches(examples, size, seed=3, step=step), 7 - step))
        np.testing.assert_array_equal(joined(left)["boards"], joined(expected[step:])["boards"])
    assert len(next(batches(examples, 10**9, seed=0)).label) == len(examples), "fewer rows than a batch are one"
    with pytest.raises(DataError, match="the table is empty"):
        next(batches(examples[:0], 32, seed=0))


def keys_of(boards: np.ndarray) -> list[int]:
    return canonical.board_keys(*encoding.bitboards(boards)).tolist()


def test_a_mirrored_row_is_the_same_example_in_the_mirror(examples):
    arrays = joined([next(batches(examples, len(examples), seed=0))])
    current, mask = encoding.bitboards(arrays["boards"])
    place = {key: row for row, key in enumerate(canonical.board_keys(examples.current, examples.mask).tolist())}
    rows = np.array([place[key] for key in keys_of(arrays["boards"])])
    flipped = (current != examples.current[rows]) | (mask != examples.mask[rows])
    np.testing.assert_array_equal(np.where(flipped, rules.mirror_bits(current), current), examples.current[rows])
    own_mirror = rules.mirror_bits(examples.mask[rows]) == examples.mask[rows]
    kept, mirrored = ~flipped & ~own_mirror, flipped & ~own_mirror
    np.testing.assert_array_equal(arrays["visits"][kept], examples.visits[rows][kept])
    np.testing.assert_array_equal(arrays["visits"][mirrored], examples.visits[rows][mirrored][:, ::-1])
    np.testing.assert_array_equal(arrays["label"][kept], examples.label[rows][kept])
    np.testing.assert_array_equal(arrays["label"][mirrored], 6 - examples.label[rows][mirrored])
    for name in ("value", "outcome", "count"):
        np.testing.assert_array_equal(arrays[name], getattr(examples, name)[rows])
    # Five standard deviations of a fair coin.
    assert abs(flipped[~own_mirror].mean() - 0.5) < 2.5 / np.sqrt((~own_mirror).sum())


def test_in_order_gives_every_row_as_stored(examples):
    in_order = list(batching.in_order(examples, 100))
    assert [len(batch.label) for batch in in_order[:-1]] == [100] * (len(in_order) - 1)
    arrays = joined(in_order)
    np.testing.assert_array_equal(arrays["boards"], encoding.boards(examples.current, examples.mask))
    np.testing.assert_array_equal(arrays["visits"], examples.visits)
    np.testing.assert_array_equal(arrays["label"], examples.label)
    unturned = joined(list(islice(batches(examples, 1, seed=0, mirror=False), len(examples))))["boards"]
    assert {board.tobytes() for board in unturned} == {board.tobytes() for board in arrays["boards"]}


def test_seen_knows_training_boards_in_both_orientations_and_no_other(prepared, examples):
    validation = batching.load(prepared, VALIDATION)
    for turn in (lambda bits: bits, rules.mirror_bits):
        assert seen(examples, turn(examples.current), turn(examples.mask)).all()
        assert not seen(examples, turn(validation.current), turn(validation.mask)).any()

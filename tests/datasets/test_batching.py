"""Prepared tables in memory (`datasets/batching.py`) and the batches made of them (`training/streams.py`). Properties:

- a table is loaded only from a finished folder and only when undamaged
- an epoch has every row once, and can continue from any of its batches
- a mirrored row is the same example seen in the mirror: board, visits and label; about half are
"""

from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers import make_games, write_games

from distill.common import DataError
from distill.common.settings import build
from distill.datasets import batching, preparation
from distill.datasets.batching import Examples
from distill.game import encoding, rules
from distill.game.rules import canonical_keys
from distill.games import schema
from distill.games.schema import TRAINING, VALIDATION
from distill.training import streams
from distill.training.recipe import Recipe

MODEL: Any = SimpleNamespace(recipe=build(Recipe, {"value_target": "value"}), output={"value": None})
VOTE = build(Recipe, {"target": "vote"})


def batches(examples: Examples, size: int, *, seed: int, mirror: bool = True, step: int = 0) -> streams.Table:
    """The batches of `picks`, as training makes them."""
    picks = batching.picks(len(examples), size, seed=seed, mirror=mirror, step=step)
    return streams.table(MODEL, examples, picks, on_device=False)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_games(folder / "games", make_games(60, seed=1))
    settings = preparation.TableSettings(data=[folder / "games"], validation_fraction=0.3, exclude=())
    return preparation.prepare(settings, folder / "out").folder


@pytest.fixture(scope="module")
def examples(prepared):
    return preparation.load(prepared, TRAINING)


def test_a_damaged_changed_or_unfinished_folder_is_refused(tmp_path, prepared):
    for name in ("training.parquet", "_run.json"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    assert len(preparation.load(tmp_path, TRAINING))
    with pytest.raises(DataError, match=r"validation\.parquet: not the file that the record describes"):
        preparation.load(tmp_path, VALIDATION)
    table, metadata = schema.read_table(tmp_path / "training.parquet", schema.PREPARED_ROW)
    schema.write_table(tmp_path / "training.parquet", table.slice(1), metadata)
    with pytest.raises(DataError, match=r"training\.parquet: not the file that the record describes"):
        preparation.load(tmp_path, TRAINING)
    (tmp_path / "_run.json").unlink()
    with pytest.raises(DataError, match=r"no _run\.json"):
        preparation.load(tmp_path, TRAINING)


def joined(batches: list[streams.Batch]) -> dict[str, np.ndarray]:
    parts = [{"boards": boards, **targets, "weight": weight} for boards, targets, weight in batches]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_every_row_appears_once_and_any_batch_is_a_beginning(examples):
    size = len(examples) // 3 - 1
    assert batching.batches_an_epoch(len(examples), size) == 3
    expected = list(islice(batches(examples, size, seed=3), 7))
    assert {len(weight) for _, _, weight in expected} == {size}, "the leftover rows are dropped"
    keys = keys_of(joined(expected[:3])["boards"])
    assert len(set(keys)) == 3 * size
    assert set(keys) <= set(canonical_keys(examples.current, examples.mask).tolist())
    assert keys_of(expected[0][0]) != keys_of(expected[3][0])
    for step in range(7):
        left = list(islice(batches(examples, size, seed=3, step=step), 7 - step))
        np.testing.assert_array_equal(joined(left)["boards"], joined(expected[step:])["boards"])
    assert len(next(batches(examples, 10**9, seed=0))[0]) == len(examples), "fewer rows than a batch are one"


def keys_of(boards: np.ndarray) -> list[int]:
    return canonical_keys(*encoding.bitboards(boards)).tolist()


def test_a_mirrored_row_is_the_same_example_in_the_mirror(examples):
    arrays = joined([next(batches(examples, len(examples), seed=0))])
    current, mask = encoding.bitboards(arrays["boards"])
    place = {key: row for row, key in enumerate(canonical_keys(examples.current, examples.mask).tolist())}
    rows = np.array([place[key] for key in keys_of(arrays["boards"])])
    flipped = (current != examples.current[rows]) | (mask != examples.mask[rows])
    np.testing.assert_array_equal(np.where(flipped, rules.mirror_bits(current), current), examples.current[rows])
    own_mirror = rules.mirror_bits(examples.mask[rows]) == examples.mask[rows]
    kept, mirrored = ~flipped & ~own_mirror, flipped & ~own_mirror
    policy = (examples.visits / examples.visits.sum(1, keepdims=True))[rows]
    np.testing.assert_allclose(arrays["logits"][kept], policy[kept], rtol=1e-6)
    np.testing.assert_allclose(arrays["logits"][mirrored], policy[mirrored][:, ::-1], rtol=1e-6)
    np.testing.assert_array_equal(arrays["value"], examples.value[rows])
    votes, _ = streams.batch_of(streams.columns_of(examples, VOTE), rows, flipped, recipe=VOTE, with_value=False)[1:]
    np.testing.assert_array_equal(
        votes["logits"].argmax(1), np.where(flipped, 6 - examples.label[rows], examples.label[rows])
    )
    # Five standard deviations of a fair coin.
    assert abs(flipped[~own_mirror].mean() - 0.5) < 2.5 / np.sqrt((~own_mirror).sum())

"""The replay (`datasets/replay.py`): the latest rows or games, merged as `prepare` does, and samples of them."""

from collections.abc import Sequence

import numpy as np
import pytest

from distill.common import DataError
from distill.datasets import preparation, replay
from distill.game.rules import canonical_keys
from distill.games import reader, schema
from distill.games.reader import Columns


def test_the_replay_holds_the_latest_games_or_rows(three_runs):
    everything = replay.latest(three_runs, None, None)
    assert [shard.folder for shard in everything] == [folder for folder in three_runs for _ in range(2)]
    assert [shard.folder.name for shard in replay.latest(three_runs, None, 12)] == ["1", "2", "2"]
    assert [shard.first_game for shard in replay.latest(three_runs, None, 12)] == [4, 0, 4]
    newest = sum(shard.rows for shard in everything[4:])
    assert replay.latest(three_runs, newest, None) == everything[4:]
    assert replay.latest(three_runs, newest + everything[3].rows, None) == everything[3:]
    assert replay.latest(three_runs, 1, 1) == everything[4:]  # the newest run is whole in any case


def test_the_replay_merges_as_prepare_does(three_runs, tmp_path):
    merged = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    settings = preparation.TableSettings(data=three_runs, validation_fraction=1e-9, exclude=())
    prepared = preparation.prepare(settings, tmp_path)
    expected = preparation.load(prepared.folder, schema.TRAINING)
    order, expected_order = (np.argsort(canonical_keys(t.current, t.mask)) for t in (merged, expected))
    assert len(merged) == len(expected)
    for name in ("current", "mask", "visits", "count", "value", "outcome"):
        column, other = getattr(merged, name)[order], getattr(expected, name)[expected_order]
        np.testing.assert_allclose(column, other, rtol=0, atol=1e-6 if name in ("value", "outcome") else 0)
    assert merged.count.max() > 1
    assert (merged.visits[np.arange(len(merged)), merged.label] == merged.visits.max(1)).all()


def test_excluded_boards_are_not_in_the_replay(three_runs):
    latest = replay.latest(three_runs, None, None)
    merged = replay.table(latest, np.zeros(0, np.uint64))
    keys = np.sort(canonical_keys(merged.current, merged.mask))
    left = replay.table(latest, keys[::2])
    assert sorted(canonical_keys(left.current, left.mask).tolist()) == keys[1::2].tolist()
    with pytest.raises(DataError, match="every board is kept out"):
        replay.table(latest, keys)


def test_searches_count_equally_whatever_their_visits_sum_to(three_runs, monkeypatch):
    shards, nothing = replay.latest(three_runs, None, None), np.zeros(0, np.uint64)
    before, read = replay.table(shards, nothing), reader.read

    def tenfold_in_the_newest(shard: schema.Shard, columns: Sequence[str]) -> Columns:
        rows = read(shard, columns)
        return rows | {"visits": rows["visits"] * 10} if shard.folder == three_runs[-1] else rows

    monkeypatch.setattr(reader, "read", tenfold_in_the_newest)
    after = replay.table(shards, nothing)
    assert after.visits.sum() == 10 * before.visits.sum()
    assert np.array_equal(after.visits, 10 * before.visits)
    assert np.array_equal(after.label, before.label)


def test_a_sample_is_drawn_without_repetition(three_runs):
    merged = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    drawn = replay.sample(merged, 50, seed=1)
    assert len(drawn) == len({*zip(drawn.current.tolist(), drawn.mask.tolist(), strict=True)}) == 50
    assert not np.array_equal(drawn.mask, replay.sample(merged, 50, seed=2).mask)
    assert replay.sample(merged, None, 1) is merged
    assert replay.sample(merged, 10**6, 1) is merged

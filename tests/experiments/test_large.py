"""Larger networks: the shapes keep the symmetry of the board, files of labelled boards keep what was packed, and
positions for labelling are playable. The trained network that is kept loads and knows a win and a threat.
"""

from pathlib import Path

import keras
import numpy as np
import pytest

from distill.game import encoding
from distill.game.rules import from_keys, from_moves, has_four
from distill.networks import heads
from experiments.large import boards, label, shapes


@pytest.mark.parametrize("name", ["lines-8x2", "pooled-8x2"])
def test_a_mirrored_board_gives_mirrored_outputs(name):
    model = shapes.build(name, shapes.AUXILIARY)
    for weight in model.trainable_variables:  # some start at zero, which would hide them
        weight.assign(np.random.default_rng(1).normal(scale=0.1, size=weight.shape))
    position = from_moves("443562")
    board = encoding.boards(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))
    found, mirrored = (model(heads.encode(model, each)) for each in (board, board[:, :, ::-1]))
    for output in ("logits", *shapes.AUXILIARY):
        np.testing.assert_allclose(found[output], np.flip(mirrored[output], axis=1), atol=1e-5)
    np.testing.assert_allclose(found["value"], mirrored["value"], atol=1e-5)


@pytest.mark.parametrize("name", ["lines-8x2", "pooled-8x2", "attention-16x2"])
def test_a_network_without_auxiliary_heads_has_the_same_weights(tmp_path, name):
    model = shapes.without_heads(shapes.build(name, shapes.AUXILIARY))
    plain = shapes.build(name)
    plain.set_weights(model.get_weights())
    plain.save(tmp_path / "best.keras")
    planes = np.random.default_rng(0).integers(0, 2, (4, 6, 7, 2)).astype(np.float32)
    loaded = keras.models.load_model(tmp_path / "best.keras", compile=False)
    for output in ("logits", "value"):
        np.testing.assert_allclose(loaded(planes)[output], model(planes)[output], atol=1e-6)


def test_packed_boards_merge_mirror_images_and_turn_the_reply(tmp_path):
    left, right = from_moves("12"), from_moves("76")
    current, mask = (np.array([getattr(each, name) for each in (left, right)]) for name in ("current", "mask"))
    visits = np.array([[9, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 9]])
    one = boards.pack(current, mask, visits, np.array([0.5, 1.0]), np.array([1, 1]), np.array([1, 5]))
    assert len(one["key"]) == 1
    assert sorted(one["visits"][0].tolist())[-2:] == [2, 18]
    assert one["visits"][0].argsort()[-2] == one["reply"][0]  # the column beside the favourite, in both
    assert one["value"][0] == round(0.75 * boards.VALUE_STEPS)
    boards.save(tmp_path / "one.npz", one)
    for name, values in boards.load([tmp_path / "one.npz"]).items():
        np.testing.assert_array_equal(values, one[name])
    assert not len(boards.merge([one], excluded=one["key"])["key"])


def test_openings_are_playable_and_some_are_empty():
    current, mask = label.openings(400, np.random.default_rng(0))
    assert not has_four(current).any()
    assert not has_four(current ^ mask).any()
    assert (mask == 0).any()
    assert np.bitwise_count(mask).max() > 16
    own, stones = from_keys(current + mask)
    np.testing.assert_array_equal(own, current)
    np.testing.assert_array_equal(stones, mask)


def test_the_kept_network_takes_a_win_and_blocks_a_threat():
    core = keras.models.load_model(Path("models/long/large/best.keras"), compile=False)
    for moves, column in (("112233", 3), ("121374", 4)):
        position = from_moves(moves)
        board = encoding.boards(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))
        assert np.argmax(core(heads.encode(core, board))["logits"]) == column, moves

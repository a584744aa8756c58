"""Larger networks: files of labelled boards keep what was packed; slow: the search on an accelerator is that of
`distill.mcts.puct`, with the same visits, values and proofs; the network that ships knows a win and a threat.
"""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from distill.game import encoding
from distill.game.rules import from_moves
from distill.networks import heads
from experiments.large import boards


def test_packed_boards_merge_mirror_images_and_turn_the_reply(tmp_path):
    left, right = from_moves("12"), from_moves("76")
    sides = (left, right)
    current, mask = (np.array([getattr(each, name) for each in sides], np.uint64) for name in ("current", "mask"))
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
    boards.main(["--data", str(tmp_path / "one.npz"), "--out", str(tmp_path / "packed")])  # as `distill.train` reads it
    packed = boards.load([tmp_path / "packed"])
    for name in ("key", "visits", "value", "outcome"):
        np.testing.assert_array_equal(packed[name], one[name])


def test_the_kept_network_takes_a_win_and_blocks_a_threat():
    core = keras.models.load_model(Path("models/reference/pillar-large/best.keras"), compile=False)
    for moves, column in (("112233", 3), ("121374", 4)):
        position = from_moves(moves)
        board = encoding.boards(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))
        assert np.argmax(core(heads.encode(core, board))["logits"]) == column, moves


BOTH_SEARCHES = """
from pathlib import Path
import numpy as np
from distill.datasets import benchmark
from distill.mcts import puct
from experiments.large import label, search
path, number, simulations = Path("models/reference/pillar/best.keras"), 48, 60
graded = benchmark.read(half="dev", sets=["midgame", "end-easy", "middle-medium"])
chosen = np.linspace(0, len(graded.mask) - 1, number).astype(int)
current, mask = graded.current[chosen], graded.mask[chosen]
evaluate = label.evaluator(path, number, "float32")
record = puct.play_games(current, mask, label.settings(simulations), evaluate, steps=1, lanes=number)
found = search.searcher(path, number, simulations, "float32")(current, mask)
root = slice(None, None, 1 + search.INNER)
shares = [visits / visits.sum(1, keepdims=True) for visits in (record.visits[:, 0], np.asarray(found.visits)[root])]
same = (np.abs(shares[0] - shares[1]) < 1e-6).all(1)
assert same.mean() > 0.9, same
np.testing.assert_allclose(np.asarray(found.value)[root][same], record.value[:, 0][same], atol=1e-3)
assert 0 < np.asarray(found.proven)[root].mean() < 1
packed = search.packed(found, 16)
assert len(packed["key"]) > 2 * number
"""


@pytest.mark.slow
def test_the_search_on_an_accelerator_is_that_of_the_package():
    pytest.importorskip("jax", reason="the extra jax is not installed")
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, "-c", BOTH_SEARCHES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

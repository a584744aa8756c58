"""The labeller that searches on a device (`networks/device_labeller.py`), here on a CPU: it finds what `puct.search`
finds with the same network, and a module that names other weights is refused.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the extra jax is not installed")
ROOT = Path(__file__).parents[2]

MODULE = """
from distill.mcts.settings import PuctSettings
from distill.networks.device_labeller import DeviceLabeller
SETTINGS = PuctSettings(simulations=24, exploration=1, discount=0.98, noise_fraction=NOISE)
label = DeviceLabeller("NETWORK", SETTINGS, "WEIGHTS", lanes=16, precision="float32")
"""
SAME = """
import numpy as np
from distill import Labels
from distill.datasets import benchmark
from distill.game import encoding
from distill.mcts import puct
from distill.mcts.evaluator import on_bitboards
from distill.networks import saved
from distill.networks.evaluator import NetworkEvaluator
from my_labels import SETTINGS, label
graded = benchmark.read(half="dev", sets=["midgame", "end-easy"])
current, mask = graded.current[::100][:37], graded.mask[::100][:37]
boards, seeds = encoding.boards(current, mask), np.arange(3 * 37, dtype=np.uint64).reshape(-1, 3)
labels = label(boards, seeds)
assert isinstance(labels, Labels)
assert [file.name for file in label.source_files] == ["device.py", "device_tree.py"]
record = puct.play(current, mask, NetworkEvaluator(saved.load_core(NETWORK)), SETTINGS, steps=1)
same = (labels.visits == record.visits[:, 0]).all(1)
assert same.mean() > 0.9, same
assert (labels.label == record.label[:, 0]).mean() > 0.9
np.testing.assert_allclose(labels.value[same], record.value[same, 0], atol=1e-3)
label.settings = SETTINGS.replace(noise_fraction=0.5)
noisy, again = label(boards, seeds), label(boards[:5], seeds[:5])
assert (noisy.visits != labels.visits).any()
assert (noisy.visits[:5] == again.visits).all()
"""


@pytest.fixture
def python(tmp_path):
    """Runs Python in a folder with the module `my_labels`, for a small network: `python(words, weights)`."""

    def run(*words, weights):
        text = MODULE.replace("NETWORK", "net.keras").replace("WEIGHTS", weights).replace("NOISE", "0")
        (tmp_path / "my_labels.py").write_text(text)
        environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


def test_searches_as_the_package_and_labels_games(python, tmp_path):
    make = "import keras; from distill import networks; from distill.networks.evaluator import weights_hash;"
    make += "keras.utils.set_random_seed(3); core = networks.build('pillar', True, features=4, blocks=1, hidden=8);"
    built = python("-c", make + "core.save('net.keras'); print(weights_hash(core)[:12])", weights="")
    assert built.returncode == 0, built.stderr
    weights = built.stdout.split()[-1]
    same = python("-c", SAME.replace("NETWORK", "'net.keras'"), weights=weights)
    assert same.returncode == 0, same.stderr
    flags = ["-m", "distill.generate", "--labeller", "my_labels:label", "--workers", 1, "--games", 4, "--out", "games"]
    wrong = python(*flags, weights="0123456789ab")
    assert wrong.returncode == 1
    assert f'net.keras: its weights are "{weights}", not "0123456789ab"' in wrong.stderr
    done = python(*flags, weights=weights)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "games").glob("shard-*.parquet"))) == 1

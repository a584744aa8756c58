"""The labeller that searches on a device (`networks/device_labeller.py`), here on a CPU: it finds what `puct.search`
finds with the same network, and a network that is replaced meanwhile is refused.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = '''
import importlib
import sys
sys.modules["tensorflow"] = None  # Keras would import it to set its seed
from pathlib import Path
import keras
import numpy as np
from distill import Labels, generate, networks
from distill.datasets import benchmark
from distill.game import encoding
from distill.mcts import puct
from distill.networks.evaluator import NetworkEvaluator

PACKAGES = ("distill.game.", "distill.mcts.", "distill.networks.")
MODULE = """
from distill.mcts.settings import PuctSettings
from distill.networks.device_labeller import DeviceLabeller
SETTINGS = PuctSettings(simulations=24, exploration=1, discount=0.98, noise_fraction=0)
label = DeviceLabeller("net.keras", SETTINGS, lanes=16, precision="float32")
"""
keras.utils.set_random_seed(3)
core = networks.build("pillar", True, features=4, blocks=1, hidden=8)
core.save("net.keras")
Path("my_labels.py").write_text(MODULE)
importlib.invalidate_caches()
from my_labels import SETTINGS, label

graded = benchmark.read(half="dev", sets=["midgame", "end-easy"])
current, mask = graded.current[::100][:37], graded.mask[::100][:37]
boards, seeds = encoding.boards(current, mask), np.arange(3 * 37, dtype=np.uint64).reshape(-1, 3)
labels = label(boards, seeds)
assert isinstance(labels, Labels)
hashed = {str(file) for file in label.source_files}
runs = {module.__file__ for name, module in sys.modules.items() if name.startswith(PACKAGES)}
assert {file for file in runs if "engine" not in file and "cpu_kernels" not in file} <= hashed
record = puct.play(current, mask, NetworkEvaluator(core), SETTINGS, steps=1)
same = (labels.visits == record.visits[:, 0]).all(1)
assert same.mean() > 0.9, same
assert (labels.label == record.label[:, 0]).mean() > 0.9
np.testing.assert_allclose(labels.value[same], record.value[same, 0], atol=1e-3)

flags = ["--workers", "1", "--games", "4", "--out", "games", "--labeller", "my_labels:label"]
assert generate.main(flags) == 0
assert len(list(Path("games").glob("shard-*.parquet"))) == 1

label.settings = SETTINGS.replace(noise_fraction=0.5)
noisy, again = label(boards, seeds), label(boards[:5], seeds[:5])
assert (noisy.visits != labels.visits).any()
assert (noisy.visits[:5] == again.visits).all()

networks.build("pillar", True, features=4, blocks=1, hidden=8).save("net.keras")
assert generate.main(flags) == 1
'''


def test_searches_as_the_package_and_labels_games_but_not_with_another_network(tmp_path):
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "net.keras: changed after this process" in done.stderr

"""The networks that ship in every Keras (`common/keras_layers.py`, `load_keras`): after `import distill`, before or
after Keras is imported, `keras.models.load_model` reads them on every backend that is installed, with the outputs that
they have on TensorFlow, and without it.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from helpers import REFERENCE, SHIPPED

import distill
from distill import networks
from distill.common import keras_layers
from distill.networks import saved

PROGRAM = """
import json, os, sys
if os.environ["KERAS_BACKEND"] != "tensorflow": sys.modules["tensorflow"] = None
import {first}
import {second}
import numpy as np
logits = {{}}
for file in sys.argv[1:]:
    model = keras.models.load_model(file)
    outputs = model(np.ones((1, *model.inputs[0].shape[1:]), model.inputs[0].dtype))
    logits[file] = keras.ops.convert_to_numpy(outputs["logits"])[0].tolist()
print(json.dumps(logits))
"""


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    """The logits of each file on TensorFlow."""
    files = [str(REFERENCE / name / "best.keras") for name in SHIPPED]
    cores = {file: saved.load_core(file) for file in files}
    return {file: core(np.ones((1, *core.inputs[0].shape[1:]), core.inputs[0].dtype))["logits"][0]
            for file, core in cores.items()}  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "package", "order"),
    [
        ("tensorflow", "tensorflow", ("keras", "distill")),
        ("jax", "jax", ("distill", "keras")),
        ("torch", "torch", ("distill", "keras")),
    ],
)
def test_keras_reads_every_network_that_ships(backend, package, order, expected):
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    program = PROGRAM.format(first=order[0], second=order[1])
    command = [sys.executable, "-c", program, *expected]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for file, logits in json.loads(done.stdout.splitlines()[-1]).items():
        np.testing.assert_allclose(logits, expected[file], rtol=1e-4, atol=1e-4)


def test_every_module_with_a_layer_of_our_own_is_listed():
    sources = Path(networks.__file__).parent.glob("*.py")
    ours = {source.stem for source in sources if "\n@keras.saving.register_keras_serializable" in source.read_text()}
    assert {f"distill.networks.{name}" for name in ours} == set(keras_layers.MODULES)


def test_a_network_is_loaded_by_name():
    model = distill.load_keras("cnn")
    assert isinstance(model, keras.Model)
    assert model.count_params() == 192_505

"""Training steps that JAX computes many a call on an accelerator (`training/on_device.py`), here on a CPU.

Batches, losses and weights are those of one step a call on the host. `train` and the check of an accelerator run with
JAX and without TensorFlow.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

from distill.common.settings import build
from distill.datasets import batching, packed
from distill.game import encoding
from distill.training import step, streams
from distill.training.recipe import Recipe
from tests.helpers import make_games, write_games
from tests.selfplay_helpers import tiny
from tests.training_helpers import random_examples

ROOT = Path(__file__).parents[2]
RECIPE = build(
    Recipe, {"batch_size": 16, "value_target": "blend", "target": "blend", "count_weights": "root", "ema": 0.9}
)


def examples() -> batching.Examples:
    return batching.Examples(**vars(random_examples(50)) | {"count": np.arange(1, 51, dtype=np.int32)})


@pytest.mark.parametrize("target", ["visits", "vote", "blend"])
def test_the_device_makes_the_batch_of_the_host(target):
    table = examples()
    recipe = build(Recipe, {"target": target, "value_target": "blend", "count_weights": "root"})
    model: Any = SimpleNamespace(recipe=recipe, output={"value": None})
    pick = next(batching.picks(50, 40, seed=1))
    assert 0 < pick[1].sum() < 40
    host, device = (next(streams.table(model, table, iter([pick]), on_device)) for on_device in (False, True))
    for expected, array in zip(keras.tree.flatten(host), keras.tree.flatten(device), strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(array), expected, rtol=1e-6)


def trained(many: bool) -> tuple[float, list[Any], list[int]]:
    """Mean loss, weights and the steps at which it was reported, of 13 steps in one call or one by one."""
    keras.utils.set_random_seed(1)
    model, reports = step.compiled(tiny(), RECIPE), list[int]()
    stream = streams.table(model, examples(), batching.picks(50, 16, seed=0), on_device=many)
    taken, means = step.fit(model, stream, range(13), lambda n: 1e-3 * (1 + n), lambda n, _: reports.append(n))
    assert taken == 13
    variables = [*model.get_weights(), *(np.asarray(variable) for variable in model.optimizer.variables)]
    return means["loss"], variables, reports


def many_steps_are_single_steps() -> None:
    one, many = trained(False), trained(True)
    assert one[2] == list(range(13))
    assert many[2] == [7, 12], "8 steps a call"
    assert many[0] == pytest.approx(one[0], rel=1e-5)
    for expected, array in zip(one[1], many[1], strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-3, atol=1e-5)


WITH_JAX = """
import sys
sys.modules["tensorflow"] = None  # Keras would import it to set its seed
import numpy as np
from distill import networks
networks.start_backend()
import keras
assert keras.backend.backend() == "jax"
from distill.networks.evaluator import NetworkEvaluator
from distill.game import encoding
from distill.networks import heads
from distill.training import on_device
from tests.training import test_on_device
on_device.STEPS = 8
test_on_device.many_steps_are_single_steps()
core, table = test_on_device.tiny(), test_on_device.examples()
logits, value = NetworkEvaluator(core)(table.current, table.mask)
boards = encoding.boards(table.current, table.mask)
expected = core(heads.encode(core, boards))
np.testing.assert_allclose(logits, expected["logits"], atol=1e-5)
np.testing.assert_allclose(value, expected["value"].reshape(-1), atol=1e-5)
print("fine")
from distill import train
sys.exit(train.main(sys.argv[1:]) or train.main(sys.argv[1:]))
"""


def in_process(*words: object) -> str:
    """What a Python process prints, with JAX as Keras' backend."""
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    run = subprocess.run([sys.executable, *map(str, words)], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_with_jax_many_steps_are_single_steps_a_search_evaluates_as_keras_and_train_runs_and_says_so(tmp_path):
    write_games(tmp_path / "games", make_games(12, seed=1))
    flags = ["--preset", "smoke", "--arch", "pillar", "--data", tmp_path / "games", "--no-export"]
    flags += [f"--set=arch.{size}" for size in ("features=4", "blocks=1", "hidden=8")]
    flags += ["--prepared", tmp_path / "prepared", "--out", tmp_path / "net"]
    printed = in_process("-c", WITH_JAX, *flags)
    assert printed.startswith("fine\n")
    assert "top-1 accuracy against the teacher" in printed
    assert (tmp_path / "net" / "best.keras").is_file()
    assert "jax" in json.loads((tmp_path / "net" / "_run.json").read_text())["versions"]
    assert "finished before" in printed.splitlines()[-1]


def test_the_check_of_an_accelerator_needs_little_and_finds_the_losses_of_the_cpu(tmp_path):
    table = random_examples(300)
    cells = encoding.boards(table.current, table.mask)
    packed.write_labels(cells, table.visits, table.value, tmp_path / "boards", outcome=table.outcome)
    flags = ["--only", "speed", "--archs", "mk4", "--batch-size", 16, "--measure", 0]
    flags += ["--boards", tmp_path / "boards", "--out", tmp_path]
    program = "import runpy, sys; sys.modules |= {'tensorflow': None, 'duckdb': None}; sys.argv = sys.argv[1:]; "
    program += "runpy.run_path(sys.argv[0], run_name='__main__')"
    lines = in_process("-c", program, ROOT / "pipelines" / "gpu_check.py", *flags).splitlines()
    report = json.loads(lines[-1])
    assert report["platform"] == "cpu"
    assert report["differ"] == []
    network = report["networks"]["mk4"]
    assert network["loss"] == pytest.approx(network["loss_on_cpu"], rel=1e-6)
    assert network["boards_per_s"] > 0
    assert json.loads((tmp_path / "speed.json").read_text()) == report

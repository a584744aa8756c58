"""Self-play on an accelerator (`alphazero/on_device.py`, `alphazero/device_games.py`), here on a CPU. Properties:

- openings are playable; the keys of excluded boards are those of the package, and those boards are not learned;
- the labels of a game get its result, discounted and with the right sign, and no other label is touched;
- the loss falls, the average of the weights plays, and `selfplay` resumes after a kill, without TensorFlow.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from distill.alphazero import device_games, on_device
from distill.game import encoding
from distill.game.rules import (
    FULL_BOARD,
    Position,
    are_over,
    canonical_keys,
    canonicalise,
    legal_columns,
    next_position,
)
from distill.mcts import device
from distill.mcts.settings import PuctSettings
from distill.networks import saved

ROOT = Path(__file__).parents[2]
LANES, ROWS, STEPS, SIMULATIONS = 8, 4096, 24, 32
OPENINGS, DISCOUNT = ((0, 3), (0, 12), (4, 16), (8, 30)), 0.98


def uniform(_weights, current, _mask):
    return jnp.zeros((len(current), 7)), jnp.zeros(len(current))


@pytest.fixture(scope="module")
def played():
    """The window after some steps without noise, and before each step the lanes, the labels and the window."""
    settings = PuctSettings(simulations=SIMULATIONS, exploration=1.0, discount=DISCOUNT, sampling_plies=16)
    search = device.DeviceSearch(evaluate=uniform, settings=settings, lanes=LANES, inner=2)
    history = []
    with jax.enable_x64(True):
        window = device_games.new_window(ROWS)
        run = jax.jit(lambda window, lanes, excluded, key: device_games.play_step(
            search, OPENINGS, window, lanes, None, excluded, key, SIMULATIONS, 0.0, 0.0))  # fmt: skip
        find = jax.jit(search)
        lanes = device_games.new_lanes(jax.random.key(1), LANES, OPENINGS)
        lanes = lanes._replace(random_moves=jnp.zeros(LANES, jnp.float32))
        excluded = canonical(np.asarray(lanes.current)[:1], np.asarray(lanes.mask)[:1])
        for step in range(STEPS):
            labels = find(lanes.current, lanes.mask, None)
            history.append(jax.tree.map(np.asarray, (window, lanes, labels)))
            window, lanes = run(window, lanes, excluded, jax.random.key(step))
            lanes = lanes._replace(random_moves=jnp.zeros(LANES, jnp.float32))
    return jax.tree.map(np.asarray, window), history, excluded


def canonical(current, mask):
    own, stones, _ = canonicalise(current, mask)
    return own + stones


def test_labels_get_the_results_of_their_games(played):
    window, history, _ = played
    expected = {}  # by number of the label
    for lane in range(LANES):
        open_labels = []
        for step, (before, lanes, labels) in enumerate(history):
            number, value = int(before.written) + lane, labels.value[lane, 0]
            expected[number] = round(127 * value)
            position = Position(int(lanes.current[lane]), int(lanes.mask[lane]))
            last = step + 1 == len(history)
            follows = not last and any(
                next_position(position, column)
                == Position(int(history[step + 1][1].current[lane]), int(history[step + 1][1].mask[lane]))
                for column in legal_columns(position)
            )
            is_draw = position.mask.bit_count() == 41 and not labels.proven[lane, 0]
            if labels.proven[lane, 0] or is_draw:
                for ago, older in enumerate(reversed(open_labels), start=1):
                    result = 0 if is_draw else value * (-DISCOUNT) ** ago
                    expected[older] = 0.5 * expected[older] + 0.5 * 127 * result
                open_labels = []
            else:
                assert last or follows, "an open game goes on"
                open_labels.append(number)
    assert sum(float(value) != round(float(value)) for value in expected.values()) > LANES, "some games were decided"
    for number, value in expected.items():
        assert abs(int(window.value[number]) - value) <= 1, number


def test_written_labels_are_the_searched_boards_and_their_visits(played):
    window, history, excluded = played
    inner = 0
    for before, lanes, labels in history:
        rows = int(before.written) + np.arange(LANES)
        np.testing.assert_array_equal(window.current[rows], encoding.words(lanes.current))
        np.testing.assert_array_equal(window.mask[rows], encoding.words(lanes.mask))
        shares = labels.visits[:, 0] / labels.visits[:, 0].sum(1, keepdims=True)
        learned = ~np.isin(canonical(lanes.current, lanes.mask), excluded)
        np.testing.assert_allclose(window.policy[rows], np.rint(255 * shares) * learned[:, None], atol=1)
        inner += int(
            ((labels.reached[:, 1:] >= SIMULATIONS // 2) | (labels.proven & (labels.reached > 0))[:, 1:]).sum()
        )
    assert not window.policy[0].any(), "the first board is excluded"
    columns = {name: getattr(window, name) for name in ("current", "mask", "policy", "value")}
    _, targets, weight = on_device.batch_of(columns, np.array([0, 1]), np.array([False, True]))
    assert np.asarray(weight).tolist() == [0, 1]
    np.testing.assert_allclose(np.asarray(targets["logits"]).sum(1), [0, 1], rtol=1e-6)
    np.testing.assert_allclose(targets["logits"][1], window.policy[1, ::-1] / window.policy[1].sum(), rtol=1e-6)
    assert int(window.written) <= LANES * STEPS + inner
    assert int(window.written) > LANES * STEPS + inner // 2


def test_openings_are_playable_and_differ():
    with jax.enable_x64(True):
        current, mask = map(np.asarray, jax.jit(lambda: device_games.openings(jax.random.key(3), 500, OPENINGS))())
        keys = np.asarray(canonical_keys(jnp.asarray(current), jnp.asarray(mask), jnp))
    assert not are_over(current, mask).any()
    assert (mask & ~np.uint64(FULL_BOARD) == 0).all()
    assert (mask == 0).any()
    assert np.bitwise_count(mask).max() > 20
    assert len(np.unique(keys)) > 350
    np.testing.assert_array_equal(keys, canonical(current, mask))


VALUES = "arch.features=4 arch.blocks=1 arch.hidden=8 device_lanes=16 precision=float32 batch_size=32 replay.rows=256"
SET = [f"--set={value}" for value in f"{VALUES} eval_boards=20 ema=0.9".split()]
WORDS = ["--preset", "minutes", "--minutes", "0.2", *SET]  # of both runs, so that JAX compiles their programs once
WITHOUT_TENSORFLOW = "import sys; sys.modules['tensorflow'] = None; "
LEARNS = f"""
{WITHOUT_TENSORFLOW}
import itertools
import keras
import numpy as np
from distill import networks
networks.start_backend()
from distill.alphazero import on_device
from distill.alphazero.iterations import End
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import cli
from distill.training import continual, step
on_device.WINDOW = {ROWS}
keras.utils.set_random_seed(1)
config = cli.parse(SelfPlayConfig, {WORDS}, PRESETS)
core = networks.build(config.arch.name, True, **config.arch.arguments)
learner, clock = continual.begin(core, config.recipe()), itertools.count(0, 0.2)
games = on_device.DevicePlay(learner, config, lambda: next(clock))
games.warm_up()
first = [np.asarray(weight) for weight in step.learned_weights(learner)[0]]
for weight, variable in zip(first, core.trainable_variables, strict=True):
    np.testing.assert_array_equal(weight, np.asarray(variable))

for share in (0.2, 0.4):
    looks = itertools.count()
    metrics = games.iterate(1, End(games=0, at=40, now=lambda: next(looks)), share, [])
    assert metrics["rows"] >= 32 and metrics["steps"] > 10, metrics
losses = [step.fit(learner, games.stream, range(50), lambda _: 0.02)[1]["loss"] for _ in range(4)]
assert losses[-1] < losses[0] - 0.1, losses
averages, values = step.learned_weights(learner)[0], learner.trainable_variables
assert any((np.asarray(a) != np.asarray(v)).any() for a, v in zip(averages, values, strict=True))
print("fine")
"""


ENVIRONMENT = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}


def test_the_loss_falls_and_the_average_plays():
    run = subprocess.run([sys.executable, "-c", LEARNS], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert run.stdout.endswith("fine\n"), run.stderr


def selfplay(out):
    """A process of `selfplay` for a small network, on a device that is a CPU; windows are small."""
    program = f"{WITHOUT_TENSORFLOW}from distill import selfplay; "
    program += f"from distill.alphazero import on_device; on_device.WINDOW = {ROWS}; sys.exit(selfplay.main())"
    command, pipe = [sys.executable, "-c", program, *WORDS, "--out", str(out)], subprocess.PIPE
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True)


def test_selfplay_resumes_after_a_kill_and_leaves_a_curve_and_a_network(tmp_path):
    killed = selfplay(tmp_path)
    while killed.poll() is None and not (tmp_path / "history.csv").exists():
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    printed = "".join(killed.communicate())
    assert killed.returncode == -signal.SIGKILL, printed
    resumed = selfplay(tmp_path)
    printed = "".join(resumed.communicate())
    assert resumed.returncode == 0, printed
    with (tmp_path / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["iteration"]) for row in rows] == [1, 2, 3, 4]
    assert all(float(row["rows"]) >= 16 and float(row["steps"]) > 0 for row in rows)
    record = json.loads((tmp_path / "_run.json").read_text())
    assert "counts" not in record["result"]
    assert saved.load_core(tmp_path / "best.keras").name == "pillar"

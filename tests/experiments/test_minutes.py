"""Self-play in minutes on one device (`experiments/large/minutes.py`), here on a CPU. Properties:

- openings are playable; the keys of excluded boards are those of the package;
- the labels of a game get its result, discounted and with the right sign, and no other label is touched;
- excluded boards are not learned;
- a tiny run lowers its loss, and leaves a curve and a network that loads.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from distill.game.rules import FULL_BOARD, Position, are_over, canonicalise, legal_columns, next_position
from distill.mcts.settings import PuctSettings
from distill.networks import pillar

jax = pytest.importorskip("jax", reason="the extra jax is not installed")
if jax:
    import jax.numpy as jnp

    from distill.mcts import device
    from experiments.large import minutes

ROOT = Path(__file__).parents[2]
LANES, ROWS, STEPS, SIMULATIONS = 8, 4096, 24, 12


def uniform(_weights, current, _mask):
    return jnp.zeros((len(current), 7)), jnp.zeros(len(current))


@pytest.fixture(scope="module")
def played():
    """The window after some steps without noise, and before each step the lanes, the labels and the window."""
    settings = PuctSettings(simulations=SIMULATIONS, exploration=1.0, discount=minutes.DISCOUNT)
    search = device.DeviceSearch(evaluate=uniform, settings=settings, lanes=LANES, inner=2)
    window = minutes.Window(
        jnp.zeros((ROWS, 4), jnp.uint32), jnp.zeros((ROWS, 7), jnp.uint8), jnp.zeros(ROWS, jnp.int8), jnp.int32(0)
    )  # fmt: skip
    history = []
    with jax.enable_x64(True):
        run = jax.jit(lambda window, lanes, excluded, key: minutes.play_step(
            search, excluded, window, lanes, None, key, SIMULATIONS, 0.0, SIMULATIONS // 2, 0.0))  # fmt: skip
        find = jax.jit(search)
        lanes = minutes.new_lanes(1, LANES)._replace(random_moves=jnp.zeros(LANES, jnp.float32))
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
                    result = 0 if is_draw else value * (-minutes.DISCOUNT) ** ago
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
        pairs = np.ascontiguousarray(window.words[rows]).view(np.uint64)
        np.testing.assert_array_equal(pairs[:, 0], lanes.current)
        np.testing.assert_array_equal(pairs[:, 1], lanes.mask)
        shares = labels.visits[:, 0] / labels.visits[:, 0].sum(1, keepdims=True)
        learned = ~np.isin(canonical(lanes.current, lanes.mask), excluded)
        np.testing.assert_allclose(window.policy[rows], np.rint(255 * shares) * learned[:, None], atol=1)
        inner += int(
            ((labels.reached[:, 1:] >= SIMULATIONS // 2) | (labels.proven & (labels.reached > 0))[:, 1:]).sum()
        )
    first_row = window.policy[0]
    assert not first_row.any(), "the first board is excluded"
    assert int(window.written) <= LANES * STEPS + inner
    assert int(window.written) > LANES * STEPS + inner // 2


def test_openings_are_playable_and_differ():
    with jax.enable_x64(True):
        current, mask = map(np.asarray, jax.jit(lambda: minutes.openings(jax.random.key(3), 500))())
        keys = np.asarray(minutes.canonical_keys(jnp.asarray(current), jnp.asarray(mask)))
        known = minutes.is_in(jnp.asarray(keys), jnp.sort(jnp.asarray(keys[:40])))
    assert not are_over(current, mask).any()
    assert (mask & ~np.uint64(FULL_BOARD) == 0).all()
    assert (mask == 0).any()
    assert np.bitwise_count(mask).max() > 20
    assert len(np.unique(keys)) > 350
    np.testing.assert_array_equal(keys, canonical(current, mask))
    np.testing.assert_array_equal(known, np.isin(keys, keys[:40]))


def test_a_tiny_run_lowers_its_loss_and_leaves_a_network(tmp_path):
    flags = "--arch-set features=4 blocks=1 hidden=8 --lanes 16 --simulations 8 8 --precision float32 --window 2000 "
    flags += "--batch-size 32 --iteration 2 2 --iterations 5 --seconds 10000 --out"
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "experiments.large.minutes", *flags.split(), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert float(rows[-1]["policy_divergence"]) < float(rows[0]["policy_divergence"])
    assert int(rows[-1]["boards"]) >= 5 * 16
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["platform"] == "cpu"
    assert record["last"]["steps"] == int(rows[-1]["steps"])
    assert pillar.Lines  # its import registers the layers
    network = keras.models.load_model(tmp_path / "network.keras", compile=False)
    assert all(np.isfinite(weight).all() for weight in network.get_weights())

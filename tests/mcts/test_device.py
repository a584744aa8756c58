"""The search on a device grows the textbook's trees: the same visits, labels, values and proofs, node for node.

For 1,000 positions: DEVICE_POSITIONS=1000 python -m pytest tests/mcts/test_device.py -k textbook
"""

import os

import jax
import numpy as np
import pytest
from helpers import random_positions
from puct_helpers import one_answer

from distill.game.encoding import bitboards_of
from distill.game.rules import COLUMNS, Position
from distill.mcts.puct import PuctSettings
from distill.mcts.reference_puct import expand, gumbel_scores, mix_noise, search, simulate

POSITIONS = int(os.environ.get("DEVICE_POSITIONS", "48"))


def hashed(word):
    """`puct_helpers.hashed` in JAX."""
    word = (word ^ (word >> 31)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> 29)) * np.uint64(0xBF58476D1CE4E5B9)
    return ((word ^ (word >> 32)) & np.uint64(2**53 - 1)).astype(np.float64) / 2**53


def answers(_weights, current, mask):
    """`puct_helpers.one_answer` in JAX."""
    word = current * np.uint64(3) + mask * np.uint64(5)
    shifts = np.arange(0, 1000 * COLUMNS, 1000).astype(np.uint64)
    return 3 * hashed(word[:, None] + shifts), 1.6 * hashed(word + np.uint64(1)) - 0.8


def on_device(positions, settings, *others, inner=0):
    from distill.mcts.device import DeviceSearch

    with jax.enable_x64(True):
        run = jax.jit(DeviceSearch(evaluate=answers, settings=settings, lanes=len(positions), inner=inner))
        return type(found := run(*bitboards_of(positions), None, *others))(*map(np.asarray, found))


def evaluate(position):
    return one_answer(position.current, position.mask)


def grown(position, settings, simulations, gamma=None):
    """The root of the textbook's tree."""
    root = expand(position, evaluate, settings)
    if gamma is not None:
        mix_noise(root, gamma.tolist(), 0.25)
    for _ in range(simulations):
        simulate(root, evaluate, settings)
    return root


@pytest.mark.parametrize(
    "chosen",
    [
        {"exploration": 1.0, "discount": 0.98},
        {"rule": "growing", "exploration": 2.5, "fpu_reduction": None},
    ],
    ids=["constant", "growing"],
)
def test_the_textbook_finds_the_same(chosen):
    settings = PuctSettings(simulations=64, noise_fraction=0.0, sampling_plies=0, **chosen)
    positions = random_positions(POSITIONS, most=35)
    labels = on_device(positions, settings)
    for lane, position in enumerate(positions):
        expected = search(position, [0.0] * COLUMNS, [0.0, 0.0], evaluate, settings)
        assert labels.visits[lane, 0].tolist() == expected.visits, position
        assert labels.label[lane, 0] == expected.label
        np.testing.assert_allclose(labels.value[lane, 0], expected.value, atol=1e-6)
    assert 0 < labels.proven[:, 0].mean() < 1


def test_nodes_below_the_root_have_the_visits_of_the_textbooks_tree():
    settings = PuctSettings(simulations=64, exploration=1.0, discount=0.98, noise_fraction=0.0)
    positions = random_positions(12, most=35)
    labels = on_device(positions, settings, inner=6)
    for lane, position in enumerate(positions):
        nodes, todo = {}, [grown(position, settings, 64)]
        while todo:
            node = todo.pop()
            nodes[node.position] = node
            todo += [child for child in node.children if child]
        for inner in range(1, 7):
            if not labels.reached[lane, inner]:
                continue
            node = nodes[Position(int(labels.current[lane, inner]), int(labels.mask[lane, inner]))]
            assert labels.reached[lane, inner] == sum(node.visits)
            if not labels.proven[lane, inner]:
                assert labels.visits[lane, inner].tolist() == node.visits


def test_noise_fewer_simulations_and_the_improved_policy_are_those_of_the_textbook():
    settings = PuctSettings(simulations=40, exploration=1.0, discount=0.98)
    positions = random_positions(8, most=35)
    gamma = np.random.default_rng(1).exponential(size=(8, COLUMNS))
    labels = on_device(positions, settings, np.int32(24), gamma, 0.25)
    for lane, position in enumerate(positions):
        root = grown(position, settings, 24, gamma[lane])
        if not labels.proven[lane, 0]:
            assert labels.visits[lane, 0].tolist() == root.visits
            root.priors = expand(position, evaluate, settings).priors  # without noise, as a Gumbel root
            odds = {column: np.exp(score) for column, score in gumbel_scores(root, [0.0] * COLUMNS).items()}
            expected = [odds.get(column, 0) / sum(odds.values()) for column in range(COLUMNS)]
            np.testing.assert_allclose(labels.policy[lane, 0], expected, atol=1e-6)

"""A network as a search evaluates it (`networks/evaluator.py`): results are the network's, to the last bit the same in
any batch; it keeps its weights until it takes others, and equal networks have one hash.
"""

from typing import Any

import numpy as np
import pytest
from helpers import REFERENCE, bits, random_positions
from selfplay_helpers import tiny

from distill import networks
from distill.game import encoding, rules
from distill.networks import saved
from distill.networks.evaluator import NetworkEvaluator, weights_hash


def positions(count: int) -> tuple[Any, Any]:
    return bits(*random_positions(count, 0, 12, seed=4))


def test_results_are_the_networks_in_any_batch():
    core = tiny()
    current, mask = positions(150)
    expected = saved.predict_with(core)(encoding.boards(current, mask))
    evaluate = NetworkEvaluator(core)
    for count in (1, 8, 9, 33, 64, 65, 150):
        logits, value = evaluate(current[:count], mask[:count])
        legal = rules.legal_mask(mask[:count])
        np.testing.assert_allclose(logits[legal], expected["logits"][:count][legal], atol=1e-5)
        np.testing.assert_allclose(value, expected["value"][:count], atol=1e-6)


@pytest.mark.parametrize("arch", [*networks.ARCHS, "pillar in bfloat16"])
def test_a_result_does_not_depend_on_its_batch(arch):
    if arch.startswith("pillar in"):
        evaluate = NetworkEvaluator(core := saved.load_core(REFERENCE / "pillar" / "best.keras"), "bfloat16")
        full, near = NetworkEvaluator(core)(*positions(40)), evaluate(*positions(40))
        assert near[0].dtype == np.float32
        assert 0 < np.abs(full[0] - near[0]).max() < 1
        assert np.abs(full[1] - near[1]).max() < 0.2
    else:
        core, rng = networks.build(arch, True), np.random.default_rng(0)
        core.set_weights([rng.normal(0, 0.05, weight.shape) for weight in core.get_weights()])  # none of them zeros
        evaluate = NetworkEvaluator(core)
    current, mask = positions(256)
    logits, value = evaluate(current, mask)
    for number in (1, 5, 30, 110, 256):
        chosen = np.random.default_rng(number).choice(256, number, replace=False)
        again = evaluate(current[chosen], mask[chosen])
        np.testing.assert_array_equal(again[0], logits[chosen])
        np.testing.assert_array_equal(again[1], value[chosen])


def test_the_evaluator_keeps_its_weights_until_it_takes_others():
    one, other = tiny(), tiny()
    current, mask = positions(5)
    evaluate = NetworkEvaluator(one)
    before = evaluate(current, mask)[1]
    expected = NetworkEvaluator(other)(current, mask)[1]
    name = weights_hash(one)
    one.set_weights(other.get_weights())
    assert weights_hash(one) == weights_hash(other) != name
    assert np.array_equal(evaluate(current, mask)[1], before)
    evaluate.take_weights(one)
    assert np.array_equal(evaluate(current, mask)[1], expected)

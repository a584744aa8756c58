"""What a network or a player returns (`game/outputs.py`): sound outputs pass unchanged, a wrong one is one line.

The line says on how many boards and names the nearest source (`test_evaluator`, `test_puct`: of an evaluator).
"""

import pickle
from typing import Any

import numpy as np
import pytest
from helpers import bits

from distill.common import OutputError
from distill.game import encoding, outputs, rules

FULL_LEFT = rules.from_moves("111111")
FULL = rules.Position(0, rules.FULL_BOARD)
POSITIONS = (rules.EMPTY, FULL_LEFT)
WRONG_POLICY = "a probability that is NaN, outside [0, 1] or of a full column"
NAN, INFINITE = np.float32("nan"), np.float32("inf")


def sound() -> dict[str, np.ndarray]:
    """A network's outputs on the empty board, one with a full column, and a full board."""
    logits = np.array([[0, 1, 2, 3, 2, 1, 0]] * 3, np.float32)
    logits[1, 0] = logits[2, :] = -1e9
    policy = np.exp(logits - logits.max(1, keepdims=True))
    policy[2] = 0
    policy /= np.maximum(policy.sum(1, keepdims=True), 1)
    return {
        "logits": logits,
        "policy": policy,
        "move": np.array([3, 3, -1], np.int32),
        "value": np.array([1.0000001, -1.0000001, 0], np.float32),
    }


def boards() -> np.ndarray:
    full = np.where(np.add.outer(np.arange(6) // 2, np.arange(7)) % 2, 1, -1)
    return np.concatenate([encoding.boards(*bits(*POSITIONS)), full[None].astype(np.int8)])


def test_sound_outputs_pass_unchanged():
    given = sound()
    found = outputs.network(given | {"more": np.zeros(5)}, boards())
    assert list(found) == ["logits", "policy", "move", "value"]
    assert all(found[name] is given[name] for name in found)
    assert list(outputs.network({name: given[name] for name in ("logits", "policy", "move")}, boards())) == [
        "logits", "policy", "move"
    ]  # fmt: skip
    _, mask = bits(*POSITIONS)
    logits, value = given["logits"][:2], given["value"][:2]
    assert outputs.evaluation((logits, value), mask) == (pytest.approx(logits), pytest.approx(value))
    for unused in (NAN, INFINITE, -INFINITE):  # on a full column any logit will do
        logits[1, 0] = unused
        np.testing.assert_array_equal(outputs.evaluation([logits.astype(np.float64), value], mask)[0], logits)
    logits[0, :6] = -INFINITE  # a probability of 0
    outputs.evaluation((logits, value), mask)


def changed(name: str, place: Any, value: Any) -> dict[str, Any]:
    given = sound()
    given[name] = given[name].copy()
    given[name][place] = value
    return given


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (changed("logits", (0, 2), NAN), "returned a logit that is NaN or infinite on 1 of 3 boards"),
        (changed("logits", (1, 2), INFINITE), "returned a logit that is NaN or infinite on 1 of 3 boards"),
        (changed("logits", 1, -INFINITE), "returned no finite logit for a legal column on 1 of 3 boards"),
        (changed("policy", (0, 1), NAN), f"returned {WRONG_POLICY} on 1 of 3 boards"),
        (changed("policy", (1, 0), 1e-6), f"returned {WRONG_POLICY} on 1 of 3 boards"),
        (changed("policy", slice(2), 0), "returned a policy that does not sum to 1 on 2 of 3 boards"),
        (changed("move", 1, 0), "returned an illegal move on 1 of 3 boards"),
        (changed("value", 0, NAN), "returned a value outside [-1, 1] on 1 of 3 boards"),
        (changed("value", slice(2), 1.1), "returned a value outside [-1, 1] on 2 of 3 boards"),
        (sound() | {"logits": np.zeros((3, 6), np.float32)}, "returned logits of shape (3, 6), not (3, 7)"),
        (sound() | {"logits": np.zeros((3, 7), np.int64)}, "returned logits of type int64, not floating-point numbers"),
        (sound() | {"move": [1, [2], 3]}, "returned moves that NumPy cannot convert (setting an array element with a"),
    ],
)
def test_a_wrong_output_of_a_network_is_one_line(given, line):
    with pytest.raises(OutputError) as caught:
        outputs.network(given, boards())
    assert str(caught.value).startswith(f"the network {line}")


def test_the_nearest_source_is_named_and_the_line_can_be_pickled():
    with pytest.raises(OutputError) as caught, outputs.named("the player"), outputs.named("models/a"):
        raise OutputError("returned nothing")
    assert str(pickle.loads(pickle.dumps(caught.value))) == "models/a: returned nothing"

"""The networks: parameter counts of their sources, mirrored answers to mirrored boards, no move into a full column, and
inputs that are what the encoding and the rules say.
"""

import itertools

import keras
import numpy as np
import pytest
from network_helpers import (
    LEFT_COLUMN_FULL,
    answering,
    arrays,
    boards_of,
    played_boards,
    policy_of,
    same,
    shrink,
    with_random_weights,
)

from distill import networks
from distill.common import UserError
from distill.game import encoding, rules
from distill.networks import heads, pillar, saved
from distill.networks.registry import Architecture

PARAMETERS = {
    "pillar-plain": 182_087, "pillar": 184_103, "pillar-large": 1_171_399, "cnn": 192_505,
    "transformer": 137_351, "mk4": 323_527, "resnet": 470_216,
}  # fmt: skip
"""As published (all three of `pillar` are our own), counted by Keras, moving statistics of batch norm included."""


@pytest.mark.parametrize(("arch", "count"), PARAMETERS.items())
def test_a_network_has_its_number_of_parameters_and_is_the_same_rebuilt_from_its_config(arch, count, monkeypatch):
    assert networks.build(arch).count_params() == count
    shrink(monkeypatch.setattr)
    assert heads.has_value(networks.build(arch)) == (arch == "resnet"), "only that one has it by itself"
    weights = [keras.utils.set_random_seed(seed) or networks.build(arch).get_weights() for seed in (1, 1, 2)]
    assert same(weights[0], weights[1])
    assert not same(weights[0], weights[2])
    core = with_random_weights(networks.build(arch, value_head=True))
    assert len({layer.name for layer in core.layers}) == len(core.layers)
    twin = keras.Model.from_config(core.get_config())
    twin.set_weights(core.get_weights())
    expected, outputs = (arrays(heads.played(network)(played_boards(5))) for network in (core, twin))
    assert {name: array.shape for name, array in expected.items()} == {"logits": (5, 7), "value": (5,)}
    assert np.all(np.abs(expected["value"]) < 1)
    assert len(set(expected["value"])) > 1
    for name in expected:
        np.testing.assert_array_equal(expected[name], outputs[name])


def test_a_new_mk4_with_pytorchs_weights_has_the_entropy_of_the_source():
    boards, dense = played_boards(300), "experiments.dense:build"

    def entropy(arch: str, initializer: str) -> float:
        keras.utils.set_random_seed(1)
        policy = policy_of(networks.build(arch, initializer=initializer), boards)
        return float(-(policy * np.log(np.maximum(policy, 1e-12))).sum(1).mean())

    assert entropy("mk4", "keras") < 1.76
    assert 1.80 < entropy("mk4", "pytorch") < 1.90
    assert entropy(dense, "keras") < entropy(dense, "pytorch")
    weights = networks.build(dense).get_weights()  # PyTorch's by default: kernel, bias, …
    for kernel, bias in zip(weights[::2], weights[1::2], strict=True):
        bound = len(kernel) ** -0.5
        assert 0.9 * bound < np.abs(kernel).max() <= bound
        assert 0 < np.abs(bias).max() <= bound
    with pytest.raises(UserError, match="initializer torch is neither keras nor pytorch"):
        networks.build("mk4", initializer="torch")


@pytest.mark.parametrize("arch", ["pillar-plain", "pillar", "pillar-large"])
def test_our_own_networks_answer_a_mirrored_board_with_mirrored_logits(arch):
    core = with_random_weights(networks.build(arch, value_head=True))
    boards = played_boards(64)
    outputs, mirrored = (arrays(heads.served(core)(b)) for b in (boards, boards[:, :, ::-1]))
    # Sums in another order differ in the last bits, no more.
    np.testing.assert_allclose(mirrored["policy"][:, ::-1], outputs["policy"], atol=1e-5)
    np.testing.assert_allclose(mirrored["value"], outputs["value"], atol=1e-5)
    # And left is not right: on a lopsided board the logits themselves are no mirror image.
    lopsided = outputs["logits"][3:]
    assert np.abs(lopsided - lopsided[:, ::-1]).max() > 0.01


def test_ties_go_to_the_centre_and_then_to_the_lower_column_and_a_full_board_has_no_move():
    empty = np.zeros((1, 6, 7), np.int8)
    full = np.where(np.add.outer(np.arange(6) // 2, np.arange(7)) % 2, 1, -1).astype(np.int8)[None]
    lower = {(0,) * 7: 3, (1, 1, 1, 0, 1, 1, 1): 2, (1, 0, 0, 0, 0, 1, 1): 5, (1, 0, 0, 0, 0, 0, 1): 0}
    for logits, move in lower.items():
        assert arrays(answering([*logits])(empty))["move"].tolist() == [move]
    for board, move in ((boards_of(LEFT_COLUMN_FULL), 4), (full, -1)):
        outputs = arrays(answering([9, 0, 0, 0, 1, 0, 0])(board))
        assert (outputs["logits"][0, 0], outputs["policy"][0, 0]) == (np.float32(-1e9), 0)
        assert outputs["move"].tolist() == [move]
        assert outputs["policy"].sum() == pytest.approx(float(move != -1))
    # A runtime may round a value beyond its range.
    for value, served in ((1.0000001, 1.0), (-1.0000001, -1.0), (0.5, 0.5)):
        assert arrays(answering([0] * 7, value)(full))["value"].tolist() == [served]


@pytest.mark.parametrize(
    ("arch", "encoded", "dtype"),
    [
        ("cnn", lambda boards: encoding.planes(boards, 2), np.float32),
        ("mk4", lambda boards: encoding.planes(boards, 3), np.float32),
        ("transformer", encoding.tokens, np.int32),
    ],
)
def test_what_the_graph_sees_is_the_encoding(arch, encoded, dtype):
    boards = played_boards(30)
    inputs = keras.ops.convert_to_numpy(heads.encode(networks.build(arch), boards))
    assert inputs.dtype == dtype
    np.testing.assert_array_equal(inputs, encoded(boards))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_lines_are_what_the_rules_say_of_every_cell(precision):
    """Against the 69 lines of the board and a look for four in a row, cell by cell."""
    boards = played_boards(60)
    lines = [
        [(row + down * step, column + right * step) for step in range(4)]
        for row, column, (down, right) in itertools.product(range(6), range(7), ((0, 1), (1, 0), (1, 1), (1, -1)))
        if row + 3 * down < 6 and 0 <= column + 3 * right < 7
    ]
    assert len(lines) == 69
    planes = np.stack([boards == 1, boards == -1], axis=-1).astype(np.float32)
    features = keras.ops.convert_to_numpy(keras.ops.cast(pillar.Lines(dtype=precision)(planes), "float32"))
    assert features.shape == (60, 6, 7, 9)
    np.testing.assert_array_equal(features[..., :2], planes)
    current, mask = encoding.bitboards(boards)
    for board, seen, *sides in zip(boards, features, current, current ^ mask, strict=True):
        second = np.count_nonzero(board) % 2
        assert (seen[..., 4] == second).all()
        for row, column in itertools.product(range(6), range(7)):
            empty = board[row, column] == 0
            playable = empty and (row == 5 or board[row + 1, column] != 0)
            number = 6 - row  # of rows, from 1 at the bottom: the side that begins fills the odd ones
            assert seen[row, column, 2] == playable
            assert seen[row, column, 3] == (number % 2 != second)
            vertical = [(row + step, column) for step in range(4)]  # the one that ends here
            through = [
                line for line in lines if (row, column) in line and (line == vertical or line[1][1] != line[0][1])
            ]
            for side, (sign, stones) in enumerate(zip((1, -1), sides, strict=True)):
                cell = 1 << (7 * column + 5 - row)
                assert seen[row, column, 5 + side] == (empty and bool(rules.has_four(int(stones) | cell)))
                held = [[board[other] * sign for other in line if other != (row, column)] for line in through]
                open_lines = sum(sum(stones) >= 2 and min(stones) >= 0 for stones in held)
                assert seen[row, column, 7 + side] == (open_lines / 4 if empty else 0)
    assert features.any(axis=(0, 1, 2)).all(), "every plane was 1 somewhere"


@pytest.mark.parametrize(
    ("arch", "arguments"), [("transformer", {"layers": 2, "features": 32}), ("cnn", {"filters": 16})]
)
def test_widths_and_depths_are_arguments_that_a_file_keeps(arch, arguments, tmp_path):
    core = networks.build(arch, value_head=True, **arguments)
    assert core.count_params() < networks.build(arch, value_head=True).count_params()
    saved.save_network(core, tmp_path / "small.keras")
    assert saved.load_core(tmp_path / "small.keras").count_params() == core.count_params()
    with pytest.raises(ModuleNotFoundError, match=r"distill\.networks\.gpt"):
        networks.build("gpt")
    with pytest.raises(UserError, match=f"--arch {arch}: TypeError: .* argument 'depth'"):
        networks.build(arch, depth=3)


def test_a_value_head_is_no_argument_of_a_network():
    with pytest.raises(ValueError, match=r"--set arch\.value_head: the value target decides"):
        Architecture(name="cnn", value_head=True)

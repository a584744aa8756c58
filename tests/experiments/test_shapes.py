"""The architectures of the study. Properties:

- each has the parameters that its module states; comparable ones are equal within 1 %, candidates at most the CNN's;
- they are built by name, with and without a value head; copies compute in bfloat16;
- mirrored ones answer a mirrored board with mirrored logits and the same value; the flat one does not;
- the trunk of a variant is that of `pillar`, weight by weight;
- a saved one is read back and answers the same; training steps use a copy with the same weights;
- `train` does not list them, the study's command does;
- the planes of threats follow the rules.
"""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
from network_helpers import arrays, played_boards, same, with_random_weights

from distill import networks, train
from distill.common import cli
from distill.game import encoding, rules
from distill.networks import finding, heads, saved
from distill.networks.copies import copy
from distill.networks.cpu_kernels.fast_copy import fast_copy
from experiments.study import CANDIDATES, SHAPES, candidates, shapes
from experiments.study import train as study_train

MIRRORED = ("column-pooled", "column-shared", "column-threats", "column-looped", "column-deep", "column-wide")
BOARDS = played_boards(16)
TRUNK = ("stem", "block1_conv1", "block1_conv2", "block3_conv2", "columns")


@functools.cache
def made(shape: str) -> keras.Model:
    """A network with a value head, shared by the tests."""
    return with_random_weights(shapes.build(shape, value_head=True))


@functools.cache
def answered(shape: str) -> dict[str, np.ndarray]:
    """Its outputs on `BOARDS`."""
    return arrays(heads.served(made(shape))(BOARDS))


@pytest.mark.parametrize("shape", [*SHAPES, *CANDIDATES])
def test_a_shape_has_the_size_that_its_module_states(shape):
    core, stated = (shapes.build(shape), shapes) if shape in SHAPES else (made(shape), candidates)
    assert f"{core.count_params():,}" in (stated.__doc__ or "")
    assert core.name == shape
    assert heads.has_value(core) == (shape in CANDIDATES)
    if shape in CANDIDATES:
        assert (core.count_params() <= networks.build("cnn").count_params()) == (shape != "wide-lines")


@pytest.mark.parametrize("shape", ["column-pooled", "column-shared"])
def test_another_head_keeps_the_size_and_the_trunk(shape):
    core, column = shapes.build(shape), networks.build("pillar")
    assert core.count_params() == pytest.approx(column.count_params(), rel=0.01)
    for name in TRUNK:
        assert [w.shape for w in core.get_layer(name).weights] == [w.shape for w in column.get_layer(name).weights]


def test_a_looped_trunk_has_the_weights_of_pillar_and_other_outputs():
    looped, column = with_random_weights(shapes.build("column-looped")), networks.build("pillar")
    column.set_weights(looped.get_weights())
    boards = played_boards(8)
    answers = [arrays(heads.played(core)(boards))["logits"] for core in (looped, column)]
    assert np.abs(answers[0] - answers[1]).max() > 1e-3


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_outputs_logits_and_a_value_that_depend_on_the_board(shape):
    outputs = answered(shape)
    assert outputs["logits"].shape == (16, 7)
    assert outputs["value"].shape == (16,)
    assert np.all(np.abs(outputs["value"]) < 1)
    assert np.ptp(outputs["policy"], axis=0).max() > 1e-4


@pytest.mark.parametrize("shape", [*MIRRORED, *CANDIDATES, "flat"])
def test_a_mirrored_board_gets_mirrored_outputs_from_all_but_the_flat_shape(shape):
    outputs, mirrored = answered(shape), arrays(heads.served(made(shape))(BOARDS[:, :, ::-1]))
    if shape == "flat":
        assert np.abs(mirrored["policy"][:, ::-1] - outputs["policy"]).max() > 1e-3
        return
    # Sums in another order differ in the last bits only.
    np.testing.assert_allclose(mirrored["policy"][:, ::-1], outputs["policy"], atol=1e-5)
    np.testing.assert_allclose(mirrored["value"], outputs["value"], atol=1e-5)
    lopsided = outputs["logits"][3:]
    assert np.abs(lopsided - lopsided[:, ::-1]).max() > 1e-3, "left differs from right"


@pytest.mark.parametrize("shape", ["column-shared", "transformer-columns", *CANDIDATES])
def test_a_saved_shape_is_read_back_and_runs_in_bfloat16_with_the_same_weights(shape, tmp_path):
    core, expected = made(shape), answered(shape)["logits"]
    core.save(tmp_path / finding.BEST)
    again = arrays(heads.served(saved.load_core(tmp_path / finding.BEST))(BOARDS))["logits"]
    np.testing.assert_array_equal(again, expected)
    coarse = copy(core, "bfloat16")
    legal = expected > -1e8
    found = arrays(heads.served(coarse)(BOARDS))["logits"]
    np.testing.assert_allclose(found[legal], expected[legal], atol=0.2)  # 8 bits of mantissa, some ten layers


def test_the_planes_of_threats_are_what_one_stone_would_complete():
    """By the rules: a stone on each empty cell, floating or not, completes four or not."""
    boards = played_boards(40)
    planes = np.stack([boards == 1, boards == -1], axis=-1).astype(np.float32)
    found = np.asarray(shapes.Threats()(planes))
    current, mask = encoding.bitboards(boards)
    for board, threats, *sides in zip(boards, found, current, current ^ mask, strict=True):
        for side, own in enumerate(sides):
            for row, column in np.ndindex(6, 7):
                cell = 1 << (7 * column + 5 - row)
                completes = not board[row, column] and bool(rules.has_four(int(own) | cell))
                assert threats[row, column, side] == completes
    assert found.any(axis=(0, 1, 2)).all(), "both sides had threats"


def test_the_steps_of_a_run_in_bfloat16_go_to_a_shape_of_the_same_weights():
    core = with_random_weights(shapes.build("column-threats"))
    trained = fast_copy(core, "bfloat16")
    assert trained.get_layer("stem").compute_dtype == "bfloat16"
    assert same(trained.get_weights(), core.get_weights())


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_the_steps_of_a_candidate_in_float32_go_to_a_form_that_answers_as_it_does(candidate):
    trained = fast_copy(made(candidate))
    expected, found = answered(candidate), arrays(heads.served(trained)(BOARDS))
    for name in ("logits", "value"):
        np.testing.assert_allclose(found[name], expected[name], atol=2e-4)


@pytest.mark.parametrize("shape", [*SHAPES, *CANDIDATES])
def test_the_studys_own_command_takes_a_shape_that_train_does_not_list(shape, capsys):
    flags = ["--arch", shape]
    assert cli.parse(study_train.StudyTrainConfig, flags, train.PRESETS).arch == shape
    with pytest.raises(SystemExit):
        cli.parse(train.TrainConfig, flags, train.PRESETS)
    assert f"--arch {shape} must be one of" in capsys.readouterr().err

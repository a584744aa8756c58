"""The architectures of the study. Properties:

- each has the parameters that its module states, so has the dense network; candidates have at most the CNN's;
- mirrored ones answer a mirrored board with mirrored logits and the same value; the flat one does not;
- `train` does not list them, the study's command does.
"""

import functools

import keras
import numpy as np
import pytest
from network_helpers import arrays, played_boards, with_random_weights

from distill import networks, reinforce, train
from distill.common import cli
from distill.networks import heads
from experiments import dense
from experiments.study import CANDIDATES, SHAPES, candidates, shapes
from experiments.study import train as study_train

MIRRORED = ("column-pooled", "column-shared", "column-threats", "column-looped", "column-deep", "column-wide")
BOARDS = played_boards(16)


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


@pytest.mark.parametrize("shape", [*SHAPES, *CANDIDATES])
def test_the_studys_own_command_takes_a_shape_that_train_does_not_list(shape, capsys):
    flags = ["--arch", shape]
    assert cli.parse(study_train.StudyTrainConfig, flags, train.PRESETS).arch.name == shape
    with pytest.raises(SystemExit):
        cli.parse(train.TrainConfig, flags, train.PRESETS)
    assert f"--arch {shape} must be one of" in capsys.readouterr().err


def test_the_dense_network_tells_the_sides_apart_and_trains_by_reinforce(tmp_path):
    core = dense.build()
    assert core.count_params() == 14_215
    turned = heads.served(core)(-BOARDS)["logits"]
    assert not np.allclose(turned, heads.served(core)(BOARDS)["logits"])
    words = ["--preset", "smoke", "--arch", "experiments.dense:build", "--out", str(tmp_path / "run")]
    assert reinforce.main(words) == 0

"""The Kaggle submission (`exporters/submission.py`): one file that computes the network's outputs in NumPy, whatever
its sizes, and with tactics wins or blocks first.
"""

import runpy

import keras
import numpy as np
import pytest
from helpers import REFERENCE
from network_helpers import with_random_weights

from distill import networks
from distill.common import UserError
from distill.exporters import conversion, formats
from distill.game import encoding, rules
from distill.networks import saved


def write(core, path):
    formats.write_kaggle(core, path)
    return runpy.run_path(str(path))


def observed(position, mark):
    """Kaggle's observation of a position in which the side with this mark is to move."""
    board = encoding.board(position)
    return {"board": np.where(board == 0, 0, np.where(board == 1, mark, 3 - mark)).ravel().tolist(), "mark": mark}


@pytest.mark.parametrize("name", ["pillar", "cnn", "transformer"])
def test_it_plays_the_moves_of_the_network(tmp_path, name):
    core, boards = saved.load_core(REFERENCE / name / "best.keras"), conversion.check_boards()
    expected, outputs = saved.predict_with(core)(boards), write(core, tmp_path / "submission.py")["predict"](boards)
    for row in np.flatnonzero(outputs["move"] != expected["move"]):  # rounding chooses between mirror images
        assert (boards[row] == boards[row, :, ::-1]).all()
        assert outputs["move"][row] == 6 - expected["move"][row]
    assert conversion.largest_difference(expected, outputs) <= conversion.TOLERANCE
    assert (tmp_path / "submission.py").stat().st_size < 1_000_000


SIZES = {
    "cnn": {"stages": 2, "filters": 8, "kernel": 3, "hidden": 8},
    "transformer": {"layers": 11, "features": 8, "attention_heads": 2, "feed_forward": 8},
    "pillar": {"features": 4, "blocks": 2, "hidden": 8},
}


@pytest.mark.parametrize("arch", SIZES)
def test_other_sizes_are_read_from_the_weights(tmp_path, arch):
    keras.utils.set_random_seed(1)
    core = with_random_weights(networks.build(arch, value_head=True, **SIZES[arch]))
    boards = conversion.check_boards()
    outputs = write(core, tmp_path / "submission.py")["predict"](boards)
    assert conversion.largest_difference(saved.predict_with(core)(boards), outputs) <= conversion.TOLERANCE


def test_kaggle_calls_the_agent_which_plays_from_either_seat(tmp_path):
    program, file = {}, tmp_path / "submission.py"
    formats.write_kaggle(saved.load_core(REFERENCE / "pillar" / "best.keras"), file)
    exec(compile(file.read_text(), file.name, "exec"), program)
    assert [value for value in program.values() if callable(value)][-1] is program["agent"]
    for moves, mark in (("", 1), ("4", 2), ("4453", 1), ("44533", 2)):
        position = rules.from_moves(moves)
        column = program["agent"](observed(position, mark), {"rows": 6})
        assert type(column) is int
        assert column == program["predict"](encoding.board(position)[None])["move"][0]


def test_with_tactics_it_wins_or_else_blocks_or_else_plays_as_without(tmp_path):
    core = saved.load_core(REFERENCE / "cnn" / "best.keras")
    core.set_weights([weight * 0 for weight in core.get_weights()])  # always the centre
    plain, file = write(core, tmp_path / "submission.py")["agent"], tmp_path / "submission.py"
    file.write_text(file.read_text().replace("TACTICS = False", "TACTICS = True"))
    tactical = runpy.run_path(str(file))["agent"]
    for moves, mark, column in (
        ("112233", 1, 3),
        ("11223", 2, 3),
        ("1212177", 2, 0),
        ("121217", 1, 0),
        ("77665", 2, 3),
    ):
        assert tactical(observed(rules.from_moves(moves), mark)) == column
    assert plain(observed(rules.from_moves("121217"), 1)) == 3 == tactical(observed(rules.from_moves("12"), 1))


def test_other_networks_are_one_line(tmp_path):
    with pytest.raises(UserError, match="Kaggle: no NumPy program for mk4; there is one for cnn, transformer, pillar"):
        write(networks.build("mk4"), tmp_path / "submission.py")
    with pytest.raises(UserError, match=r"Kaggle: the network is too large: .* bytes, of 1,000,000 at most"):
        write(saved.load_core(REFERENCE / "pillar-large" / "best.keras"), tmp_path / "submission.py")

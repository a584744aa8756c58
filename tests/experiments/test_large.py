"""Larger networks. Properties: parameters as the table says; a saved network is the same; a relation has one bias."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from network_helpers import arrays, played_boards, with_random_weights

from distill.networks import heads, saved
from experiments.large import shapes


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_parameters_are_those_of_the_table(name: str) -> None:
    assert f" {shapes.build(name).count_params():,}\n" in f"{shapes.__doc__}"


def test_a_saved_network_is_the_same(tmp_path: Path) -> None:
    core = with_random_weights(shapes.build("attention"))
    core.save(tmp_path / "best.keras")
    boards = played_boards(20)
    found, expected = (arrays(heads.played(each)(boards)) for each in (saved.load_core(tmp_path / "best.keras"), core))
    for output in expected:
        np.testing.assert_array_equal(found[output], expected[output])


def test_pairs_of_cells_share_a_bias_where_they_are_as_far_apart() -> None:
    relation = shapes.relation_of_cells()
    assert len(np.unique(relation)) == 11 * 13
    corner, step_right, step_down = 0, 1, 7
    assert relation[corner, corner + step_right] == relation[30, 30 + step_right]
    assert relation[corner, corner + step_down] == relation[10, 10 + step_down]
    assert relation[corner, corner + step_right] != relation[corner + step_right, corner]

"""What `distill` offers to a program. Properties:

- every name of PUBLIC is there, with the docstring of what it is, and type checkers know the same names;
- importing `distill` alone loads neither NumPy nor Keras;
- a name that is not there is an AttributeError, as of any module.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import distill


@pytest.mark.parametrize("name", distill.PUBLIC)
def test_a_public_name_can_be_imported_and_says_what_it_is(name):
    assert getattr(distill, name).__doc__
    assert name in dir(distill)


def test_type_checkers_know_the_same_names():
    stub = Path(distill.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    listed = re.findall(r"^from (\S+) import (\w+) as (\w+)$", stub, re.MULTILINE)
    assert {name: f"{module}:{attribute}" for module, attribute, name in listed} == distill.PUBLIC
    assert Path(distill.__file__).with_name("py.typed").is_file()


def test_importing_distill_loads_neither_numpy_nor_keras():
    code = "import sys, distill; print(sorted({'numpy', 'keras', 'tensorflow', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'distill' has no attribute 'train_networks'"):
        _ = distill.train_networks
    with pytest.raises(ImportError):
        exec("from distill import train_networks")


def test_a_board_comes_from_moves_and_from_a_drawing():
    position = distill.from_moves("445")
    assert distill.parse_board(distill.draw(position)) == position
    np.testing.assert_array_equal(distill.board(position)[-1], [0, 0, 0, -1, -1, 0, 0])
    np.testing.assert_array_equal(distill.board(position)[-2], [0, 0, 0, 1, 0, 0, 0])

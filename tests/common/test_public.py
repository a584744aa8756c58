"""What `distill` offers to a program: names with docstrings, and a fast `import distill`."""

import subprocess
import sys

import pytest

import distill


@pytest.mark.parametrize("name", distill.PUBLIC)
def test_a_public_name_can_be_imported_and_says_what_it_is(name):
    assert getattr(distill, name).__doc__
    assert name in dir(distill)


def test_importing_distill_loads_neither_numpy_nor_keras():
    code = "import sys, distill; print(sorted({'numpy', 'keras', 'tensorflow', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"

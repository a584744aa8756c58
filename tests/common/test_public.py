"""What `distill` offers to a program: names with docstrings that type checkers know, and a fast `import distill`."""

import re
import subprocess
import sys
from pathlib import Path

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

"""Pictures. Properties:

- they are the same whatever backend and matplotlibrc the user has, and these stay as they are;
- one that cannot be drawn is one line, once; an older one of that name is removed, and the run goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distill.common.pictures import picture

DRAWS = """
from pathlib import Path
from distill.evaluation import plots
from distill.players.intervals import Estimate
plots.plot_blunders(Path("picture.png"), {"random": {8: Estimate(mean=0.5, low=0.4, high=0.6, units=9)}})
import matplotlib
print(matplotlib.rcParams["text.usetex"])
"""
LEFT_OVER = {
    "usetex": ("module://matplotlib_inline.nowhere", "text.usetex: True\n"),
    "dark": ("svg", "axes.facecolor: black\n"),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The picture under Matplotlib's own settings."""
    folder = tmp_path_factory.mktemp("plain")
    drawn(folder, MPLBACKEND="")
    return (folder / "picture.png").read_bytes()


def drawn(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A picture in a folder, drawn by a process that finds such variables."""
    done = subprocess.run(
        [sys.executable, "-c", DRAWS], cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done


@pytest.mark.parametrize("case", LEFT_OVER)
def test_a_users_backend_and_matplotlibrc_change_no_picture(case, expected, tmp_path):
    backend, settings = LEFT_OVER[case]
    (tmp_path / "matplotlibrc").write_text(settings, encoding="utf-8")
    done = drawn(tmp_path, MPLBACKEND=backend)
    assert (tmp_path / "picture.png").read_bytes() == expected
    assert done.stdout.strip() == str("usetex" in settings), "the user's own settings are gone"


def test_a_picture_that_cannot_be_drawn_is_one_line_once(tmp_path, capsys):
    @picture
    def draw(path: Path, fail: bool) -> None:
        if fail:
            raise RuntimeError("no fonts\nin many lines")
        path.write_bytes(b"drawn")

    file = tmp_path / "curves.png"
    draw(file, False)
    assert file.read_bytes() == b"drawn"
    for _ in range(2):
        draw(file, True)
    assert not file.exists()
    assert capsys.readouterr().err == f"{file}: not drawn (RuntimeError: no fonts); the run continues\n"

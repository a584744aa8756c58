"""Pictures. Properties:

- they are the same whatever backend and matplotlibrc the user has, and these stay as they are;
- one that cannot be drawn is one line, once; an older one of that name is removed, and the run goes on.
"""

import os
import subprocess
import sys
from pathlib import Path

from distill.common.pictures import picture

DRAWS = """
from pathlib import Path
from distill.evaluation import report
from distill.evaluation.grading import Summary
from distill.players.intervals import share
sets = {"midgame": {"optimal": share([0.5, 1]), "outcome": share([1, 1])}}
report.plot(Path("picture.png"), [Summary(name="mine", sets=sets, mirrored_moves=None, empty_move=3)])
import matplotlib
print(matplotlib.rcParams["text.usetex"])
"""


def test_a_users_backend_and_matplotlibrc_change_no_picture(tmp_path):
    cases = {"": "", "module://matplotlib_inline.nowhere": "text.usetex: True\n", "svg": "axes.facecolor: black\n"}
    drawn = set()
    for backend, settings in cases.items():
        (tmp_path / "matplotlibrc").write_text(settings, encoding="utf-8")
        environment = os.environ | {"MPLBACKEND": backend}
        command = [sys.executable, "-c", DRAWS]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip() == str("usetex" in settings), "the user's own settings are gone"
        drawn.add((tmp_path / "picture.png").read_bytes())
    assert len(drawn) == 1


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

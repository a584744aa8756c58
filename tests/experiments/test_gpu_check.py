"""The parts of `pipelines/gpu_check.py`, with small commands in place of the long ones. Properties:

- a part's result is the JSON of its last line; its files are copied while it runs;
- a part that takes too long is stopped, and its status says so;
- a level is passed in the first row in which every rate is above it.
"""

import argparse
import os
import runpy
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "pipelines" / "gpu_check.py"


@pytest.fixture
def check(monkeypatch):
    """What the script defines."""
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "tensorflow"))
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def options(tmp_path):
    (tmp_path / "work" / "rounds").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    return argparse.Namespace(work=tmp_path / "work", out=tmp_path / "out")


def test_the_result_is_the_json_of_the_last_line_and_files_are_copied_meanwhile(check, options):
    program = f"""
import time
from pathlib import Path
Path({str(options.work)!r}, "rounds", "rounds.jsonl").write_text("1")
print("written", flush=True)
while not Path({str(options.out)!r}, "rounds.jsonl").exists():
    time.sleep(0.05)
print('{{"best": [3, 4]}}')
"""
    assert check["run_until"](["-c", program], 60, options) == (0, {"best": [3, 4]})
    assert (options.out / "rounds.jsonl").read_text() == "1"
    assert [path.name for path in options.out.iterdir()] == ["rounds.jsonl"]


def test_a_part_that_fails_has_its_status(check, options):
    assert check["run_until"](["-c", 'raise SystemExit("no boards")'], 60, options)[0] == 1


def test_a_part_is_stopped_after_its_time(check, options, capfd):
    began = time.monotonic()
    status, last = check["run_until"](["-c", "import time; print('begun', flush=True); time.sleep(120)"], 3, options)
    assert status < 0
    assert last == "begun"
    assert time.monotonic() - began < 60
    assert "stopped after its 3 s" in capfd.readouterr().out


def test_a_level_is_passed_where_every_rate_is_above_it(check, tmp_path):
    curve = tmp_path / "history.csv"
    curve.write_text(
        "iteration,minutes,optimal,outcome,heldout_optimal,heldout_outcome,score\n"
        "1,0.5,0.80,0.95,0.75,0.95,\n2,1.0,0.75,0.94,0.77,0.94,\n3,2.5,0.83,0.96,0.84,0.97,\n"
    )
    assert check["passed"](curve) == {"uct:1000": 60.0, "teacher:10000": 150.0, "uct:100000": 150.0}
    assert check["passed"](tmp_path / "nowhere.csv") == {}

"""The parts of `pipelines/gpu_check.py`, with small commands in place of the long ones. Properties:

- a part's result is the JSON of its last line, and the report is written after each part;
- a part that takes too long is stopped, and its status says so;
- a part without time or without a command is left out.
"""

import json
import runpy
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "pipelines" / "gpu_check.py"


def run(tmp_path, *command, seconds=60):
    words = [sys.executable, SCRIPT, "--data", "boards", "--out", tmp_path, "--parts", "rounds", "--seconds", seconds]
    done = subprocess.run([*map(str, words), "--", *command], capture_output=True, text=True, check=False)
    report = tmp_path / "report.json"
    return done.returncode, json.loads(report.read_text()) if report.exists() else None, done.stdout


def test_the_report_has_the_result_of_a_part(tmp_path):
    assert run(tmp_path)[:2] == (0, None), "without a command"
    status, report, printed = run(tmp_path, "-c", 'print("begun"); print("{\\"folder\\": \\"{out}\\"}")')
    assert status == 0
    assert report["rounds"]["result"] == {"folder": str(tmp_path)}
    assert json.loads(printed.splitlines()[-1]) == report


def test_a_part_that_fails_gives_exit_1(tmp_path):
    status, report, _ = run(tmp_path, "-c", 'raise SystemExit("no boards")')
    assert status == 1
    assert report["rounds"]["status"] == 1


def test_a_part_is_stopped_after_its_time(monkeypatch, capfd):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    part = runpy.run_path(str(SCRIPT))["run_until"]
    began = time.monotonic()
    status, last = part(["-c", "import time; print('begun', flush=True); time.sleep(120)"], 3)
    assert status < 0
    assert last == "begun"
    assert time.monotonic() - began < 60
    assert "stopped after its 3 s" in capfd.readouterr().out

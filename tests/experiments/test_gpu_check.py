"""`pipelines/gpu_check.py` (its speeds: `test_on_device`)."""

import os
import runpy
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "pipelines" / "gpu_check.py"


def test_a_level_is_passed_in_the_first_row_where_every_rate_is_above_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "tensorflow"))
    passed = runpy.run_path(str(SCRIPT))["passed"]
    curve = tmp_path / "history.csv"
    curve.write_text(
        "iteration,minutes,optimal,outcome,heldout_optimal,heldout_outcome,score,accepted,games_hash\n"
        "1,0.5,0.80,0.95,0.75,0.95,,True,\n2,1.0,0.75,0.94,0.77,0.94,,True,\n3,2.5,0.83,0.96,0.84,0.97,,True,\n"
    )
    assert passed(curve) == {"uct:1000": 60.0, "teacher:10000": 150.0, "uct:100000": 150.0}
    assert passed(tmp_path / "nowhere.csv") == {}

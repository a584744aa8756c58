"""What every test runs under: quiet TensorFlow, plots without a screen, the same random examples each time."""

from __future__ import annotations

import os

import hypothesis

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")

# Derandomised: a run can be repeated. No deadline: tests are not timed. No database: nothing is left behind.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")

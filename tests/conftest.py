"""What every test runs under: quiet TensorFlow, plots without a screen, the same random examples each time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # also where Keras is imported before distill.nets sets it
os.environ.setdefault("MPLBACKEND", "Agg")

# Derandomised: a run can be repeated. No deadline: tests are not timed. No database: nothing is left behind.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped `pillar` after `python -m distill.export` with all formats, where an older and a killed export were.

    A folder with what the export of a run finds: the network and its settings.
    """
    from helpers import REFERENCE

    from distill import export

    folder = tmp_path_factory.mktemp("run")
    for name in ("best.keras", "config.json"):
        shutil.copy(REFERENCE / "pillar" / name, folder)
    (folder / ".saved_model.killed.partial").mkdir()
    (folder / "saved_model").mkdir()
    for name in ("older", "SHA256SUMS"):
        (folder / "saved_model" / name).touch()
    assert export.main([str(folder), "--formats", "onnx,savedmodel,litert"]) == 0
    return folder


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands build the tiny network in place of the one they are asked for."""
    from selfplay_helpers import tiny

    from distill import nets

    monkeypatch.setattr(nets, "build", lambda arch, value_head=False, precision="float32": tiny(value_head))


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of three small runs of self-play games."""
    import dataclasses

    from selfplay_helpers import SETTINGS, play_into

    folders = [tmp_path_factory.mktemp("games") / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        play_into(folder, 8, dataclasses.replace(SETTINGS, seed=seed, opening_moves=(0, 1)))
    return folders

"""What every test runs under: quiet TensorFlow, plots without a screen, the same random examples each time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import portalocker
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # also where Keras is imported before distill.nets sets it
os.environ.setdefault("MPLBACKEND", "Agg")

# Derandomised: a run can be repeated. No deadline: tests are not timed. No database: nothing is left behind.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")


@pytest.fixture(scope="module")
def checked_here() -> Iterator[None]:
    """SavedModels are checked in this process: one of its own, as those that ship have it, needs seconds to start."""
    from distill.nets import saved
    from distill.ship import comparison

    alone = comparison.outputs_in_clean_process

    def outputs(written: Path, *rest: Any) -> Any:
        return saved.load(written)(comparison.check_boards()) if written.is_dir() else alone(written, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "outputs_in_clean_process", outputs)
        yield


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shipped `pillar` after `python -m distill.export` with both float formats.

    It held what the export of a run finds, the network and its settings, and an older and a killed export. It is made
    once, also where several processes share the tests.
    """
    from helpers import REFERENCE

    from distill import export

    name, base = "pillar", tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "exports"
    root.mkdir(exist_ok=True)
    folder, done = root / name, root / f"{name}.done"
    with portalocker.Lock(root / f"{name}.lock", timeout=900):
        if not done.exists():
            (folder / ".saved_model.killed.partial").mkdir(parents=True)
            (folder / "saved_model").mkdir()
            for file in ("best.keras", "config.json"):
                shutil.copy(REFERENCE / name / file, folder)
            for file, text in (("older", ""), ("SHA256SUMS", "0  older\n")):
                (folder / "saved_model" / file).write_text(text)
            assert export.main([str(folder), "--formats", "onnx,savedmodel,litert"]) == 0
            done.touch()
    return folder


@pytest.fixture(scope="module")
def small_shapes() -> Iterator[None]:
    """Networks of all shapes are small ones of their kind."""
    from network_helpers import shrink

    with pytest.MonkeyPatch.context() as patch:
        shrink(patch.setattr)
        yield


@pytest.fixture
def eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training steps are taken without a graph: to trace one takes longer than a few steps."""
    import keras

    compiled = keras.Model.compile
    monkeypatch.setattr(keras.Model, "compile", lambda *given, **more: compiled(*given, **more, run_eagerly=True))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are composed but not drawn: that takes half a second each."""
    from matplotlib.figure import Figure
    from PIL import Image

    monkeypatch.setattr(Figure, "savefig", lambda _figure, file, **_: Image.new("RGB", (1, 1)).save(file, "PNG"))


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands build the tiny network in place of the one they are asked for."""
    from selfplay_helpers import build_tiny

    build_tiny(monkeypatch.setattr)


@pytest.fixture(scope="module")
def tiny_networks() -> Iterator[None]:
    """The same for a whole module."""
    from selfplay_helpers import build_tiny

    with pytest.MonkeyPatch.context() as patch:
        build_tiny(patch.setattr)
        yield


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of three small runs of self-play games."""
    import dataclasses

    from selfplay_helpers import SETTINGS, play_into

    folders = [tmp_path_factory.mktemp("games") / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        play_into(folder, 8, dataclasses.replace(SETTINGS, seed=seed, opening_moves=(0, 1)))
    return folders

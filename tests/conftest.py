"""What every test runs under: quiet TensorFlow, plots without a screen, the same random examples each time."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import portalocker
import pytest
from joblib.externals import loky

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # also where Keras is imported before distill.networks sets it
os.environ.setdefault("MPLBACKEND", "Agg")

# Derandomised: a run can be repeated. No deadline: tests are not timed. No database: nothing is left behind.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")


class KeptPool:
    """A pool of processes as loky makes them, which a later test goes on to use: to start TensorFlow takes seconds.

    The processes are lent again where they would be started alike, with the same options, variables and folder, and
    only if all that they were asked for is done. A pool that was broken, or is still at work, ends as loky ends it.
    """

    MOST = 3
    start = staticmethod(loky.ProcessPoolExecutor)
    idle: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(self, **options: Any) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self.kind, self.asked = (options, variables, os.getcwd()), list[Future[Any]]()
        found = next((entry for entry in self.idle if entry[0] == self.kind), None)
        if found:
            self.idle.remove(found)
        self.pool = found[1] if found else self.start(**options)

    def submit(self, *call: Any, **more: Any) -> Future[Any]:
        self.asked.append(self.pool.submit(*call, **more))
        return self.asked[-1]

    def shutdown(self, **how: Any) -> None:
        if self.pool._flags.broken or not all(future.done() for future in self.asked):
            self.pool.shutdown(**how)
            return
        self.idle.append((self.kind, self.pool))
        for _, oldest in self.idle[: -self.MOST]:
            oldest.shutdown(wait=True, kill_workers=True)
        del self.idle[: -self.MOST]


@pytest.fixture(scope="session", autouse=True)
def _kept_pools() -> Iterator[None]:
    """Processes that play or make shards serve one test after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loky, "ProcessPoolExecutor", KeptPool)
        yield
    while KeptPool.idle:
        KeptPool.idle.pop()[1].shutdown(wait=True, kill_workers=True)


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes are started for this test, and end with it."""
    monkeypatch.setattr(loky, "ProcessPoolExecutor", KeptPool.start)


@pytest.fixture(scope="module")
def checked_here() -> Iterator[None]:
    """SavedModels are checked in this process: one of its own, as those that ship have it, needs seconds to start."""
    from network_helpers import check_here

    with pytest.MonkeyPatch.context() as patch:
        check_here(patch.setattr)
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


@contextlib.contextmanager
def no_drawing() -> Iterator[None]:
    """Pictures are composed but not drawn: that takes half a second each."""
    from matplotlib.figure import Figure
    from PIL import Image

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _figure, file, **_: Image.new("RGB", (1, 1)).save(file, "PNG"))
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Pictures are composed but not drawn."""
    with no_drawing():
        yield


@pytest.fixture(scope="module")
def undrawn_here() -> Iterator[None]:
    """The same for a whole module."""
    with no_drawing():
        yield


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

"""The setup of all tests: quiet TensorFlow, plots without a screen, reproducible random examples, shared fixtures."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import pytest
from joblib.externals import loky

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # also where Keras is imported before distill.networks sets it
os.environ.setdefault("MPLBACKEND", "Agg")
# What JAX compiles is kept for the other processes and the next run, as Numba's is.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

# Reproducible, without time limits, and without files left behind.
SLOW = [hypothesis.HealthCheck.too_slow]  # of a busy machine
hypothesis.settings.register_profile(
    "suite", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW
)
hypothesis.settings.load_profile("suite")


class KeptPool:
    """A pool of loky's processes that later tests reuse, because starting TensorFlow takes seconds.

    A pool is reused for the same options, environment variables and folder, if all its calls have ended. A broken or
    busy pool is shut down as usual.
    """

    MOST = 3
    start = staticmethod(loky.ProcessPoolExecutor)
    idle: ClassVar[list[tuple[Any, Any]]] = []
    _processes: ClassVar[dict[int, Any]] = {}  # which nobody may kill

    def __init__(self, **options: Any) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self.kind, self.calls = (options, variables, os.getcwd()), list[Future[Any]]()
        found = next((entry for entry in self.idle if entry[0] == self.kind), None)
        if found:
            self.idle.remove(found)
        self.pool = found[1] if found else self.start(**options)

    def submit(self, *call: Any, **more: Any) -> Future[Any]:
        self.calls.append(self.pool.submit(*call, **more))
        return self.calls[-1]

    def shutdown(self, **how: Any) -> None:
        if self.pool._flags.broken or not all(future.done() for future in self.calls):
            from distill.common import executors

            executors.stop(self.pool)
            return
        self.idle.append((self.kind, self.pool))
        for _, oldest in self.idle[: -self.MOST]:
            oldest.shutdown(wait=True, kill_workers=True)
        del self.idle[: -self.MOST]


@pytest.fixture(scope="session", autouse=True)
def _kept_pools() -> Iterator[None]:
    """Reuse worker processes from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loky, "ProcessPoolExecutor", KeptPool)
        yield
    while KeptPool.idle:
        KeptPool.idle.pop()[1].shutdown(wait=True, kill_workers=True)


@pytest.fixture(autouse=True)
def _no_modules_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A module that a test imported from its own folder is imported afresh by the next test."""
    before, path, base = {*sys.modules}, [*sys.path], tmp_path_factory.getbasetemp()
    yield
    sys.path[:] = path
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__dict__", {}).get("__file__")  # a lazy module stays lazy
        if file and Path(file).is_relative_to(base):
            del sys.modules[name]


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes start and end with this test."""
    monkeypatch.setattr(loky, "ProcessPoolExecutor", KeptPool.start)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shipped `pillar`, exported to SavedModel, ONNX and LiteRT over an older and a killed export."""
    from helpers import REFERENCE, change_record, made_once

    from distill import export
    from distill.common import run_folder
    from distill.exporters import publish

    def make(folder: Path) -> None:
        (folder / "saved_model" / ".new.partial").mkdir(parents=True)  # of a killed export
        for file in ("best.keras", "_run.json"):
            shutil.copy(REFERENCE / "pillar" / file, folder)
        change_record(folder, lambda record: record.update(result=None))  # a card without figures
        with run_folder.replaced(folder / "saved_model", publish.KIND, ["older"]) as new:
            (new / "older").touch()
        assert export.main([str(folder), "--formats", "onnx", "savedmodel", "litert"]) == 0

    return made_once(tmp_path_factory, "pillar", make)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    import pages

    with pages.browser() as running:
        yield running


@pytest.fixture(scope="module")
def solver() -> Any:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players import solver

    return solver


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two worker processes. Their nannies replace dead ones, and a task may kill two of them."""
    import dask
    import distributed

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.logging.distributed": "critical"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as started,
    ):
        yield started


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line with which a command fails: `complaint(command, words, …)`."""

    def fails(command: Any, *words: object, code: int = 1) -> str:
        capsys.readouterr()
        assert command.main([*map(str, words)]) == code
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(("distill ", "experiments "))
        return line

    return fails


@pytest.fixture
def eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training steps run eagerly: tracing a graph takes longer than a few steps."""
    import keras

    compiled = keras.Model.compile
    monkeypatch.setattr(keras.Model, "compile", lambda *given, **more: compiled(*given, **more, run_eagerly=True))


def no_drawing(change: Callable[..., None]) -> None:
    """Figures are built but not drawn: that takes half a second each."""
    from matplotlib.figure import Figure
    from PIL import Image

    change(Figure, "savefig", lambda _figure, file, **_: Image.new("RGB", (1, 1)).save(file, "PNG"))


def nothing_shipped(change: Callable[..., None]) -> None:
    """What ships, as the benchmark, takes no part."""
    from distill.common import provenance

    change(provenance, "shipped", lambda _name: None)


def helper(name: str) -> Callable[[Callable[..., None]], None]:
    """A function module.name of the helpers, imported when a test needs it."""
    module, _, function = name.partition(".")
    return lambda change: getattr(importlib.import_module(module), function)(change)


def patched(patches: Callable[[Callable[..., None]], None], scope: Any) -> Any:
    """A fixture that applies a function's patches for one test or one module."""

    @pytest.fixture(scope=scope)
    def fixture() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patches(patch.setattr)
            yield

    return fixture


undrawn, undrawn_here = patched(no_drawing, "function"), patched(no_drawing, "module")
nothing_ships, nothing_ships_here = patched(nothing_shipped, "function"), patched(nothing_shipped, "module")
small_shapes = patched(helper("network_helpers.shrink"), "module")
checked_here = patched(helper("network_helpers.check_here"), "module")
small_networks = patched(helper("selfplay_helpers.build_tiny"), "function")
tiny_networks = patched(helper("selfplay_helpers.build_tiny"), "module")


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of three small runs of self-play games."""
    from selfplay_helpers import SETTINGS, play_into

    folders = [tmp_path_factory.mktemp("games") / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        play_into(folder, 8, SETTINGS.replace(seed=seed, opening_moves=(0, 1)))
    return folders

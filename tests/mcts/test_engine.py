"""The compiled operations themselves, and where compiled code is kept.

Properties: the vector choice equals the formula in NumPy's float32, ties to the lowest slot, unvisited
children first; the first writable folder keeps the cache.
"""

from pathlib import Path

import numba
import numpy as np

from distill.mcts import compiling
from distill.mcts.engine.best_ucb1 import SLOTS, best_ucb1


@numba.njit
def choose(rows: np.ndarray, weights: np.ndarray, order: np.ndarray, bonus: np.float32) -> int:
    return best_ucb1(rows, 0, weights, 0, order, 0, bonus)


def scores(rows: np.ndarray, weights: np.ndarray, order: np.ndarray, bonus: np.float32) -> np.ndarray:
    """float32 (8,), the formula of the docstring."""
    n, total = rows[:SLOTS].astype(np.float32), rows[SLOTS : 2 * SLOTS].astype(np.float32)
    r = np.float32(1) / np.sqrt(np.maximum(n, np.float32(1)))
    return np.where(n == 0, order, (total * r + bonus * weights) * r)


def test_the_vector_choice_is_the_formulas():
    random = np.random.default_rng(0)
    for _ in range(2000):
        visits = random.integers(0, 3000, SLOTS) * (random.random(SLOTS) < 0.9)
        rows = np.zeros(4 * SLOTS, np.int32)
        rows[:SLOTS] = visits
        rows[SLOTS : 2 * SLOTS] = random.integers(-visits, visits + 1)
        weights = random.uniform(0.5, 2.5, SLOTS).astype(np.float32)
        order = (4096 + random.permutation(SLOTS)).astype(np.float32)
        bonus = np.float32(random.uniform(0, 4))
        assert choose(rows, weights, order, bonus) == scores(rows, weights, order, bonus).argmax()
    rows[:SLOTS], rows[SLOTS : 2 * SLOTS] = 5, [0, 0, 3, 0, 0, 0, 3, 0]
    ones = np.ones(SLOTS, np.float32)
    assert choose(rows, ones, ones, np.float32(1)) == 2, "the lowest of equals"


def test_the_first_writable_folder_keeps_the_compiled_code_and_another_numba_compiles_again(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "file" / "compiling.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = compiling._folder()
    assert Path(folder).parent == tmp_path / "cache" / "distill"
    monkeypatch.setattr(compiling.provenance, "versions", lambda *_: {"numba": "99"})
    assert compiling._folder() != folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiling._folder() != compiling._folder(), "each process compiles for itself"

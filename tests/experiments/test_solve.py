"""Proving and learning a winning strategy (`experiments/large/solve.py`):

- rules on the device equal those of the package
- the games that it enumerates are those of `distill.walk`
- a move is proven exactly if it wins, or every reply leads to a position with a proven move
- a small network learns to lose no game up to eight stones, and its file plays as the report says
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
import pytest

from distill.evaluation import walk
from distill.game import rules
from distill.game.rules import COLUMNS
from experiments.large import boards, label, shapes, solve

MOST_STONES = 6
on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="run by the test for Keras on JAX")


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="this is Keras on JAX")
def test_solve_with_keras_on_jax() -> None:
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "BATCH", 256)
    monkeypatch.setattr(solve, "NEAR", 512)
    monkeypatch.setattr(solve, "NEAREST", 64)
    monkeypatch.setattr(solve, "RANDOM_PART", 2000)


def canonical(keys: Any) -> Any:
    own, stones, _ = rules.canonicalise(*rules.from_keys(keys))
    return own + stones


def small_network(path: Path) -> Path:
    keras.utils.set_random_seed(1)
    shapes.build("lines-8x1").save(path)
    return path


@on_jax
def test_replies_are_those_of_the_package() -> None:
    current, mask = label.openings(200, np.random.default_rng(3))
    with jax.enable_x64(True):
        after = np.asarray(solve.replies(current + mask))
    legal = rules.legal_mask(mask)
    assert (after[~legal] == solve.LOST).all()
    for column in range(COLUMNS):
        rows = np.flatnonzero(legal[:, column])
        expected = walk.replies((current + mask)[rows], np.full(len(rows), column))
        ends_of_move = after[rows, column]
        np.testing.assert_array_equal((ends_of_move == solve.NONE).all(1), expected.won)
        ends = np.where(expected.lost, solve.LOST, np.where(expected.drawn, solve.DRAWN, canonical(expected.key)))
        np.testing.assert_array_equal(ends_of_move[expected.parent, expected.reply], ends)


@on_jax
def test_the_games_are_those_of_walk_and_their_proofs_follow_from_the_replies(tmp_path: Path) -> None:
    network = solve.Network(small_network(tmp_path / "network.keras"))
    weights = [variable.value for variable in network.variables]
    games = solve.enumerate_games(
        network.chooser(weights, "float32"), {0: np.zeros(1, np.uint64)}, most_stones=MOST_STONES
    )
    choose = label.evaluator(tmp_path / "network.keras", 256, "float32")

    def moves(current: Any, mask: Any) -> Any:
        parts = [slice(start, start + 256) for start in range(0, len(mask), 256)]
        logits = np.concatenate([choose(current[part], mask[part])[0] for part in parts])
        return np.where(rules.legal_mask(mask), logits, -np.inf).argmax(1).astype(np.int8)

    whole = walk.Enumeration(tmp_path, moves)
    layers = [*whole.run(MOST_STONES)]
    for stones, keys in games.keys.items():
        np.testing.assert_array_equal(keys, np.unique(canonical(whole.keys(stones))))
    assert 0 < games.losing <= sum(layer["losing_replies"] for layer in layers) <= 2 * games.losing

    proof = solve.prove(games.keys, MOST_STONES, jax.jit(solve.proven_moves))
    proven = {int(key): int(moves) for n, keys in games.keys.items() for key, moves in zip(keys, proof[n], strict=True)}
    assert 0 in proof[MOST_STONES - 2]  # the network is weak enough to test both
    for stones in range(0, MOST_STONES, 2):
        with jax.enable_x64(True):
            after = np.asarray(solve.replies(games.keys[stones]))
        for moves_of_key, key in zip(after.tolist(), games.keys[stones].tolist(), strict=True):
            for column, ends in enumerate(moves_of_key):
                wins = all(end == int(solve.NONE) or proven.get(end, 0) for end in ends)
                assert wins == bool(proven[key] >> column & 1)


@on_jax
@pytest.mark.slow
def test_a_small_network_learns_to_lose_no_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "EMA", 0.9)
    random = np.random.default_rng(0)
    current, mask = label.openings(500, random)
    none = np.zeros(len(mask))
    boards.save(tmp_path / "b.npz", boards.pack(current, mask, np.ones((len(mask), 7)), none, none, none - 1))
    network = small_network(tmp_path / "network.keras")
    out = tmp_path / "solve"
    solve.main([
        "--network", str(network), "--boards", str(tmp_path / "b.npz"), "--random-boards", "2000", "--calls", "1",
        "--batch-size", "64", "--capacity", "4096", "--most-stones", str(MOST_STONES), "--seconds", "600",
        "--round-seconds", "0", "--lr", "0.01", "--out", str(out),
    ])  # fmt: skip
    rounds = [json.loads(line) for line in (out / "rounds.jsonl").read_text().splitlines()]
    counts = [row["losing_replies"] for row in rounds if row["what"] == "enumerated"]
    assert counts[0] > 0 == counts[-1]
    last = [row for row in rounds if row["what"] == "enumerated in float32"][-1]
    solved = solve.Network(out / "best.keras")
    weights = [variable.value for variable in solved.variables]
    games = solve.enumerate_games(solved.chooser(weights, "float32"), {0: np.zeros(1, np.uint64)}, MOST_STONES)
    assert (solve.size(games.keys), games.losing) == (last["positions"], 0)

"""Proving and learning a winning strategy (`experiments/large`): rules on the device are those of the package, games
those of `distill.walk`, proofs follow from the replies, and a killed run resumes.
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

from distill import networks
from distill.alphazero.device_games import openings
from distill.common import UserError
from distill.evaluation import walk
from distill.exporters import formats, quantized
from distill.game import rules
from distill.game.rules import COLUMNS
from distill.networks import predict, saved
from experiments.large import positions, proofs, read_out, solve
from experiments.large.positions import DRAWN, LOST, NONE, START

MOST_STONES = 6
on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="run by the test for Keras on JAX")


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="this is Keras on JAX")
def test_solve_with_keras_on_jax() -> None:
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.getcwd()}
    without_tensorflow = "import sys, pytest; sys.modules['tensorflow'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", without_tensorflow, "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "CPU_BATCH", 256)
    monkeypatch.setattr(positions, "PART", 300)
    monkeypatch.setattr(positions, "SAFE", 0)  # moves of an untrained network are nearly equal


def canonical(keys: Any) -> Any:
    own, stones, _ = rules.canonicalise(*rules.from_keys(keys))
    return own + stones


def small_network(path: Path, seed: int = 1) -> Path:
    keras.utils.set_random_seed(seed)
    networks.build("pillar-large", True, features=8, blocks=1, hidden=32).save(path)
    return path


def random_keys(count: int) -> Any:
    with jax.enable_x64(True):
        current, mask = map(np.asarray, openings(jax.random.key(3), count, ((0, 12), (8, 28))))
    return current + mask


def evaluate_with(path: Path) -> Any:
    """The network as a function of keys, for `Answers`."""
    return solve.in_float32(saved.load_core(path))


@on_jax
def test_replies_are_those_of_the_package() -> None:
    keys = random_keys(200)
    with jax.enable_x64(True):
        after = np.asarray(positions.replies(keys))
    legal = rules.legal_mask(rules.from_keys(keys)[1])
    assert (after[~legal] == LOST).all()
    for column in range(COLUMNS):
        rows = np.flatnonzero(legal[:, column])
        expected = walk.replies(keys[rows], np.full(len(rows), column))
        ends_of_move = after[rows, column]
        np.testing.assert_array_equal((ends_of_move == NONE).all(1), expected.won)
        ends = np.where(expected.lost, LOST, np.where(expected.drawn, DRAWN, canonical(expected.key)))
        np.testing.assert_array_equal(ends_of_move[expected.parent, expected.reply], ends)


@on_jax
def test_the_games_are_those_of_walk_and_their_proofs_follow_from_the_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, asked = evaluate_with(small_network(tmp_path / "network.keras", seed=3)), []

    def counted(keys: Any) -> Any:
        asked.append(len(keys))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return evaluate(keys)

    answers = positions.Answers(tmp_path / "answers", counted)
    with pytest.raises(KeyboardInterrupt):
        positions.enumerate_games(answers, START, MOST_STONES)
    kept = sum(len(np.load(file)["keys"]) for file in (tmp_path / "answers").glob("*.npz"))
    assert kept > 0
    answers = positions.Answers(tmp_path / "answers", evaluate)  # another process
    assert positions.size({stones: keys for stones, (keys, _) in answers.known.items()}) == kept
    games = positions.enumerate_games(answers, START, MOST_STONES)

    unsure = games.keys[4][:5]
    answers.hand_over(tmp_path / "trusted", unsure, 0.02)
    trusted = positions.Answers(tmp_path / "trusted", lambda keys: (-evaluate(keys)[0], evaluate(keys)[1]))
    for stones, (keys, logits) in trusted.known.items():
        ordered = np.sort(logits_of(evaluate, games.keys[stones]), axis=1)
        stays = (ordered[:, -1] - ordered[:, -2] >= 0.02) & ~np.isin(games.keys[stones], unsure)
        np.testing.assert_array_equal(keys, games.keys[stones][stays])
        np.testing.assert_array_equal(logits, answers(stones, games.keys[stones])[np.isin(games.keys[stones], keys)])
    number = positions.size({stones: keys for stones, (keys, _) in trusted.known.items()})
    assert 0 < number < positions.size(games.keys)
    assert trusted.changed(10**6) == (number, number)
    # Where the quick file is unsure, the network is asked.
    quick = positions.Answers(
        tmp_path / "quick", lambda keys: (0 * evaluate(keys)[0] - 5, evaluate(keys)[1]), answers, 0.02
    )
    for stones, keys in games.keys.items():
        by_network = (quick(stones, keys) == -5).any(1)
        np.testing.assert_array_equal(by_network, ~positions.is_ahead(answers(stones, keys), 0.02))
    assert answers.changed(50) == (50, 0)

    def moves(current: Any, mask: Any) -> Any:
        return logits_of(evaluate, current + mask).argmax(1).astype(np.int8)

    layers = [*walk.all_replies(tmp_path, moves, MOST_STONES)]
    for counts, following in layers[:-1]:
        np.testing.assert_array_equal(games.keys[counts["stones"] + 2], np.unique(canonical(following)))
    assert 0 < games.losing <= sum(counts["losing_replies"] for counts, _ in layers) <= 2 * games.losing

    proof = proofs.prove(games.keys, MOST_STONES)
    proven = {int(key): int(moves) for n, keys in games.keys.items() for key, moves in zip(keys, proof[n], strict=True)}
    assert 0 in proof[MOST_STONES - 2]  # by this seed, to test both
    for stones in range(0, MOST_STONES, 2):
        with jax.enable_x64(True):
            after = np.asarray(positions.replies(games.keys[stones]))
        for moves_of_key, key in zip(after.tolist(), games.keys[stones].tolist(), strict=True):
            for column, ends in enumerate(moves_of_key):
                wins = all(end == int(NONE) or proven.get(end, 0) for end in ends)
                assert wins == bool(proven[key] >> column & 1)

    with jax.enable_x64(True):
        after = np.asarray(positions.replies(games.keys[2])).tolist()
    monkeypatch.setattr(proofs, "PROMISE", float(np.median(answers.values(games.keys[4]))))
    promised, refused = set(), set()
    for ends in (ends for moves_of_key in after for ends in moves_of_key):
        replies = [end for end in ends if end < int(LOST)]
        values = answers.values(np.array(replies, np.uint64))
        promises = not {int(LOST), int(DRAWN)} & {*ends} and (values > proofs.PROMISE).all()
        (promised if promises else refused).update(replies)
    assert refused - promised
    assert proofs.promising(games.keys[2], answers).tolist() == sorted(promised)

    with monkeypatch.context() as patched:
        patched.setattr(positions, "SAFE", 1e6)  # every move is near the favourite
        every = positions.enumerate_games(answers, START, 4)
    keys = np.zeros(1, np.uint64)
    for stones in (2, 4):
        rows, columns = np.nonzero(rules.legal_mask(rules.from_keys(keys)[1]))
        keys = np.unique(canonical(walk.replies(keys[rows], columns).key))
        np.testing.assert_array_equal(every.keys[stones], keys)

    excluded = games.keys[4][:3]
    pool = solve.Pool(games.keys, proof, answers, excluded)
    assert (pool.moves > 0).all()
    assert not np.isin(excluded, pool.keys).any()
    margins = proofs.margins(logits_of(evaluate, pool.keys), pool.moves)
    assert pool.wrong == (margins < solve.SAFE).sum()


def logits_of(evaluate: Any, keys: Any) -> Any:
    return np.concatenate([part for part, _ in positions.in_batches(evaluate, keys)])


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="the file in 8 bits is written by TensorFlow")
def test_a_small_network_learns_to_lose_no_game_also_in_its_8_bit_file_and_a_killed_run_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network, out = small_network(tmp_path / "network.keras"), tmp_path / "solve"
    words = ["--network", str(network), "--quick", "--most-stones", str(MOST_STONES), "--eval-boards", "20",
             "--trust", "0.1", "--out", str(out)]  # fmt: skip

    # Graded boards are never learned, and some of this small tree are graded.
    monkeypatch.setattr(solve.canonical, "excluded_keys", lambda _: positions.NOTHING)
    monkeypatch.setattr(solve, "KEPT", 500)
    monkeypatch.setattr(quantized, "SMALL", 100)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(solve.Run, "next_round", killed)
        with pytest.raises(KeyboardInterrupt):
            solve.main(words)
    before = solve.rounded(saved.load_core(network))
    with pytest.raises(UserError, match=f"most_stones {MOST_STONES} there, 4 here"):
        solve.main([*words, "--most-stones", "4"])
    with (out / "rounds.jsonl").open("a") as file:
        file.write('{"cut')  # as a full disk leaves it; the next line goes on here
    solve.main(words)
    lines = (out / "rounds.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines if not line.startswith('{"cut')]
    assert [row["what"] for row in rows].count("ready") == 1
    counts = [row["losing_replies"] + row["draws"] for row in rows if row["what"] == "enumerated"]
    assert counts[0] == counts[1] != 0 == counts[-1]
    after = saved.load_core(out / "best.keras")
    formats.write_onnx_int8(after, tmp_path / "model.int8.onnx")
    in_file = predict.load(tmp_path / "model.int8.onnx")

    def by_file(keys: Any) -> Any:
        outputs = in_file(solve.boards_of(keys))
        return outputs["logits"], outputs["value"]

    for name, evaluate in (("network", solve.in_float32(after)), ("file", by_file)):
        answers = positions.Answers(tmp_path / name, evaluate)
        assert positions.enumerate_games(answers, START, MOST_STONES).losing == 0
    changed = [layer.name for layer in after.layers if not same_weights(layer, before.get_layer(layer.name))]
    assert changed == ["hidden"]


def test_the_read_out_is_that_of_the_network_and_a_change_raises_margins_and_values_as_foreseen(
    tmp_path: Path,
) -> None:
    core = saved.load_core(small_network(tmp_path / "network.keras"))
    core.get_layer("value_unit").kernel.assign(0.1 * np.ones((64, 1)))
    keys = random_keys(300)
    legal = rules.legal_mask(rules.from_keys(keys)[1])
    part = read_out.ReadOut(core)
    logits, value = solve.in_float32(core)(keys)
    features = solve.features_of(core, keys)
    hidden = part.hidden(features)
    np.testing.assert_allclose(part.logits(hidden)[legal], logits[legal], atol=1e-4)
    first = logits.argsort(1)[:, -2:-1] == np.arange(COLUMNS)  # the second best move
    near = read_out.Near(features, first, legal & ~first)
    margins, _ = part.margins(near)
    assert (margins < 1e-4).all()  # the two add in another order, so a tie may be above 0
    change = 3e-4 * np.random.default_rng(0).standard_normal(part.kernel.shape).astype(np.float32)
    foreseen = part.margins(near, change)[1]
    of_values = (
        np.stack([features @ change, read_out.mirrored(features) @ change], 1) * part.value_gradients(features)
    ).sum((1, 2))
    core.get_layer("hidden").kernel.assign(part.kernel + change)
    logits, changed_value = solve.in_float32(core)(keys)
    changed = np.where(near.first, logits, -1e9).max(1) - np.where(near.others, logits, -1e9).max(1)
    for happened, expected in ((changed - margins, foreseen), (changed_value - value, of_values)):
        assert np.linalg.norm(happened - expected) < 0.1 * np.linalg.norm(expected) > 0


def same_weights(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, one.get_weights(), other.get_weights()))

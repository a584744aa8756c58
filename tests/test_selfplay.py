"""Self-play and the loop around it. Properties:

- the games of a network's search are ordinary shards: valid rows, one vote, visits on open columns, moves drawn by
  chance in the first plies alone, the game's result for the side to move;
- a shard that is missing, damaged or was never finished is made again to the same bytes, a finished one is kept; more
  games extend a run, other settings or another network are refused;
- the replay holds the latest rows or games, merged by canonical board, without the boards that are kept out;
- the evaluator answers as the network does, whatever the batch, in bfloat16 nearly so, and takes new weights;
- the trainee's loss falls, and a resumed one goes on to the same weights;
- the gate's score is the challenger's; a killed arena goes on after its last block with the same games;
- a rejected candidate changes nothing but itself and trains on; an accepted one takes over; the judge decides nothing;
- the loop resumes after kill -9 in self-play, in training and in the arena: same games, same metrics, none twice;
- flags and presets: learning-rate drops, what is wrong is named, a finished run says so and can be extended.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from test_puct import predict as any_network

from distill import cli, nets, selfplay
from distill.data import games, parts, replay, schema, shards, tables, validation
from distill.data.schema import DataError
from distill.data.selfplay import SelfPlaySettings, identity, make
from distill.game import encoding, rules
from distill.judge import gate
from distill.judge.players import RandomPlayer
from distill.nets import heads, saved, trainee
from distill.nets.evaluator import Evaluator, padded_size, weights_hash
from distill.nets.recipe import Recipe
from distill.selfplay import PRESETS, SelfPlayConfig

SETTINGS = SelfPlaySettings(simulations=6, shard_games=4, opening_moves=(0, 3), sampling_plies=6, seed=2)


def tiny(value_head: bool = True, precision: Any = "float32") -> keras.Model:
    """A network of one hidden layer: runs in a millisecond, and is built like the real ones."""
    planes = heads.planes_input()
    x = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="conv")(planes)
    features = keras.layers.Flatten(name="flatten")(x)
    logits = keras.layers.Dense(7, name="logits")(features)
    return heads.network("column", planes, logits, heads.value_head(features, width=8) if value_head else None)


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop builds the tiny network in place of the one it is asked for."""
    monkeypatch.setattr(nets, "build", lambda arch, value_head=False, precision="float32": tiny(value_head))


def read(folder: Path) -> Any:
    """All rows of a folder of games, and the laws of its shards are obeyed."""
    found = []
    for path in sorted(folder.glob("shard-*.parquet")):
        table, metadata = schema.read_table(path)
        assert list(validation.faults(table, validation.law_of(metadata))) == []
        found += table.to_pylist()
    return found


def play_into(folder: Path, number: int = 10, settings: SelfPlaySettings = SETTINGS, **more: Any) -> dict[str, Any]:
    return make(settings, "some network", any_network, number, folder, lanes=more.pop("lanes", 3), **more)


# Games ----------------------------------------------------------------------------------------------------------------


def test_games_are_ordinary_shards(tmp_path: Path):
    told: list[tuple[int, int]] = []
    manifest = play_into(tmp_path, advance=lambda number, rows: told.append((number, rows)))
    rows = read(tmp_path)
    assert manifest["games"] == sum(number for number, _ in told) == 10
    assert manifest["rows"] == sum(more for _, more in told) == len(rows)
    assert [(row["game_id"], row["ply"]) for row in rows] == sorted((row["game_id"], row["ply"]) for row in rows)
    assert {row["game_id"] for row in rows} == set(range(10))
    for row in rows:
        assert row["votes"] == [row["label"]]
        assert sum(row["visits"]) == row["simulations"] == 6
        assert row["ply"] < 6 or row["move"] == row["label"]
    assert any(row["move"] != row["label"] for row in rows)
    assert manifest["identity"] == identity(SETTINGS, "some network")
    assert games.open_run(tmp_path).games == 10


def test_what_is_missing_or_damaged_is_made_again_to_the_same_bytes(tmp_path: Path):
    first = play_into(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("shard-*")}
    (tmp_path / shards.shard_name(0)).unlink()
    damaged = bytearray(before[shards.shard_name(2)])
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / shards.shard_name(2)).write_bytes(bytes(damaged))
    kept = (tmp_path / shards.shard_name(1)).stat().st_mtime_ns
    again = play_into(tmp_path, lanes=7)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("shard-*")} == before
    assert (tmp_path / shards.shard_name(1)).stat().st_mtime_ns == kept
    assert again["shards"] == first["shards"]


def test_an_interrupted_run_ends_with_the_games_of_an_uninterrupted_one(tmp_path: Path):
    calls = 0

    def dies(current: Any, mask: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 250:
            raise KeyboardInterrupt
        return any_network(current, mask)

    with pytest.raises(KeyboardInterrupt):
        make(SETTINGS, "some network", dies, 10, tmp_path / "cut", lanes=3)
    finished = len(list((tmp_path / "cut").glob("shard-*.parquet")))
    assert 0 < finished < 3
    assert not (tmp_path / "cut" / schema.MANIFEST).exists()
    assert play_into(tmp_path / "cut")["shards"] == play_into(tmp_path / "whole")["shards"]


def test_more_games_extend_a_run_and_other_runs_are_refused(tmp_path: Path):
    few = play_into(tmp_path, 8)
    more = play_into(tmp_path, 12)
    assert more["shards"][:2] == few["shards"]
    with pytest.raises(DataError, match="simulations 6 there, 7 here"):
        play_into(tmp_path, settings=dataclasses.replace(SETTINGS, simulations=7))
    with pytest.raises(DataError, match="network some network there, another here"):
        make(SETTINGS, "another", any_network, 8, tmp_path)


def test_gumbel_games_record_their_policy_in_thousandths(tmp_path: Path):
    settings = dataclasses.replace(SETTINGS, root="gumbel")
    play_into(tmp_path, 6, settings)
    rows = read(tmp_path)
    assert {sum(row["visits"]) for row in rows} == {1000}
    assert {row["simulations"] for row in rows} == {6}


def test_leaves_may_be_valued_by_playouts(tmp_path: Path):
    by_value = play_into(tmp_path / "value", 3)
    by_playout = play_into(tmp_path / "playout", 3, dataclasses.replace(SETTINGS, leaves="playout"))
    read(tmp_path / "playout")
    assert by_value["shards"] != by_playout["shards"]


# Replay ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folders = [tmp_path_factory.mktemp("games") / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        play_into(folder, 8, dataclasses.replace(SETTINGS, seed=seed, opening_moves=(0, 1)))
    return folders


def test_the_replay_holds_the_latest_games_or_rows(three_runs: list[Path]):
    everything = replay.latest(three_runs, None, None)
    assert [shard.folder for shard in everything] == [folder for folder in three_runs for _ in range(2)]
    assert [shard.folder.name for shard in replay.latest(three_runs, None, 12)] == ["1", "2", "2"]
    assert [shard.first_game for shard in replay.latest(three_runs, None, 12)] == [4, 0, 4]
    newest = sum(shard.rows for shard in everything[4:])
    assert replay.latest(three_runs, newest, None) == everything[4:]
    assert replay.latest(three_runs, newest + everything[3].rows, None) == everything[3:]
    assert replay.latest(three_runs, 1, 1) == everything[4:]  # the newest run is whole in any case


def test_the_replay_merges_as_prepare_does(three_runs: list[Path], tmp_path: Path):
    merged = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    prepared = tables.prepare(three_runs, tmp_path, validation_fraction=1e-9, exclude=())
    expected = tables.load(prepared.folder, tables.TRAINING)
    places = {name: np.argsort(parts.board_keys(each.current, each.mask)) for name, each in
              (("merged", merged), ("expected", expected))}  # fmt: skip
    assert len(merged) == len(expected)
    for name in ("current", "mask", "visits", "count"):
        ours, theirs = getattr(merged, name)[places["merged"]], getattr(expected, name)[places["expected"]]
        assert np.array_equal(ours, theirs), name
    for name in ("value", "outcome"):
        ours, theirs = getattr(merged, name)[places["merged"]], getattr(expected, name)[places["expected"]]
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert merged.count.max() > 1
    assert (merged.visits[np.arange(len(merged)), merged.label] == merged.visits.max(1)).all()


def test_excluded_boards_are_not_in_the_replay(three_runs: list[Path]):
    latest = replay.latest(three_runs, None, None)
    merged = replay.table(latest, np.zeros(0, np.uint64))
    keys = np.sort(parts.board_keys(merged.current, merged.mask))
    left = replay.table(latest, keys[::2])
    assert sorted(parts.board_keys(left.current, left.mask).tolist()) == keys[1::2].tolist()
    with pytest.raises(DataError, match="every board is kept out"):
        replay.table(latest, keys)


def test_a_sample_is_drawn_without_repetition(three_runs: list[Path]):
    merged = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    drawn = replay.sample(merged, 50, seed=1)
    assert len(drawn) == len({*zip(drawn.current.tolist(), drawn.mask.tolist(), strict=True)}) == 50
    assert not np.array_equal(drawn.mask, replay.sample(merged, 50, seed=2).mask)
    assert replay.sample(merged, None, 1) is merged
    assert replay.sample(merged, 10**6, 1) is merged


# The network ----------------------------------------------------------------------------------------------------------


def positions(count: int) -> tuple[Any, Any]:
    rng, found = np.random.default_rng(4), []
    while len(found) < count:
        position = rules.EMPTY
        for column in rng.integers(0, 7, rng.integers(0, 12)):
            if rules.is_legal(position, column := int(column)) and not rules.is_over(position):
                position = rules.play(position, column)
        found.append(position)
    return (
        np.array([position.current for position in found], np.uint64),
        np.array([position.mask for position in found], np.uint64),
    )


def test_the_evaluator_answers_as_the_network_does_in_any_batch():
    core = tiny()
    current, mask = positions(150)
    expected = saved.predict_with(core)(encoding.boards(current, mask))
    asked = Evaluator(core, batch=64)
    for count in (1, 8, 9, 33, 64, 65, 150):
        logits, value = asked(current[:count], mask[:count])
        legal = rules.legal_mask(mask[:count])
        np.testing.assert_allclose(logits[legal], expected["logits"][:count][legal], atol=1e-5)
        np.testing.assert_allclose(value, expected["value"][:count], atol=1e-6)


def test_batches_are_padded_by_little():
    assert [padded_size(number) for number in (1, 8, 9, 32, 33, 64, 65, 400)] == [8, 8, 16, 32, 64, 64, 128, 448]


def test_bfloat16_answers_nearly_the_same_and_read_out_stays_float32():
    core = tiny()
    current, mask = positions(40)
    exact, near = Evaluator(core)(current, mask), Evaluator(core, precision="bfloat16")(current, mask)
    assert near[0].dtype == np.float32
    assert 0 < np.abs(exact[0] - near[0]).max() < 0.05
    assert np.abs(exact[1] - near[1]).max() < 0.02


def test_the_evaluator_keeps_its_weights_until_it_takes_others():
    one, other = tiny(), tiny()
    current, mask = positions(5)
    asked = Evaluator(one)
    before = asked(current, mask)[1]
    expected = Evaluator(other)(current, mask)[1]
    name = weights_hash(one)
    one.set_weights(other.get_weights())
    assert weights_hash(one) == weights_hash(other) != name
    assert np.array_equal(asked(current, mask)[1], before)
    asked.take_weights(one)
    assert np.array_equal(asked(current, mask)[1], expected)


def test_a_network_without_value_head_cannot_guide_a_search():
    with pytest.raises(cli.UserError, match="no value head"):
        Evaluator(tiny(value_head=False))


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_the_trainee_learns_and_goes_on_where_it_was(
    optimizer: Any, three_runs: list[Path], tmp_path: Path, small_networks: None
):
    examples = replay.table(replay.latest(three_runs, None, None), np.zeros(0, np.uint64))
    recipe = Recipe(epochs=3, batch_size=32, lr=0.02, value_target="outcome", optimizer=optimizer)
    learner = trainee.begin(tiny(), recipe)
    first = trainee.learn(learner, examples, 0.02, seed=1)
    assert first["steps"] == 3 * (len(examples) // 32)
    trainee.save(learner, tmp_path, first)
    assert trainee.saved_state(tmp_path) == pytest.approx(first)
    second = trainee.learn(learner, examples, 0.01, seed=2)
    assert second["policy_loss"] < first["policy_loss"]
    resumed = trainee.begin(tiny(), recipe)
    trainee.resume(resumed, tmp_path)
    assert trainee.learn(resumed, examples, 0.01, seed=2) == pytest.approx(second)
    for ours, theirs in zip(resumed.core.get_weights(), learner.core.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_missing_checkpoint_is_named(tmp_path: Path, small_networks: None):
    with pytest.raises(cli.UserError, match="no checkpoint"):
        trainee.resume(trainee.begin(tiny(), Recipe(value_target="outcome")), tmp_path)


# The gate -------------------------------------------------------------------------------------------------------------


def meet(path: Path, challenger: Any = None, champion: Any = None, **more: Any) -> dict[str, Any]:
    players = challenger or RandomPlayer(name="punisher", tactical=True), champion or RandomPlayer()
    return gate.meet(*players, games=60, plies=4, seed=2**63 + 5, path=path, **more)


def test_the_score_is_the_challengers(tmp_path: Path):
    strong = meet(tmp_path / "a.json")
    assert strong["score"] > 0.8
    weak = meet(tmp_path / "b.json", RandomPlayer(), RandomPlayer(name="punisher", tactical=True))
    assert weak["score"] < 0.2
    assert strong["distinct_games"] == 60
    stored = json.loads((tmp_path / "a.json").read_text())
    assert len(stored["results"]) == len(stored["lines"]) == 60


def test_an_interrupted_arena_goes_on_after_its_last_block(tmp_path: Path):
    whole = meet(tmp_path / "whole.json")
    told: list[int] = []

    def dies(number: int) -> None:
        told.append(number)
        if sum(told) > 45:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        meet(tmp_path / "cut.json", advance=dies)
    assert len(json.loads((tmp_path / "cut.json").read_text())["results"]) == gate.BLOCK
    assert meet(tmp_path / "cut.json") == whole
    assert (tmp_path / "cut.json").read_text() == (tmp_path / "whole.json").read_text()


# The loop -------------------------------------------------------------------------------------------------------------

SMOKE = ["--preset", "smoke", "--judge-boards", "5"]


def metrics_of(out: Path) -> list[dict[str, Any]]:
    """The metrics of all finished iterations, without what time they took."""
    found = [json.loads(path.read_text()) for path in sorted(out.glob("iterations/*/metrics.json"))]
    return [{name: value for name, value in each.items() if name != "seconds"} for each in found]


def games_of(out: Path) -> list[str]:
    """Content hashes of all shards."""
    manifests = [schema.read_manifest(path.parent) for path in sorted(out.glob("iterations/*/games/manifest.json"))]
    return [shard["content_hash"] for manifest in manifests for shard in manifest["shards"]]


def weights(path: Path) -> list[Any]:
    return list(saved.load_core(path).get_weights())


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_run_leaves_what_it_promises_and_can_be_extended(
    tmp_path: Path, small_networks: None, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "run"
    assert selfplay.main([*SMOKE, "--out", str(out)]) == 0
    assert "of 2 accepted" in capsys.readouterr().out
    for name in ("best.keras", "config.json", "run.json", "metrics.json", "history.csv", "curves.png"):
        assert (out / name).is_file(), name
    first = metrics_of(out)
    assert [each["iteration"] for each in first] == [1, 2]
    for each in first:
        assert each["games"] == 6
        assert 0 <= each["score"] <= 1
        assert each["accepted"] == (each["score"] >= 0.55)
        assert {"exact", "class", "blocked", "policy_loss", "value_error", "replay_boards"} <= set(each)
    for folder in sorted(out.glob("iterations/*/games")):
        read(folder)

    assert selfplay.main([*SMOKE, "--out", str(out)]) == 0
    assert "finished before, nothing to do" in capsys.readouterr().out
    assert selfplay.main([*SMOKE, "--out", str(out), "--lr", "0.5"]) == 1
    assert "lr: 0.001 → 0.5" in capsys.readouterr().err
    assert selfplay.main([*SMOKE, "--out", str(out), "--iterations", "3"]) == 0
    assert metrics_of(out)[:2] == first
    assert len(metrics_of(out)) == 3
    assert len(list(out.glob("iterations/*/checkpoint.npz"))) == 1  # what nothing will ask for is deleted

    whole = tmp_path / "whole"
    assert selfplay.main([*SMOKE, "--out", str(whole), "--iterations", "3"]) == 0
    assert metrics_of(whole) == metrics_of(out)
    assert games_of(whole) == games_of(out)
    assert same(weights(whole / "best.keras"), weights(out / "best.keras"))


@pytest.mark.parametrize("accepted", [True, False])
def test_the_gate_alone_decides_who_plays_next(
    accepted: bool, tmp_path: Path, small_networks: None, monkeypatch: pytest.MonkeyPatch
):
    score = {"score": 0.55 if accepted else 0.54, "distinct_games": 4}
    monkeypatch.setattr(gate, "meet", lambda *_, **__: score)
    monkeypatch.setattr(selfplay, "_judged", lambda _: {"class": 0.0})  # the judge's word changes nothing
    assert selfplay.main([*SMOKE, "--out", str(tmp_path)]) == 0
    initial, best = weights(tmp_path / "initial.keras"), weights(tmp_path / "best.keras")
    assert same(initial, best) != accepted
    last = tmp_path / "iterations" / "0002"
    names = [schema.read_manifest(tmp_path / "iterations" / each / "games")["identity"]["network"] for each in
             ("0001", "0002")]  # fmt: skip
    assert (names[0] != names[1]) == accepted
    assert (last / "candidate.keras").exists() == accepted
    if accepted:
        assert same(weights(last / "candidate.keras"), best)


def test_a_rejected_trainee_trains_on(tmp_path: Path, small_networks: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "meet", lambda *_, **__: {"score": 0.0, "distinct_games": 4})
    learned: list[str] = []
    learn = trainee.learn

    def watched(learner: Any, *rest: Any) -> Any:
        learned.append(weights_hash(learner.core))
        result = learn(learner, *rest)
        learned.append(weights_hash(learner.core))
        return result

    monkeypatch.setattr(trainee, "learn", watched)
    assert selfplay.main([*SMOKE, "--out", str(tmp_path)]) == 0
    assert learned[1] == learned[2] != learned[0]
    assert learned[3] != learned[2]


def test_without_a_gate_every_candidate_is_taken(tmp_path: Path, small_networks: None):
    assert selfplay.main([*SMOKE, "--gate", "none", "--extra-noise", "1", "--out", str(tmp_path)]) == 0
    assert [each["accepted"] for each in metrics_of(tmp_path)] == [True, True]
    assert [each["score"] for each in metrics_of(tmp_path)] == [None, None]
    noise = [schema.read_manifest(tmp_path / "iterations" / each / "games")["identity"]["noise_fraction"] for each in
             ("0001", "0002")]  # fmt: skip
    assert noise == [0.5, 0.25]


def test_games_only_plays_with_the_network_as_it_is(
    tmp_path: Path, small_networks: None, capsys: pytest.CaptureFixture[str]
):
    tiny().save(tmp_path / "some.keras")
    command = ["--preset", "smoke", "--games-only", "--init", str(tmp_path / "some.keras"), "--out"]
    assert selfplay.main([*command, str(tmp_path / "games")]) == 0
    assert "6 games" in capsys.readouterr().out
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 6
    assert not (tmp_path / "games" / "best.keras").exists()
    assert selfplay.main([*command, str(tmp_path / "games"), "--games", "9", "--lanes", "2"]) == 0
    assert len({row["game_id"] for row in read(tmp_path / "games")}) == 9


def test_a_killed_loop_goes_on_in_every_phase(tmp_path: Path):
    """kill -9 of real processes in self-play, in training and in the arena; then the same games and metrics."""
    keep = [*SMOKE, "--arena-games", "44", "--games", "12", "--iterations", "1"]
    out, whole = tmp_path / "cut", tmp_path / "whole"
    folder = out / "iterations" / "0001"

    def killed_when(ready: Callable[[], bool]) -> None:
        command = [sys.executable, "-m", "distill.selfplay", *keep, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while not ready():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    killed_when(lambda: any(folder.glob("games/shard-*")))
    assert not (folder / "games" / "manifest.json").exists(), "it was to die in self-play"
    kept = {path: path.read_bytes() for path in folder.glob("games/shard-*")}
    killed_when((folder / "games" / "manifest.json").exists)
    assert not (folder / "checkpoint.npz").exists(), "it was to die in training"
    killed_when((folder / "candidate.keras").exists)
    assert not (folder / "metrics.json").exists(), "it was to die in the arena"
    assert selfplay.main([*keep, "--out", str(out)]) == 0
    assert selfplay.main([*keep, "--out", str(whole)]) == 0
    assert {path: path.read_bytes() for path in kept} == kept
    assert games_of(out) == games_of(whole)
    assert metrics_of(out) == metrics_of(whole)
    assert [row["game_id"] for row in read(folder / "games")] == [
        row["game_id"] for row in read(whole / "iterations" / "0001" / "games")
    ]


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_is_a_config(preset: str):
    config = cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS)
    assert config.rate(1) > 0
    assert config.recipe().lr == config.lr


def test_the_presets_are_the_published_ones():
    e1, e2, d = (cli.parse(SelfPlayConfig, ["--preset", name], PRESETS) for name in ("e1", "e2", "d"))
    assert (e1.sampling_plies, e1.simulations, e1.games, e1.dirichlet_alpha, e1.noise_fraction) == (
        12,
        200,
        4,
        0.4,
        0.2,
    )
    assert (e1.epochs, e1.batch_size, e1.train_boards, e1.replay_games, e1.iterations) == (3, 32, 256, 16, 1080)
    assert (e2.sampling_plies, e2.simulations, e2.games, e2.dirichlet_alpha, e2.noise_fraction) == (
        10,
        110,
        16,
        0.3,
        0.25,
    )
    assert (e2.epochs, e2.batch_size, e2.train_boards, e2.replay_games, e2.extra_noise) == (20, 32, 480, 48, 100)
    assert [e2.rate(iteration) for iteration in (1, 49, 50, 150, 250, 2000)] == [0.2, 0.2, 2e-2, 2e-3, 2e-4, 2e-4]
    assert (d.exploration, d.sampling_plies, d.noise_fraction, d.dirichlet_alpha) == (1.5, 10, 0.25, 0.3)
    assert (d.arch, d.replay_rows, d.gate, d.arena_games) == ("resnet", 200_000, 0.55, 100)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--games", "0"], "--games 0 must be at least 1"),
        (["--games-only"], "--games-only needs --init"),
        (["--gate", "1"], "--gate 1.0 must be between 0 and 1, or none"),
        (["--arena-games", "3"], "--arena-games 3 must be an even number"),
        (["--arena-plies", "1"], "there are only about 4 openings"),
        (["--lr-drops", "soon"], "--lr-drops soon must be ITERATION:RATE"),
        (["--lr-drops", "5:-1"], "--lr-drops 5:-1 must be positive rates"),
        (["--replay-rows", "0"], "--replay-rows 0 must be at least 1, or none"),
        (["--epochs", "0"], "--epochs 0 must be positive"),
        (["--opening-moves", "3", "1"], "--opening-moves 3 1"),
        (["--simulations", "0"], "--simulations 0"),
    ],
)
def test_wrong_flags_are_named(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert selfplay.main(flags) == 2
    assert message in capsys.readouterr().err


def test_a_missing_network_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    gone = tmp_path / "gone"
    assert selfplay.main(["--init", str(gone), "--out", str(tmp_path / "run")]) == 1
    assert str(gone) in capsys.readouterr().err
    tiny(value_head=False).save(tmp_path / "mute.keras")
    assert selfplay.main([*SMOKE, "--init", str(tmp_path / "mute.keras"), "--out", str(tmp_path / "run")]) == 1
    assert "no value head; train one with --value-target blend" in capsys.readouterr().err
    tiny().save(tmp_path / "odd.keras")
    assert selfplay.main([*SMOKE, "--init", str(tmp_path / "odd.keras"), "--out", str(tmp_path / "odd")]) == 1
    assert "column: not a network this distill can train on" in capsys.readouterr().err

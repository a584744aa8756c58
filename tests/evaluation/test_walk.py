"""The enumeration of a player's games as first mover, against plain Python and the solver: any number of workers and a
killed run give the same files, other players are refused, and a damaged file never passes.
"""

import importlib.util
import io
import shutil

import numpy as np
import pytest
from helpers import REFERENCE, state

from distill import walk as command
from distill.common import UserError, run_folder
from distill.evaluation import walk
from distill.game import rules
from distill.game.rules import EMPTY, Position
from distill.players import solver

START = rules.from_moves("6724772136625432")
"""X moves and can win."""


def choose(current: walk.Keys, mask: walk.Keys) -> np.ndarray:
    """A player of tests: the legal column that a fixed function of the position names."""
    legal = rules.legal_mask(mask)
    number = (current * np.uint64(7) + mask) % np.uint64(1_000_003) % legal.sum(1).astype(np.uint64)
    return np.argmax(legal.cumsum(1) > number[:, None].astype(np.int64), axis=1)


def move_of(position: Position) -> int:
    return int(choose(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))[0])


def replies_to(position: Position, move: int) -> list[Position]:
    after = rules.next_position(position, move)
    return [] if rules.is_won(after) else [rules.next_position(after, reply) for reply in rules.legal_columns(after)]


def key_of(position: Position) -> int:
    return position.current + position.mask


def test_layers_and_lost_games_are_those_of_plain_python(tmp_path):
    layer, last, layers = {EMPTY}, {}, {}
    for last, following in walk.all_replies(tmp_path, choose, most_stones=10):
        layers[last["stones"]] = np.array(sorted(map(key_of, layer)), np.uint64)
        after = [reply for position in layer for reply in replies_to(position, move_of(position))]
        wins = sum(rules.is_won(rules.next_position(position, move_of(position))) for position in layer)
        assert last == {
            "stones": last["stones"], "positions": len(layer), "won": wins, "draws": 0,
            "losing_replies": sum(map(rules.is_won, after)),
        }  # fmt: skip
        layer = {position for position in after if not rules.is_over(position)}
        assert following.tolist() == sorted(map(key_of, layer))
    assert last["stones"] == 10
    lost, drawn = walk.not_won(tmp_path, layers)
    assert drawn == []
    assert len(lost) == len({*lost}) > last["losing_replies"] > 0
    for line in lost:
        positions = [rules.from_moves(line[:ply]) for ply in range(len(line) + 1)]
        assert rules.is_won(positions[-1])
        assert [int(move) - 1 for move in line[::2]] == [move_of(position) for position in positions[:-1:2]]


def test_a_killed_enumeration_resumes_to_the_same_files(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "CHUNK", 64)
    calls = 0

    def killed(current: walk.Keys, mask: walk.Keys) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        return choose(current, mask)

    with pytest.raises(KeyboardInterrupt):
        list(walk.all_replies(tmp_path / "killed", killed, most_stones=8))
    assert (np.load(tmp_path / "killed" / "moves-08.npy") >= 0).sum() == 64
    for name in ("killed", "whole"):
        list(walk.all_replies(tmp_path / name, choose, most_stones=8))
    assert state(tmp_path / "killed") == state(tmp_path / "whole")


def test_boards_and_their_mirror_images_are_evaluated_once(tmp_path, monkeypatch, capsys):
    evaluated = 0

    def counted(name: str, known: tuple[str, ...], keys: walk.Keys) -> tuple[np.ndarray, np.ndarray]:
        nonlocal evaluated
        evaluated += len(keys)
        return moves(name, known, keys)

    moves = walk._moves
    monkeypatch.setattr(walk, "_moves", counted)
    flags = ["pillar", "--replies", "all", "--most-stones", "8", "--workers", "1"]
    assert command.main([*flags, "--out", str(tmp_path / "each")]) == 0
    without = evaluated
    assert command.main([*flags, "--symmetric", "--out", str(tmp_path / "once")]) == 0
    assert evaluated - without < 0.55 * without
    layers = {name: content for name, content in state(tmp_path / "each").items() if name.endswith(".npy")}
    assert len(layers) == 5
    assert {name: state(tmp_path / "once")[name] for name in layers} == layers
    for player in ("cnn", "random"):  # both with other moves in mirrored boards; the second has no policy
        code = command.main([player, *flags[1:], "--symmetric", "--out", str(tmp_path / player)])
        error = capsys.readouterr().err
        assert (code, "omit --symmetric" in error) == ((1, True) if player == "cnn" else (0, False))
    assert command.main(["pillar", "--symmetric"]) == 2
    assert "need --replies all" in capsys.readouterr().err


def test_best_replies_are_those_of_plain_recursion():
    """Each of the player's positions once; a move that gives the win away ends its line."""
    assert max(solver.scores(START)) > 0
    layer, positions, given_away = {START}, [], 0
    while layer:
        positions.append(len(layer))
        following: set[Position] = set()
        for position in layer:
            after = rules.next_position(position, move_of(position))
            if rules.is_won(after):
                continue
            scores = solver.scores(after)
            if max(scores) >= 0:
                given_away += 1
                continue
            best = [column for column in rules.legal_columns(after) if scores[column] == max(scores)]
            following |= {rules.next_position(after, column) for column in best}
        layer = following
    layers = [*walk.best_replies(choose, workers=1, start=START.current + START.mask)]
    assert [count for count, _ in layers] == positions
    assert sum(len(lines) for _, lines in layers) == given_away > 0


def test_the_command_counts_the_first_layers_of_what_ships_and_refuses_others(tmp_path, capsys):
    flags = ["--replies", "all", "--most-stones", "4", "--workers", "1", "--out", str(tmp_path)]
    assert command.main(["pillar", *flags]) == 0
    printed = capsys.readouterr().out
    assert "up to 4 stones, not complete: 57 positions" in printed
    assert "pillar (saved_model/model.onnx, float32) moving first" in printed
    before = state(tmp_path)
    assert command.main(["random", *flags]) == 1
    error = capsys.readouterr().err
    assert "holds walk against all replies with other settings (" in error
    assert "player pillar there, random here" in error
    assert command.main(["pillar", *flags, "--most-stones", "2"]) == 0
    assert "finished before: pillar (saved_model/model.onnx, float32)" in capsys.readouterr().out
    assert state(tmp_path) == before
    whole = (tmp_path / "moves-02.npy").read_bytes()
    of_another_type = io.BytesIO()
    np.save(of_another_type, np.load(tmp_path / "moves-02.npy").astype(np.float64))
    for damaged in (b"", whole[:-1], (tmp_path / "moves-00.npy").read_bytes(), of_another_type.getvalue()):
        (tmp_path / "moves-02.npy").write_bytes(damaged)
        assert command.main(["pillar", *flags, "--most-stones", "6"]) == 1
        assert "moves-02.npy: damaged; restore it" in capsys.readouterr().err
        assert run_folder.result_of(tmp_path) == {}
    (tmp_path / "moves-02.npy").write_bytes(whole)


def test_an_8_bit_file_is_walked_only_under_its_own_name(tmp_path, monkeypatch, capsys):
    shipped, published = REFERENCE / "pillar-large" / "saved_model", tmp_path / "models" / "small" / "saved_model"
    published.mkdir(parents=True)
    for name in ("model.int8.onnx", "export.json"):
        shutil.copy(shipped / name, published)
    monkeypatch.chdir(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tensorflow" else find(name))
    flags = ["--replies", "all", "--most-stones", "2", "--workers", "1", "--out", "walk"]
    assert command.main(["models/small", *flags]) == 1
    assert "only its 8-bit copy saved_model/model.int8.onnx can be evaluated here" in capsys.readouterr().err
    assert not (tmp_path / "walk").exists()
    file = str(published / "model.int8.onnx")
    assert command.main([file, *flags]) == 0
    assert "(model.int8.onnx, int8) moving first" in capsys.readouterr().out
    (network,) = run_folder.finished("walk", "walk against all replies").identity["networks"].values()
    assert (network["file"], network["precision"]) == ("model.int8.onnx", "int8")


def test_a_player_is_tried_before_a_walk_is_deleted_and_stays_the_same_in_worker_processes(
    tmp_path, monkeypatch, complaint
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.py").write_text("def move(boards, seeds): return (boards[:, 0] == 0).argmax(1)\n")
    (tmp_path / "later.py").write_text("def move(boards, seeds): raise ValueError('no weights')\n")
    words = ["--replies", "all", "--most-stones", "4", "--workers", "1", "--out", "walk"]
    assert command.main(["first:move", *words, "--restart"]) == 0
    record = run_folder.finished("walk", "walk against all replies")
    assert not record.settings["restart"], "--config with this record deletes nothing"
    whole = state(tmp_path / "walk")
    assert complaint(command, "later:move", *words, "--restart").startswith(
        "distill walk: later:move: ValueError: no w"
    )
    assert "symmetric None there, True here" in complaint(command, "first:move", *words, "--symmetric")
    assert state(tmp_path / "walk") == whole
    with pytest.raises(UserError, match="first:move: its files have changed since the start"):
        walk._moves("first:move", ("first:move", "another hash"), np.zeros(1, np.uint64))


def test_worker_processes_choose_the_same_moves(tmp_path):
    *_, (_, keys) = walk.all_replies(tmp_path, choose, most_stones=6)
    current, mask = rules.from_keys(keys)
    assert len(mask) > walk.BATCH
    one, two = (walk.chooser("random", workers)(current, mask) for workers in (1, 2))
    assert np.array_equal(one, two)

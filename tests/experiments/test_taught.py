"""A packed table that a network labels: the boards stay, visits and value are what the network says of each.

A student's games: it plays its best moves, the network labels every board.
"""

from pathlib import Path

import numpy as np
import pytest
from helpers import change_record, make_games, shard_hashes, write_games

import distill
from distill import prepare
from distill.common import UserError
from distill.game import encoding, rules
from distill.games import reader
from distill.networks import saved
from distill.players.names import make
from distill.players.player import checked_choices
from experiments import taught

COLUMNS = ("current", "mask", "outcome", "visits", "value")


def rows_of(folder: Path) -> dict[str, np.ndarray]:
    (run,) = reader.open_runs([folder])
    reader.verify([run])
    parts = [reader.read(shard, COLUMNS) for shard in run.shards]
    return {name: np.concatenate([rows[name] for rows in parts]) for name in COLUMNS}


def check_labels(network: Path, boards: np.ndarray, visits: np.ndarray, value: np.ndarray) -> None:
    said = saved.predict_with(saved.load_core(network / "best.keras"))(boards)
    half = 0.6  # of a step, for the two forms of the arithmetic differ
    assert np.abs(visits / 255 - said["policy"] / said["policy"].max(1, keepdims=True)).max() < half / 255
    assert np.abs(value - said["value"]).max() < half / 127


def test_a_network_labels_every_board(tmp_path, monkeypatch):
    network, cnn = (Path(f"models/reference/{name}").resolve() for name in ("pillar", "cnn"))
    monkeypatch.chdir(tmp_path)
    write_games(Path("data/games"), make_games(10, seed=1))
    assert prepare.main(["--packed", "boards", "--exclude"]) == 0
    taught.teach(Path("boards"), network, Path("out"))
    before, after = rows_of(Path("boards")), rows_of(Path("out"))
    for name in ("current", "mask", "outcome"):
        assert np.array_equal(before[name], after[name]), name

    check_labels(network, encoding.boards(before["current"], before["mask"]), after["visits"], after["value"])

    whole = shard_hashes(Path("out"))
    change_record(Path("out"), lambda record: record.update(result=None))  # as a killed run leaves it
    taught.teach(Path("boards"), network, Path("out"))
    assert shard_hashes(Path("out")) == whole
    with pytest.raises(UserError, match="out: holds packed boards; name another"):
        taught.teach(Path("boards"), network, Path("out"))
    with pytest.raises(UserError, match="no value head"):
        taught.teach(Path("boards"), cnn, Path("other"))


def test_a_student_plays_its_best_moves_and_a_network_labels_every_board():
    student, teacher = make("cnn", fast=True), make("pillar", fast=True)
    boards, visits, value, games = taught.play_games(student, teacher, games=40, temperature=1.5, seed=1)
    check_labels(Path("models/reference/pillar"), boards, visits, value)
    current, mask = encoding.bitboards(boards)
    stones = np.bitwise_count(mask)
    assert len(np.unique(current + mask)) == len(mask)
    own = stones % 2 == 0
    moves = checked_choices(student, current[own], mask[own], current[own]).moves
    stone = rules.landing(mask[own])[np.arange(own.sum()), moves]
    after = (current[own] ^ mask[own]) + (mask[own] | stone)
    assert np.isin((current + mask)[~own], after).all()
    of_games = [games[stones == number].sum() for number in range(stones.max() + 1)]
    assert of_games[0] == 40
    assert of_games == sorted(of_games, reverse=True)
    with pytest.raises(UserError, match="cnn: only a network with a value head"):
        taught.play_games(student, student, games=1, temperature=1.5, seed=1)


def test_a_folder_in_use_is_refused_before_the_games(tmp_path, monkeypatch):
    board = np.zeros((1, 6, 7), np.int8)
    distill.write_labels(board, [[0, 0, 0, 1, 0, 0, 0]], [0.0], tmp_path / "03")
    monkeypatch.setattr(taught, "play_games", None)  # not called
    monkeypatch.setattr("sys.argv", ["taught", "--network", "pillar", "--student", "cnn", "--out", str(tmp_path)])
    with pytest.raises(UserError, match="03: exists"):
        taught.main()

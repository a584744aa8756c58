"""Three ways to split games: test games are in no other table, and only a split by game keeps games apart."""

from pathlib import Path

import pytest

from distill import networks
from distill.common import UserError
from experiments import splits
from tests.helpers import make_games, write_games
from tests.network_helpers import tiny_network

GAMES = 60


@pytest.fixture
def games(tmp_path, monkeypatch):
    """Random games, most of whose first boards several of them share."""
    monkeypatch.chdir(tmp_path)
    write_games(Path("games"), make_games(GAMES, seed=1))
    return splits.read(Path("games"), GAMES)[1]


def keys(table):
    return set((table.current + table.mask).tolist())


def test_test_games_are_in_no_other_table(games):
    tables = {split: splits.split_of(games, split, seed=3) for split in splits.SPLITS}
    test = keys(tables["games"]["test"])
    for table in tables.values():
        assert keys(table["test"]) == test
        rows = sum(table[name].count.sum() for name in ("training", "test"))
        assert rows < len(games["game_id"])
    assert keys(splits.split_of(games, "games", seed=4)["test"]) != test


def test_what_lies_on_both_sides(games):
    games = games | {"value": games["game_id"] / GAMES}  # tells which game a board of one row is from
    boards, of_games = {}, {}
    for split in splits.SPLITS:
        tables = splits.split_of(games, split, seed=0)
        training, validation = tables["training"], tables["validation"]
        boards[split] = len(keys(training) & keys(validation)) / len(validation)
        one, other = (set(table.value[table.count == 1].round(3).tolist()) for table in (training, validation))
        of_games[split] = len(one & other) / len(other)
        if split != "boards":
            assert sum(table.count.sum() for table in tables.values()) == len(games["game_id"])
    assert of_games["games"] == 0
    assert of_games["rows"] > 0.9
    assert boards["boards"] > 0.7 > boards["rows"], "of most boards one image is trained on"


def test_every_network_is_trained_once(games, capsys, monkeypatch, eagerly, undrawn):
    built, words = [], "splits --data games --games 60 --archs cnn --seeds 1 --epochs 1"
    monkeypatch.setattr(networks, "build", lambda arch: built.append(arch) or tiny_network())
    monkeypatch.setattr("sys.argv", words.split())
    splits.main()
    first = capsys.readouterr().out
    assert [line.split("|")[2].strip() for line in first.splitlines()[2:]] == ["games", "rows", "boards"]
    splits.main()
    assert capsys.readouterr().out == first
    assert built == ["cnn"] * 3
    monkeypatch.setattr("sys.argv", [*words.split(), "--restart"])
    splits.main()
    assert built == ["cnn"] * 6
    monkeypatch.setattr("sys.argv", words.replace("cnn", "cmn").split())
    with pytest.raises(SystemExit):
        splits.main()
    assert "--archs: cmn must be " in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", words.replace("60", "61").split())
    with pytest.raises(UserError, match="has 60 games, not 61"):
        splits.main()


def test_intervals_are_students_t_over_the_seeds():
    assert splits.with_interval([0.5, 0.6, 0.7], ".1f") == "60.0 ±24.8", "4.303 · 10 / √3"
    assert splits.with_interval([0.5], "+.1f") == "+50.0"

"""Games of a network's own search (`games/selfplay.py`). Properties:

- they are ordinary shards, with one vote a row and moves drawn by chance in the first plies alone;
- a shard that is missing or was never finished is played again to the same bytes; a finished one is kept;
- more games extend a run; other settings and another network are refused.
"""

from typing import Any

import puct_helpers
from helpers import state
from network_helpers import killed_at
from selfplay_helpers import SETTINGS, play_into, read

from distill.common import run_folder
from distill.common.settings import build
from distill.games import reader, schema
from distill.games.settings import SelfPlaySettings
from distill.mcts import puct


def test_games_are_ordinary_shards(tmp_path):
    told: list[int] = []
    result = play_into(tmp_path, advance=told.append)
    rows = read(tmp_path)
    assert result["games"] == sum(told) == 10
    assert result["rows"] == len(rows)
    assert [(row["game_id"], row["ply"]) for row in rows] == sorted((row["game_id"], row["ply"]) for row in rows)
    assert {row["game_id"] for row in rows} == set(range(10))
    for row in rows:
        assert row["votes"] == [row["label"]]
        assert sum(row["visits"]) == row["simulations"] == 6
        assert row["ply"] < 6 or row["move"] == row["label"]
    assert any(row["move"] != row["label"] for row in rows)
    assert reader.open_run(tmp_path).identity == {**SETTINGS.games_identity("some network"), "shard_games": 4}
    assert reader.open_run(tmp_path).games == 10


def test_a_missing_shard_is_made_again_to_the_same_bytes(tmp_path):
    first = play_into(tmp_path)
    before, kept = state(tmp_path), (tmp_path / schema.shard_name(1)).stat().st_mtime_ns
    (tmp_path / schema.shard_name(0)).unlink()
    assert play_into(tmp_path, lanes=7)["shards"] == first["shards"]
    assert state(tmp_path) == before
    assert (tmp_path / schema.shard_name(1)).stat().st_mtime_ns == kept


def test_an_interrupted_run_ends_with_the_games_of_an_uninterrupted_one(tmp_path, monkeypatch):
    """The games of finished shards are not played again."""
    with killed_at(puct_helpers, "predict", 216):
        play_into(tmp_path / "cut", evaluate=lambda *boards: puct_helpers.predict(*boards))
    finished = len(list((tmp_path / "cut").glob("shard-*.parquet")))
    assert 0 < finished < 3
    assert run_folder.result_of(tmp_path / "cut") == {}
    left = 10 - 4 * finished
    play, played, told = puct.play, list[int](), list[int]()

    def spied(current: Any, *arguments: Any, **options: Any) -> Any:
        played.append(len(current))
        return play(current, *arguments, **options)

    monkeypatch.setattr(puct, "play", spied)
    cut = play_into(tmp_path / "cut", advance=told.append)
    assert (played, sum(told)) == ([left], left)
    assert cut["shards"] == play_into(tmp_path / "whole")["shards"]
    assert [path.name for path in (tmp_path / "cut").glob(".*")] == [".lock"]


def test_gumbel_games_record_their_policy_in_thousandths_and_leaves_may_be_valued_by_playouts(tmp_path):
    settings = build(SelfPlaySettings, dict(SETTINGS), {"root": "gumbel"})
    by_value = play_into(tmp_path / "value", 6, settings)
    rows = read(tmp_path / "value")
    assert {sum(row["visits"]) for row in rows} == {1000}
    assert {row["simulations"] for row in rows} == {6}
    by_playout = play_into(tmp_path / "playout", 6, build(SelfPlaySettings, dict(settings), {"leaves": "playout"}))
    read(tmp_path / "playout")
    assert by_value["shards"] != by_playout["shards"]

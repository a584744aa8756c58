"""The ladder of all players: a small run is rated as the arena rates, an interrupted one resumes, and the shipped
measurements give the shipped table.
"""

import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from distill.common import provenance, read_object
from distill.players import match, names
from distill.players.intervals import elo_with_intervals
from distill.players.levels import LEVELS
from experiments.players import __main__ as ladder
from experiments.players import measure
from experiments.players import page as pages

SMALL = ["random", "punisher", "--games", "20", "--boards", "30", "--out", "out/measured.json", "--page", "page.md"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_small_run_writes_the_table_and_its_csv_with_the_ratings_of_the_arena(here, capsys):
    Path("page.md").write_text(f"# Ours\n\n{pages.BEGIN}\nold\n{pages.END}\n\nAfter it.\n")
    assert ladder.main(SMALL) == 0
    text = Path("page.md").read_text()
    assert text.startswith("# Ours\n")
    assert text.endswith("\n\nAfter it.\n")
    assert "old" not in text
    assert text.index(pages.BEGIN) < text.index("| `punisher`") < text.index("| `random`") < text.index(pages.END)
    table = pd.read_csv("page.csv")
    assert table.player.tolist() == ["punisher", "random"]
    assert table.elo[1] == 0
    assert table.games.tolist() == [20, 20]
    assert table.boards.tolist() == [30, 30]
    assert capsys.readouterr().out.splitlines()[-1].startswith("page.md: 2 players, punisher is first with +")
    pairings = match.paired(0, 1, match.openings(10, 6, 0))
    games = match.play_games([names.make("random"), names.make("punisher")], pairings, 0)
    other, best = elo_with_intervals(match.pair_points(games, pairings, 2), 0)
    assert table.elo[0] == pytest.approx(best.mean - other.mean, abs=0.01)


def test_measured_pairs_are_kept_and_an_interrupted_run_resumes(here, monkeypatch, capsys):
    played = []
    play = measure.play_games

    def interrupted(players, *rest):
        played.append([player.name for player in players])
        if len(played) == 2:
            signal.raise_signal(signal.SIGTERM)
        return play(players, *rest)

    monkeypatch.setattr(measure, "play_games", interrupted)
    three = ["random", "beginner", *SMALL[1:]]
    assert ladder.main(three) == 143
    assert "python -m experiments.players random beginner punisher" in capsys.readouterr().err
    assert ladder.main(three) == 0
    assert played == [
        ["random", "beginner"], ["beginner", "punisher"], ["beginner", "punisher"], ["random", "punisher"]
    ]  # fmt: skip
    written = Path("page.md").read_bytes()
    assert ladder.main(three) == 0
    assert len(played) == 4
    assert Path("page.md").read_bytes() == written
    assert ladder.main([*three, "--seed", "1"]) == 0
    assert len(played) == 7
    measured = Path("out/measured.json")
    measured.write_text(damaged := measured.read_text()[:-4])  # a typing mistake
    assert ladder.main(three) == 1
    assert "measured.json: holds no measurements" in capsys.readouterr().err
    assert measured.read_text() == damaged


def test_a_page_without_markers_and_players_that_cannot_be_ranked_are_refused(here, capsys):
    for wrong in (["random"], ["random", "random"], ["random", "nobody"], ["random", "punisher"]):
        assert ladder.main(wrong) == 2
        (line,) = capsys.readouterr().err.splitlines()
    assert "--out and --page must name other files" in line, "they hold the ladder"
    assert ladder.main([*SMALL[:-2], "--games", "20"]) == 2
    assert "--page must name other files" in capsys.readouterr().err
    Path("page.csv").write_text("my,own\n")
    assert ladder.main(SMALL) == 1
    assert "page.csv: would be replaced" in capsys.readouterr().err
    Path("page.md").write_text("# Something else\n")
    assert ladder.main(SMALL) == 1
    assert "page.md: has no place for the table" in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_shipped_measurements_are_those_of_the_ladder_and_give_its_table():
    """A pair that is no longer asked for would move ratings where somebody reads the folder."""
    config = ladder.PlayersConfig()
    stored = read_object(config.out)
    asked = {" ".join(pair): pair for pair in config.pairs()}
    assert stored["pairs"].keys() == asked.keys()
    assert stored["grades"].keys() == stored["times"].keys() == set(config.players)
    met = {asked[name]: record["result"] for name, record in stored["pairs"].items()}
    shares, speeds = ({name: record["result"] for name, record in stored[kind].items()} for kind in ("grades", "times"))
    rows = measure.rows(config.players, met, speeds, shares, config.seed)
    table = pd.read_csv(provenance.checkout() / "docs" / "benchmark.csv")
    assert [row.player for row in rows] == table.player.tolist()
    assert table.elo.to_numpy() == pytest.approx([row.elo.mean for row in rows], abs=1e-4)
    assert stored["grades"]["pillar-large"]["networks"]["pillar-large"]["precision"] == "float32"
    assert stored["grades"]["uct:100"]["networks"] == {}


def test_the_shipped_table_shows_the_levels_apart():
    table = pd.read_csv(provenance.checkout() / "docs" / "benchmark.csv").set_index("player")
    assert (np.diff(table.elo) < 0).all()
    for one, other in pairwise(LEVELS):
        assert table.elo_high[one] < table.elo_low[other], f"{one} and {other}"
        assert table.elo[other] - table.elo[one] < 300, f"{one} and {other}"
    assert table.games.min() >= 200
    page = (provenance.checkout() / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert all(f"| `{player}`" in page for player in table.index)

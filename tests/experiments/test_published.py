"""The report beside the article: its counts and accuracies are those of a plain computation."""

import re
from pathlib import Path

import numpy as np
import pytest

from distill.common import UserError, run_folder
from distill.games import reader, schema
from distill.networks import saved
from distill.training.accuracy import answers
from experiments import published
from tests.helpers import make_games, write_games
from tests.network_helpers import tiny_network

GAMES, NETWORK = Path("games"), Path("models/cnn")


@pytest.fixture
def lines(tmp_path, monkeypatch, capsys):
    """The report on random games and an untrained network, (first column, article, ours)."""
    root = Path.cwd()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published.provenance, "shipped", lambda place: root / place)
    write_games(GAMES, make_games(40, seed=1), identity={"noise_at": "move", "seed": 0})
    with run_folder.opened(
        NETWORK, "training run", {}, settings={"validation_fraction": 0.15}, files=["best.keras", "history.csv"]
    ) as folder:
        folder.begin()
        saved.save_network(tiny_network(), NETWORK / "best.keras")
        (NETWORK / "history.csv").write_text("epoch,seconds\n1,60\n2,120\n")
        games = [{"settings": dict(reader.open_run(GAMES).identity), "games": 40}]
        folder.finish({"arch": "cnn", "epochs": 2.0, "training_games": games})
    monkeypatch.setattr("sys.argv", ["published", str(GAMES), str(NETWORK)])
    published.main()
    cells = [[cell.strip() for cell in line.split("|")[1:4]] for line in capsys.readouterr().out.splitlines()[2:]]
    return [tuple(line) for line in cells]


def test_counts_stand_beside_the_articles(lines):
    rows = reader.raw_rows([GAMES])
    boards = {(int(current), int(mask)) for current, mask in zip(rows.current, rows.mask, strict=True)}
    assert lines[:4] == [
        ("games", "20,000", "40, noise on the move"),
        ("rows", "348,844", f"{len(rows)}"),
        ("rows a game", "17.4; 19.0 of 15,000 games", f"{len(rows) / 40:.1f}"),
        ("distinct boards", "not stated", f"{len(boards)}"),
    ]
    with_mirrors = int(lines[4][2].replace(",", ""))
    assert len(boards) < with_mirrors < 2 * len(boards), "some boards are their own mirror, or have it among the others"


def test_accuracy_is_measured_on_held_out_and_training_games(lines):
    predict = saved.predict_with(saved.load_core(NETWORK / "best.keras"))
    of_network = lines[5:]
    assert len(of_network) == 8
    for first, split, article in ((0, schema.VALIDATION, "64.40"), (3, schema.TRAINING, "not stated")):
        rows = reader.raw_rows([GAMES], split, 0.15)
        answered = answers(predict, rows)
        number = np.concatenate([np.arange(count) for count in np.unique(rows.game, return_counts=True)[1]])
        same = answered.move == answered.label
        assert number.max() >= 19
        for line, chosen in zip(of_network[first:], (number >= 0, number < 19), strict=False):
            assert line[1] == article
            assert re.match(r"[\d.]+", line[2])[0] == f"{100 * same[chosen].mean():.1f}"
    assert of_network[-1][2] == "2 and 3"


def test_a_network_of_other_games_is_refused(lines, monkeypatch):
    write_games(Path("others"), make_games(4, seed=2), identity={"noise_at": "move", "seed": 1})
    monkeypatch.setattr("sys.argv", ["published", "others", str(NETWORK)])
    with pytest.raises(UserError, match="models/cnn: was not trained on the games in others"):
        published.main()

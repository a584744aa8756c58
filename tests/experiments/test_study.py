"""The study: finished runs and grades are kept until something changes, the page holds every finished run, and its
figures are those of the networks and labels.
"""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from distill import generate, networks, train
from distill.common import cli, run_folder
from distill.evaluation import labels
from distill.game import encoding, rules
from distill.game.rules import from_moves
from distill.games import reader, schema
from distill.players import player
from distill.players.network import NetworkPlayer
from experiments.study import __main__ as study
from experiments.study import plan as plans
from experiments.study import shapes
from experiments.study import train as study_train
from tests.helpers import bits, make_games, write_games

SHIPPED = Path(study.__file__).with_name("study.toml")

SMALL = """
title = "A small study"
about = "Two changes."
players = ["random"]
learning_curve = ["few", "baseline"]
targets = ["vote", "baseline"]
[tier.1]
train = "--steps 20"
seeds = [0, 1]
[data.games]
folder = "games"
[data.few]
folder = "few"
[data.absent]
folder = "absent"
[runs.baseline]
change = "nothing"
data = "games"
[runs.few]
change = "few games"
data = "few"
against = "baseline"
[runs.vote]
change = "votes"
data = "games"
train = "--set target=vote"
against = "baseline"
confounded = "nothing known"
[runs.lost]
change = "other games"
data = "absent"
against = "baseline"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a small recipe and games; commands are recorded instead of run, and write a run's files."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(SMALL)
    write_games(Path("games"), make_games(20, seed=1))
    write_games(Path("few"), make_games(4, seed=1), identity={"settings": {"few": True}})
    calls: list[list[str]] = []
    graded: list[str] = []

    def command(module, flags, *_):
        calls.append([module, *flags])
        out = Path(flags[flags.index("--out") + 1])
        out.mkdir(parents=True, exist_ok=True)
        identity = study_train.known_by(cli.parse(study_train.StudyTrainConfig, flags, train.PRESETS))
        metrics = {"parameters": 7, "training_boards": 100, "epochs": 2, "steps": 20, "best_step": 10}
        files = ["best.keras", "last.keras"]
        with run_folder.opened(out, "training run", identity, settings={}, files=files) as folder:
            folder.begin()
            for name in files:
                (out / name).write_text(shlex.join(flags))
            folder.finish(metrics)
        return 0

    def make(word, workers=1):
        """Networks that learned votes play tactically, the others at random."""
        graded.append(word)
        return player.RandomPlayer(name=word, tactical="vote" in word)

    monkeypatch.setattr(study, "_command", command)
    monkeypatch.setattr(study.names, "make", make)
    return calls, graded


def run(*flags: str) -> int:
    return study.main(["--recipe", "study.toml", "--page", "page/study.md", "--boards", "10", *flags])


@pytest.mark.parametrize("path", sorted(SHIPPED.parent.glob("*.toml")), ids=lambda path: path.stem)
def test_a_shipped_recipe_uses_flags_that_exist(path):
    plan = plans.read(path)
    for data in plan.data.values():
        if data.generate is not None:
            words = [*shlex.split(data.generate), "--games", str(data.games)]
            assert cli.parse(generate.GenerateConfig, words, generate.PRESETS).games == data.games
    for tier in plan.tier.values():
        for name in tier.runs or plan.runs:
            words = ["--set", "seed=3", *shlex.split(tier.train), *shlex.split(plan.runs[name].train)]
            assert cli.parse(study_train.StudyTrainConfig, words, train.PRESETS).learning.seed == (
                1 if name == "seed" else 3
            )


def test_a_whole_study_writes_page_table_and_pictures_once(here, monkeypatch, capsys):
    calls, graded = here
    assert run() == 0
    assert [call[0] for call in calls] == ["experiments.study.train"] * 6
    assert calls[5] == shlex.split(
        "experiments.study.train --set seed=1 --steps 20 --set target=vote --data games "
        "--out models/study/study/tier1/vote-seed1"
    )
    said = capsys.readouterr()
    assert "lost left out: absent holds no finished games" in said.err
    assert "3 of 4 runs" in said.out
    text = Path("page/study.md").read_text()
    command = "python -m experiments.study --recipe study.toml --tier 1 --boards 10 --page page/study.md"
    pictures = [f"study-{name}.png" for name in ("differences", "learning-curve", "targets")]
    for part in (f"`{command}` made this page.", "**lost** (not run in this tier)", "*Confounded:* nothing known"):
        assert part in text
    assert "| random" in text
    for name in pictures:
        assert f"({name})" in text
        assert (Path("page") / name).read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv("page/study.csv").set_index("run")
    assert list(table.index) == ["baseline", "few", "vote"]
    assert table.loc["few", "games"] == 4
    assert table.loc["few", "best_step"] == "10 10"
    gap = table.loc["vote", "optimal"] - table.loc["baseline", "optimal"]
    assert gap > 0, "tactical play is better than random play"
    assert table.loc["vote", "optimal_difference"] == pytest.approx(gap, abs=2e-5)
    assert table.loc["few", "optimal_difference"] == 0, "the same player on the same boards with the same seeds"
    calls.clear()
    graded.clear()
    assert run() == 0
    assert calls == graded == [], "runs and grades are kept"
    assert run("--do", "report", "--boards", "5") == 0
    assert len(graded) == 7
    graded.clear()
    assert run("--do", "report") == 0
    assert graded == [], "also beside those of fewer boards"
    network = Path("models/study/study/tier1/baseline-seed1/best.keras")
    network.write_text("another")
    assert run("--do", "report") == 0
    assert graded == [str(network)], "another network is graded again"
    graded.clear()
    Path("study.toml").write_text(SMALL.replace("seeds = [0, 1]", 'seeds = [0, 1]\nnetwork = "last.keras"'))
    assert run("--do", "report") == 0
    assert graded == [str(network.with_name("last.keras"))], "the others are best and last"
    shutil.rmtree("few")
    write_games(Path("few"), make_games(4, seed=2), identity={"settings": {"few": True}})
    assert run("--do", "report") == 0
    assert "2 of 4 runs" in capsys.readouterr().out, "a network of other games is not that of the recipe"
    shutil.rmtree("few")
    assert run("--do", "report") == 0
    assert "3 of 4 runs" in capsys.readouterr().out, "games may be gone"
    shutil.rmtree(network.parent)
    assert run("--do", "report") == 0
    against = pd.read_csv("page/study.csv").set_index("run").against
    assert against["vote"] == "baseline, seed 0", "the difference is that of the seed that both have"
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert run("--do", "report") == 1
    assert "no finished run of tier 1" in capsys.readouterr().err, "it would be trained differently now"


def test_top1_is_that_of_validation_rows_and_the_solver_grades_labels(here, monkeypatch):
    def leftmost(boards):
        move = (boards[:, 0] == 0).argmax(axis=1)
        return {"move": move, "policy": np.eye(rules.COLUMNS)[move]}

    monkeypatch.setattr(study.names, "make", lambda word, *_: NetworkPlayer(name=word, predict=leftmost))
    asked = []

    def score(current, *_):
        asked.append(len(current))
        return np.zeros((len(current), rules.COLUMNS), np.int8)

    monkeypatch.setattr(labels, "score_boards", score)
    Path("study.toml").write_text('rows = "games"\nlabels = 6\n' + SMALL.replace('["random"]', "[]"))
    assert run() == 0
    table = pd.read_csv("page/study.csv").set_index("run")
    held_out = reader.raw_rows([Path("games")], schema.VALIDATION, 0.15)
    move = leftmost(encoding.boards(held_out.current, held_out.mask))["move"]
    mirrored = rules.is_own_mirror(held_out.current, held_out.mask) & (held_out.label == 6 - move)
    same = (held_out.label == move) | mirrored
    assert 0 < np.mean(same) < 1
    assert table.loc["vote", "top1"] == pytest.approx(np.mean(same), abs=1e-5)
    assert table.loc["vote", "top1_difference"] == 0
    assert asked == [6, 6], "the labels of `games` and of `few`"
    games = len(np.unique(labels.sample(reader.raw_rows([Path("games")]), 6, 0).game))
    assert f"| games | {games} " in re.sub(" +", " ", Path("page/study.md").read_text())
    graded = pd.read_csv("page/study-labels.csv").set_index("data")
    assert graded.loc["games", "games"] == games
    assert graded.loc["games", "optimal"] == 1
    assert run("--do", "report") == 0
    assert asked == [6, 6], "grades of labels are kept"

    shutil.copytree("few", "alone")
    Path("study.toml").write_text('rows = "alone"\n' + SMALL + '[data.alone]\nfolder = "alone"\n')
    assert run("--do", "report") == 0
    every = len(reader.raw_rows([Path("alone")]))
    assert f"`top1` on {every} rows of games of `alone`" in Path("page/study.md").read_text(), "no run trains on it"


def test_no_other_page_is_overwritten(tmp_path, capsys):
    page = tmp_path / "notes.md"
    page.write_text("# My notes\n")
    assert study.main(["--do", "report", "--page", str(page), "--out", str(tmp_path / "runs")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "notes.md: is no page of a study" in line
    assert page.read_text() == "# My notes\n"


def test_absolute_colours_are_those_of_the_first_and_the_second_player():
    shape, cnn = shapes.build("cnn-absolute"), networks.build("cnn")
    cnn.set_weights(shape.get_weights())
    first_to_move, second_to_move = (encoding.planes(encoding.boards(*bits(from_moves(m)))) for m in ("4435", "44352"))
    assert np.array_equal(shape(first_to_move)["logits"], cnn(first_to_move)["logits"])
    assert np.array_equal(shape(second_to_move)["logits"], cnn(second_to_move[..., ::-1])["logits"])

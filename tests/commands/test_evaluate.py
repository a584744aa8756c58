"""The evaluate command: grades from the shipped scores alone, equal for equal seeds, and a report.

Networks beside a folder of games are compared with all its labels, also over the first rows of each game.
"""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import make_games, write_games
from network_helpers import killed_at

from distill import evaluate
from distill.common import file_hash, plugins, provenance, run_folder
from distill.games import reader
from distill.games.settings import RunSettings
from distill.mcts.settings import UctSettings

QUICK = ["--workers", "1", "--boards", "6"]
IDENTITY = RunSettings(search=UctSettings(simulations=200)).games_identity()


def run(words: list[str], out: Path) -> dict[str, Any]:
    assert evaluate.main([*words, "--out", str(out)]) == 0
    return run_folder.result_of(out)


def test_players_are_graded_without_a_solver(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    metrics = run(["random", "uct:100", *QUICK], tmp_path)
    printed = capsys.readouterr().out
    assert "uct:100 is best on midgame" in printed.splitlines()[-1]
    assert list(metrics["players"]) == ["random", "uct:100"]
    assert len(metrics["players"]["random"]["sets"]) == len(metrics["benchmark"]["sets"]) == 22
    assert "heldout outcome" in printed.splitlines()[0]
    assert metrics["paired_differences"]["random − uct:100"]["midgame"]["optimal"]["units"] == 6
    report = (tmp_path / "report.md").read_text()
    assert "## On the same boards, paired" in report


def test_equal_seeds_give_equal_metrics_of_the_half_and_the_sets_asked_for(tmp_path):
    words = ["punisher", *QUICK, "--half", "dev", "--sets", "heldout", "midgame"]
    one, other = (run(words, tmp_path / name) for name in "ab")
    assert one["players"] == other["players"]
    assert one["benchmark"]["sets"] == ["midgame", "heldout"]
    assert evaluate.main(["random", *QUICK, "--sets", "opening", "--out", str(tmp_path / "c")]) == 1


def test_a_saved_network_is_graded_in_its_modes(tmp_path, small_shapes):
    import keras

    from distill.networks import build

    keras.utils.set_random_seed(0)
    build("resnet").save(tmp_path / "best.keras")
    metrics = run([str(tmp_path), f"{tmp_path}@sample", *QUICK[:-1], "3"], tmp_path / "out")
    policy, sample = metrics["players"].values()
    assert policy["sets"] != sample["sets"]
    for network in metrics["networks"].values():
        assert (network["file"], network["precision"]) == ("best.keras", "float32")
        assert network["sha256"] == network["network_sha256"] == file_hash(tmp_path / "best.keras")


def test_networks_are_compared_with_the_labels_of_a_folder(tmp_path, capsys):
    from distill.networks import predict
    from distill.training import accuracy

    write_games(tmp_path / "games", make_games(4, seed=1), identity=IDENTITY)
    network, folder = str(provenance.shipped("models/reference/pillar")), str(tmp_path / "games")
    found = run([folder, network, *QUICK, "--boards", "1", "--sets", "midgame"], tmp_path / "out")
    measured = found["labels"][folder][network]  # without the solver
    rows = reader.raw_rows([Path(folder)], None, 0.0)
    given = accuracy.answers(predict.load(Path(network), fast=False), rows)  # as train measures it
    agreed = given.label == given.move
    assert {name: measured[name] for name in measured if name not in ("top1", "first_rows")} == accuracy.compare(
        given, rows
    )
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert f"### {network}: calibration of the value" in page
    assert (measured["top1"]["mean"], measured["top1"]["units"]) == (pytest.approx(agreed.mean()), 4), "games"
    early = np.concatenate([np.arange((rows.game == game).sum()) < 19 for game in range(4)])
    assert 0 < early.sum() < len(rows)
    first = measured["first_rows"]
    assert (first["mean"], first["units"]) == (pytest.approx(agreed[early].mean()), 4)
    assert "| top-1, first 19 rows of a game |" in re.sub(" +", " ", capsys.readouterr().out)


def test_a_killed_evaluation_leaves_no_figures_beside_the_report_of_another(tmp_path):
    run(["random", *QUICK], tmp_path)
    with killed_at(evaluate, "write_atomically", 1):
        evaluate.main(["uct:20", *QUICK, "--out", str(tmp_path)])
    assert run_folder.result_of(tmp_path) == {}
    assert not (tmp_path / "report.md").exists()
    assert list(run(["uct:20", *QUICK], tmp_path)["players"]) == ["uct:20"]
    assert "random" not in (tmp_path / "report.md").read_text()


def test_what_cannot_be_graded_is_one_line_before_anything_is_graded(tmp_path, complaint, monkeypatch):
    for name, content in {"damaged/_run.json": "{", "unfinished/shard-00000.parquet": "", "notes": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)

    out = ["--out", tmp_path / "out"]
    monkeypatch.setattr(evaluate, "_grade_players", None)  # what is wrong shows before hours of grading
    for folder in (tmp_path, tmp_path / "damaged", tmp_path / "unfinished"):
        assert str(folder) in complaint(evaluate, "pillar", folder, *out)
    assert "notes: File exists" in complaint(evaluate, "random", "--out", tmp_path / "notes")
    assert "Not a directory" in complaint(evaluate, "random", "--out", tmp_path / "notes" / "deep")


def test_the_source_of_your_own_player_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def move(boards, seeds): return (boards[:, 0] == 0).argmax(1)\n")
    assert evaluate.main(["mine:move", "random", "--boards", "2", "--sets", "midgame", "--out", "report"]) == 0
    source = plugins.Plugin.named("mine:move", "player").source  # of its file and the module's
    assert run_folder.result_of(Path("report"))["sources"] == {"mine:move": source}

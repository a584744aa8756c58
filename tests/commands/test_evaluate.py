"""Properties of the evaluate command.

* Players are graded from the shipped scores alone: tables, metrics, a report and its picture are written.
* Equal words and seeds give equal metrics.
* A saved network is graded in both modes.
* Networks beside a folder are compared with all its labels, also over the first rows of each game.
* Wrong words and numbers exit with 2, unusable folders with 1, in one line.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import make_games, write_games

from distill import evaluate
from distill.common import provenance
from distill.datasets import benchmark
from distill.evaluation import grading, labels
from distill.game.rules import mirror, parse_board
from distill.games import reader, runs

LABELS = provenance.ROOT / "data" / "reference" / "labels-200"
QUICK = ["--workers", "1", "--boards", "6"]
IDENTITY = runs.identity(runs.RunSettings(simulations=200))


def run(words: list[str], out: Path) -> dict[str, Any]:
    assert evaluate.main([*words, "--out", str(out)]) == 0
    metrics: dict[str, Any] = json.loads((out / "metrics.json").read_text())
    return metrics


def test_players_are_graded_without_a_solver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bitbully", None)
    metrics = run(["random", "uct:100", *QUICK], tmp_path)
    printed = capsys.readouterr().out
    assert "uct:100 is best on midgame" in printed.splitlines()[-1]
    assert list(metrics["players"]) == ["random", "uct:100"]
    assert len(metrics["uniform_random"]) == len(metrics["benchmark"]["sets"]) == 22
    assert "heldout outcome" in printed.splitlines()[0]
    assert metrics["paired_differences"]["random − uct:100"]["midgame"]["optimal"]["units"] == 6
    assert metrics["players"]["uct:100"]["empty_move"] == 3
    report = (tmp_path / "report.md").read_text()
    pictures = re.findall(r"\((\w+\.png)\)", report)
    assert len(pictures) == 1
    for picture in pictures:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_equal_seeds_give_equal_metrics_of_the_half_asked_for(tmp_path: Path, undrawn: None) -> None:
    words = ["punisher", *QUICK, "--half", "dev", "--sets", "midgame", "heldout"]
    one, other = (run(words, tmp_path / name) for name in "ab")
    assert one["players"] == other["players"]
    boards = grading.sample(benchmark.read(half="dev"), 6, seed=0)
    assert one["uniform_random"]["midgame"] == grading.uniform_by_set(boards)["midgame"]


def test_the_sets_that_are_asked_for_are_graded_and_no_other(tmp_path: Path, undrawn: None) -> None:
    metrics = run(["random", *QUICK, "--sets", "heldout", "zugzwang"], tmp_path)
    assert metrics["benchmark"]["sets"] == ["zugzwang", "heldout"]
    assert evaluate.main(["random", *QUICK, "--sets", "opening", "--out", str(tmp_path)]) == 1


def test_sets_on_which_columns_and_probabilities_are_not_counted_are_graded_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"kind": "evaluation"}')  # an older one may be replaced
    words = ["random", "uct:2", "--sets", "zugzwang", "--boards", "5", "--workers", "1"]
    assert evaluate.main([*words, "--out", str(tmp_path)]) == 0
    assert {*evaluate.FILES} <= {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "metrics.json").read_text())["players"]["uct:2"]["mistakes"] == []


def test_a_saved_network_is_graded_in_its_modes(tmp_path: Path, small_shapes: None, undrawn: None) -> None:
    import keras

    from distill.networks import build

    keras.utils.set_random_seed(0)
    build("resnet").save(tmp_path / "best.keras")
    metrics = run([str(tmp_path), f"{tmp_path}@sample", *QUICK[:-1], "3"], tmp_path / "out")
    policy, sample = metrics["players"].values()
    assert policy["sets"] != sample["sets"]


MUST_WIN = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    X . . . . . .
    X O . . . . .
    X O . . O . .
"""


def test_networks_are_compared_with_the_labels_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    from distill.networks import saved
    from distill.training import top1

    write_games(tmp_path / "games", make_games(4, seed=1), identity=IDENTITY)
    network, folder = str(provenance.shipped("models/reference/pillar")), str(tmp_path / "games")
    found = run([folder, network, *QUICK, "--boards", "1", "--sets", "midgame"], tmp_path / "out")["top1"][folder]
    shares = found[network]  # graded without the solver
    rows = reader.raw_rows([Path(folder)], None, 0.0)
    agreed = top1.agrees(rows, top1.chosen_columns(saved.load(Path(network)), rows))  # as train measures it
    assert (shares["all"]["mean"], shares["all"]["units"]) == (pytest.approx(agreed.mean()), len(rows))
    early = np.concatenate([np.arange((rows.game == game).sum()) < 19 for game in range(4)])
    assert 0 < early.sum() < len(rows)
    first = shares["first 19 rows of a game"]
    assert (first["mean"], first["units"]) == (pytest.approx(agreed[early].mean()), early.sum())
    at_most = shares["at most 15"]
    assert (at_most["mean"], at_most["units"]) == (pytest.approx(agreed[rows.ply <= 15].mean()), (rows.ply <= 15).sum())
    table = capsys.readouterr().out
    assert all(f"| {name} |" in re.sub(" +", " ", table) for name in ("at most 15", "first 19 rows of a game"))


def test_equal_boards_are_scored_once_and_mirrored_ones_in_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players.solver import score_boards

    position = parse_board(MUST_WIN)
    pair = [position, mirror(position), position]
    current = np.array([one.current for one in pair], np.uint64)
    mask = np.array([one.mask for one in pair], np.uint64)
    scored: list[int] = []
    monkeypatch.setattr(labels, "score_boards", lambda *boards: scored.append(len(boards[0])) or score_boards(*boards))
    scores = labels.score_once(current, mask)
    assert scored == [1]
    assert (scores[0] == scores[1][::-1]).all()
    assert (scores[0] == scores[2]).all()
    assert scores[0].argmax() == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "name a player"),
        (["nobody"], "player 'nobody' is unknown"),
        (["random", "random"], "named twice"),
        (["uct:x"], "uct:N needs a whole number"),
        (["models", "models/"], "named twice"),
        (["random", "--boards", "0"], "--boards 0 must be at least 1"),
        (["random", "--seed", "-1"], "--seed -1 must be from 0 to 2^64 - 1"),
        (["random", str(LABELS)], "name a network beside a folder of games"),
        (["random", "--half", "both"], "--half both must be one of"),
    ],
)
def test_a_wrong_word_or_number_exits_with_2(
    words: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([*words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_folders_and_boards_that_cannot_be_graded_exit_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "_grade_players", None)  # what is wrong shows before hours of grading
    for name, content in {"damaged/manifest.json": "{", "unfinished/shard-00000.parquet": ""}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    folders = [tmp_path, tmp_path / "damaged", tmp_path / "unfinished"]
    for words in ([str(folder)] for folder in folders):
        assert evaluate.main(["pillar", *words, "--out", str(tmp_path / "out")]) == 1
        error = capsys.readouterr().err
        assert words[0] in error
        assert error.count("\n") == 1
    (tmp_path / "notes").touch()
    assert evaluate.main(["random", "--out", str(tmp_path / "notes")]) == 1
    assert "is a file; a folder is needed here" in capsys.readouterr().err
    monkeypatch.undo()
    for words in [["random", "--benchmark", str(tmp_path)]]:
        assert evaluate.main([*words, "--out", str(tmp_path / "out")]) == 1
        error = capsys.readouterr().err
        assert str(tmp_path) in error
        assert error.count("\n") == 1

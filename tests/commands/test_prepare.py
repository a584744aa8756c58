"""The command `distill.prepare`: it reports its counts, a second run does nothing, and a refusal changes nothing.

Where games are missing, what the message advises can be done as it stands.
"""

import shlex
from pathlib import Path

import pytest
from helpers import make_games, write_games

from distill import generate, prepare, train
from distill.common import cli, run_folder
from distill.datasets import preparation


@pytest.fixture
def workplace(nothing_ships: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with games in the default folder."""
    monkeypatch.chdir(tmp_path)
    write_games(tmp_path / "data" / "games", make_games(40, seed=1))
    return tmp_path


def test_the_defaults_prepare_and_a_second_run_does_nothing(workplace, capsys):
    assert prepare.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    (folder,) = (path for path in Path("data/prepared").iterdir() if not path.name.startswith("."))
    record = run_folder.finished(folder, preparation.TABLES)
    counts = record.result["counts"]
    boards = counts["boards"]
    assert lines[-1] == (
        f"{folder}: prepared tables of data/games; {boards['training']:,} training and {boards['validation']:,} "
        "validation boards"
    )
    assert record.identity["validation_fraction"] == 0.15
    assert lines[2].split()[1::2] == ["games", *(str(count) for count in counts["games"].values())]
    assert prepare.main([]) == 0
    again = capsys.readouterr().out.splitlines()
    assert prepare.main(["--config", str(folder / "_run.json")]) == 0
    assert "reused tables of data/games" in capsys.readouterr().out
    assert again[:-1] == lines[:-1]
    assert "reused tables of data/games" in again[-1]


@pytest.mark.parametrize("arguments", [["--data", "nowhere"], ["--exclude", "nowhere"], ["--data", "."]])
def test_a_folder_that_cannot_be_used_exits_with_1_and_changes_nothing(workplace, complaint, arguments):
    assert arguments[1] in complaint(prepare, *arguments)
    assert not Path("data/prepared").exists()


@pytest.mark.parametrize("command", [prepare, train])
@pytest.mark.parametrize(
    ("flags", "where", "made"),
    [
        ([], "data/games", "--out data/games"),
        (["--preset", "smoke"], "data/smoke/games", "--preset smoke"),
        (["--data", "my games"], "my games", "--out 'my games'"),
    ],
)
def test_a_missing_folder_names_the_command_that_makes_games(
    command, flags, where, made, tmp_path, monkeypatch, complaint
):
    monkeypatch.chdir(tmp_path)
    stage = command.__name__.removeprefix("distill.")
    advice = f"make them with: python -m distill.generate {made}"
    line = complaint(command, *flags, "--out", tmp_path / "out")
    assert line == f"distill {stage}: {where}: no games here; {advice}"
    assert not (tmp_path / "out").exists()
    assert cli.parse(generate.GenerateConfig, shlex.split(made), generate.PRESETS).out == where

"""`--preset smoke`: each command takes what the one before wrote, without another flag, from scratch to a trained,
exported, graded and playing network, and self-play; nothing is read or written outside data/smoke and models/smoke.
"""

import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distill.common import cli, run_folder, settings

CHAIN = (
    "generate --workers 1",
    "inspect",
    "prepare",
    "train --no-export",
    "export",
    "evaluate",
    "arena",
    "walk --workers 1",
    "selfplay --iterations 1 --workers 1",
    "selfplay --games-only --workers 1 --init models/smoke/selfplay",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_networks, checked_here, undrawn_here) -> Iterator[Path]:
    """The working directory, an empty folder before the chain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("smoke"))
        for line in CHAIN:
            stage, *flags = line.split()
            assert importlib.import_module(f"distill.{stage}").main(["--preset", "smoke", *flags]) == 0, line
        yield Path.cwd()


def test_the_chain_ends_in_a_graded_exported_and_playing_network(place, monkeypatch, capsys):
    data, models = place / "data/smoke", place / "models/smoke"
    (prepared,) = data.glob("prepared/*")  # train found what prepare had made
    trained = run_folder.result_of(models / "cnn")
    assert trained["training_boards"] == run_folder.result_of(prepared)["counts"]["boards"]["training"] > 0
    assert [run["games"] for run in trained["training_games"]] == [12]
    graded = run_folder.result_of(models / "evaluation")
    assert list(graded["players"]) == ["models/smoke/cnn", "random", "uct:100"]
    assert run_folder.result_of(data / "selfplay")
    assert (models / "cnn/saved_model/1/saved_model.pb").is_file()
    assert run_folder.result_of(models / "selfplay")
    capsys.readouterr()
    from distill import play

    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join("1234567" * 6)))
    assert play.main(["--preset", "smoke"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(("You win! · ", "Draw · ", "models/smoke/cnn wins · "))


def test_the_chain_writes_only_into_its_two_folders(place):
    assert {str(path.relative_to(place)) for path in place.glob("*/*")} == {"data/smoke", "models/smoke"}
    assert {path.name for path in place.iterdir()} == {"data", "models"}


def smoke_settings(stage: str, *flags: str) -> dict[str, Any]:
    """The settings of a command by path, with the preset and more flags."""
    command = importlib.import_module(f"distill.{stage}").main
    config = cli.parse(command.config_class, ["--preset", "smoke", *flags], command.presets)
    return settings.by_path(settings.as_json(config))


@pytest.mark.parametrize(
    ("stage", "flags", "out"),
    [
        ("train", "--arch transformer", "models/smoke/transformer"),
        ("selfplay", "--games-only --init models/smoke/selfplay", "data/smoke/selfplay"),
        ("selfplay", "--out elsewhere", "elsewhere"),
    ],
)
def test_another_network_or_kind_of_run_has_another_folder(stage, flags, out):
    assert smoke_settings(stage, *flags.split())["out"] == out

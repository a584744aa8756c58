"""`--preset smoke` is a path: without another flag each command takes what the one before wrote. Properties:

- from nothing to games, tables, a trained, exported, graded and played network, and self-play;
- nothing is written outside data/smoke and models/smoke, and no command's preset names a place outside them, so a real
  run finds its folders as they were;
- every command has the preset; another network and another kind of run have another folder.

The rest of the commands, which take longer: `pytest -m slow tests/project/test_smoke.py` (some minutes).
"""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import distill
from distill.__main__ import STAGES
from distill.common import cli
from distill.datasets import benchmark

CHECKOUT = Path(distill.__file__).parents[1]
CHAIN = (
    "generate --workers 1",
    "validate",
    "prepare",
    "describe",
    "train --no-export",
    "export",
    "evaluate --no-latency",
    "arena",
    "walk --workers 1",
    "selfplay --iterations 1 --workers 1",
    "selfplay --games-only --workers 1 --init models/smoke/selfplay",
)
REAL = ("data/", "models/", "docs/")


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, tiny_networks: None, checked_here: None, undrawn_here: None
) -> Iterator[Path]:
    """A folder that was empty, after the chain; it is the working directory. A test plays against the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("smoke"))
        for line in CHAIN:
            stage, *flags = line.split()
            assert importlib.import_module(f"distill.{stage}").main(["--preset", "smoke", *flags]) == 0, line
        yield Path.cwd()


def test_the_chain_ends_in_a_graded_exported_and_played_network(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (prepared,) = (place / "data/smoke/prepared").glob("*/manifest.json")  # train found what prepare had made
    trained = json.loads((place / "models/smoke/cnn/metrics.json").read_text())
    assert trained["training_boards"] == json.loads(prepared.read_text())["counts"]["boards"]["training"] > 0
    assert trained["training games"].startswith("12 games, ")
    assert trained["training games"] in (place / "models/smoke/cnn/saved_model/README.md").read_text()
    assert (place / "models/smoke/cnn/saved_model/1/saved_model.pb").is_file()
    assert (place / "data/smoke/games/README.md").is_file()
    graded = json.loads((place / "models/smoke/evaluation/metrics.json").read_text())
    assert list(graded["players"]) == ["models/smoke/cnn", "random", "uct:100"]
    met = json.loads((place / "models/smoke/arena/arena.json").read_text())
    assert met["tournament"]["players"] == ["models/smoke/cnn", "random"]
    assert (place / "models/smoke/selfplay/metrics.json").is_file()
    assert (place / "data/smoke/selfplay/manifest.json").is_file()
    capsys.readouterr()
    from distill import play

    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join("1234567" * 6)))
    assert play.main(["--preset", "smoke"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(("the machine wins · ", "you win · ", "a draw · "))


def test_the_chain_leaves_the_places_of_real_runs_alone(place: Path) -> None:
    assert {str(path.relative_to(place)) for path in place.glob("*/*")} == {"data/smoke", "models/smoke"}
    assert {path.name for path in place.iterdir()} == {"data", "models"}


@pytest.mark.parametrize("stage", [*STAGES, "evaluation.benchmark", "evaluation.heldout"])
def test_every_command_has_the_preset_and_keeps_to_its_folders(stage: str, place: Path) -> None:
    module = importlib.import_module(f"distill.{stage}")
    config = cli.parse(getattr(module, module.run.__annotations__["config"]), ["--preset", "smoke"], module.PRESETS)
    values = cli.as_json(config).values()
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    places = [word for word in words if isinstance(word, str) and word.startswith(REAL)]
    assert places, "it reads or writes something"
    assert all(word.startswith(("data/smoke", "models/smoke")) for word in places), places


@pytest.mark.parametrize(
    ("stage", "flags", "out"),
    [
        ("train", "", "models/smoke/cnn"),
        ("train", "--arch transformer", "models/smoke/transformer"),
        ("reinforce", "", "models/smoke/mk4-reinforce"),
        ("reinforce", "--arch cnn", "models/smoke/cnn-reinforce"),
        ("reinforce", "--init models/smoke/pillar", "models/smoke/pillar-reinforce"),
        ("selfplay", "", "models/smoke/selfplay"),
        ("selfplay", "--games-only --init models/smoke/selfplay", "data/smoke/selfplay"),
        ("selfplay", "--out elsewhere", "elsewhere"),
    ],
)
def test_another_network_or_kind_of_run_has_another_folder(stage: str, flags: str, out: str) -> None:
    module = importlib.import_module(f"distill.{stage}")
    config_class = getattr(module, module.run.__annotations__["config"])
    config = cli.parse(config_class, ["--preset", "smoke", *flags.split()], module.PRESETS)
    assert cli.as_json(config)["out"] == out


def started(place: Path, stage: str, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"distill.{stage}", "--preset", "smoke", *flags],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_page_has_the_smoke_networks(place: Path) -> None:
    said = ""
    with started(place, "serve") as process:
        for line in process.stderr or ():
            said += line
            if "play at http" in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode in (0, 130), said
    assert "networks: cnn, " in said


@pytest.mark.slow
def test_a_transformer_reinforce_a_study_and_a_benchmark_go_the_same_way(place: Path) -> None:
    benchmarks = (["evaluation.benchmark"], ["evaluation.heldout"])
    for stage, *flags in (["train", "--arch", "transformer"], ["reinforce"], ["study"], *benchmarks):
        process = started(place, stage, *flags)
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert (place / "models/smoke/transformer/saved_model/1/saved_model.pb").is_file()
    assert (place / "models/smoke/mk4-reinforce/saved_model/1/saved_model.pb").is_file()
    page = (place / "models/smoke/study/study.md").read_text()
    assert "vote" in page
    assert "over-time.png" in page
    assert all((place / "data/smoke/benchmark" / name).is_file() for name in benchmark.FILES)
    test_the_chain_leaves_the_places_of_real_runs_alone(place)

"""The runs kept in `models/` count as finished for today's commands."""

import dataclasses
import json
from pathlib import Path

import pytest

from distill import train
from distill.common import cli, file_hash, folders
from distill.networks import finding
from distill.training import run_folder

ROOT = Path(__file__).parents[2]
RUNS = sorted(file.parent for top in ("reference", "long") for file in ROOT.glob(f"models/{top}/*/run.json"))


def those_with(setting: str) -> list[Path]:
    """The runs with a setting that only one command has."""
    found = [run for run in RUNS if setting in json.loads((run / "config.json").read_text())]
    assert found
    return found


@pytest.mark.parametrize("run", those_with("validation_fraction"), ids=lambda run: run.name)
def test_a_kept_training_run_is_finished(run):
    """Most games and initial networks are not kept, so the run's own records stand for them."""
    stored = json.loads((run / "run.json").read_text())["identity"]
    config = cli.parse(train.TrainConfig, ["--config", str(run / "config.json")])
    if config.init and (first := ROOT / config.init / finding.BEST).is_file():
        assert file_hash(first) == stored["init"]
    also = {name: stored[name] for name in ("arch", "prepared data", "init")}
    config = dataclasses.replace(config, init=run / finding.BEST)  # `also` has the original's hash
    run_folder.claim(run, folders.TRAINING, train.OWN_FILES, config, train.PLACES, also).check()
    assert run_folder.finished(run, str)

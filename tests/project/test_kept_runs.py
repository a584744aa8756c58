"""The runs kept in `models/` are finished in the eyes of today's commands, whatever settings were added since."""

from __future__ import annotations

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
    """The runs with a setting that one command alone has."""
    found = [run for run in RUNS if setting in json.loads((run / "config.json").read_text())]
    assert found
    return found


@pytest.mark.parametrize("run", those_with("validation_fraction"), ids=lambda run: run.name)
def test_a_training_that_is_kept_is_finished(run: Path):
    """Most of their games, and networks to begin from, are not kept: so the claim, with these from the run itself."""
    stored = json.loads((run / "run.json").read_text())["identity"]
    config = cli.parse(train.TrainConfig, ["--config", str(run / "config.json")])
    if config.init and (begun := ROOT / config.init / finding.BEST).is_file():
        assert file_hash(begun) == stored["init"]
    also = {name: stored[name] for name in ("arch", "prepared data", "init")}
    config = dataclasses.replace(config, init=run / finding.BEST)  # `also` has the one it was
    run_folder.claim(run, folders.TRAINING, train.OWN_FILES, config, train.PLACES, also).check()
    assert run_folder.finished(run, str)

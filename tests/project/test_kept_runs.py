"""The runs kept in `models/reference/` count as finished for today's commands."""

from pathlib import Path

import pytest

from distill import train
from distill.common import cli, file_hash, run_folder
from distill.networks import finding
from distill.training import identity

ROOT = Path(__file__).parents[2]
RUNS = sorted(file.parent for file in ROOT.glob("models/reference/*/_run.json"))


def those_with(setting: str) -> list[Path]:
    """The runs with a setting that only one command has."""
    runs = [run for run in RUNS if setting in run_folder.read(run).settings]
    assert runs
    return runs


@pytest.mark.parametrize("run", those_with("validation_fraction"), ids=lambda run: run.name)
def test_a_kept_training_run_is_finished(run):
    """Most games and initial networks are not kept, so the run's own records stand for them."""
    record = run_folder.finished(run, train.KIND)
    stored = record.identity
    config = cli.parse(train.TrainConfig, ["--config", str(run / run_folder.RECORD)])
    if config.init and (first := ROOT / config.init / finding.BEST).is_file():
        assert file_hash(first) == stored["init"]
    also = {name: stored[name] for name in ("arch", "prepared data", "init")}
    config = config.replace(init=run / finding.BEST)  # `also` has the original's hash
    assert run_folder.differences(stored, identity.identity(config, train.PLACES, **also)) == []
    assert "finished before" in identity.finished_line(run, str(run))

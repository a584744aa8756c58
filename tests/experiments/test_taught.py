"""A packed table that a network labels: the boards stay, visits and value are what the network says of each."""

from pathlib import Path

import numpy as np
import pytest
from helpers import make_games, write_games

from distill import prepare
from distill.common import UserError, file_hash
from distill.datasets import packed
from distill.game import encoding
from distill.games import reader
from distill.networks import saved
from experiments import taught

COLUMNS = ("current", "mask", "outcome", "visits", "value")


def rows_of(folder: Path) -> dict[str, np.ndarray]:
    (run,) = reader.open_runs([folder])
    reader.verify([run])
    parts = [reader.read(shard, COLUMNS) for shard in run.shards]
    return {name: np.concatenate([rows[name] for rows in parts]) for name in COLUMNS}


def test_a_network_labels_every_board(tmp_path, monkeypatch):
    network, cnn = (Path(f"models/reference/{name}").resolve() for name in ("pillar", "cnn"))
    monkeypatch.chdir(tmp_path)
    write_games(Path("data/games"), make_games(40, seed=1))
    assert prepare.main(["--packed", "boards", "--exclude"]) == 0
    monkeypatch.setattr(packed, "SHARD_ROWS", 100)
    taught.teach(Path("boards"), network, Path("out"))
    before, after = rows_of(Path("boards")), rows_of(Path("out"))
    for name in ("current", "mask", "outcome"):
        assert np.array_equal(before[name], after[name]), name
    assert len(list(Path("out").glob("shard-*.parquet"))) > 2

    core = saved.load_core(network / "best.keras")
    said = saved.predict_with(core)(encoding.boards(before["current"], before["mask"]))
    policy, value = said["policy"], said["value"]
    half = 0.6  # of a step, for the two forms of the arithmetic differ
    assert np.abs(after["visits"] / 255 - policy / policy.max(1, keepdims=True)).max() < half / 255
    assert np.abs(after["value"] - value).max() < half / 127

    files = {path.name: file_hash(path) for path in Path("out").glob("shard-*.parquet")}
    (Path("out") / "manifest.json").unlink()  # as a killed run leaves it
    taught.teach(Path("boards"), network, Path("out"))
    assert {path.name: file_hash(path) for path in Path("out").glob("shard-*.parquet")} == files
    with pytest.raises(UserError, match="no value head"):
        taught.teach(Path("boards"), cnn, Path("out"))

"""What the upload to the Hugging Face Hub would send: no file is missing, and each client reads what it gets.

- the dry run lists every network and data set that ships, with its licence
- a snapshot, whose files are links to blobs without a suffix, is a network and a data set
- the splits of the benchmark are its halves; the cards have the grades of the record
"""

import json
import runpy
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from huggingface_hub import DatasetCard, ModelCard

import distill
from distill.common.provenance import ROOT
from distill.datasets import benchmark

SCRIPT = runpy.run_path(str(ROOT / "pipelines/upload.py"))
REPOSITORIES = {name: (kind, files) for name, kind, files in SCRIPT["repositories"]()}
DATA = [name for name, (kind, _) in REPOSITORIES.items() if kind == "dataset"]
MODELS = [name for name, (kind, _) in REPOSITORIES.items() if kind == "model"]


def snapshot(name: str, cache: Path) -> Path:
    """What `huggingface_hub.snapshot_download` makes of a repository: links to blobs that are named by number."""
    for number, (path, file) in enumerate(sorted(REPOSITORIES[name][1].items())):
        link, blob = cache / "snapshots" / "main" / path, cache / "blobs" / str(number)
        link.parent.mkdir(parents=True, exist_ok=True)
        blob.parent.mkdir(exist_ok=True)
        blob.write_bytes(file.read_bytes())
        link.symlink_to(blob)
    return cache / "snapshots" / "main"


def test_the_dry_run_lists_what_ships(capsys):
    assert SCRIPT["main"](["--dry-run", "--organisation", "us"]) == 0
    lines = capsys.readouterr().out.splitlines()
    repositories = [line for line in lines if not line.startswith(" ")]
    assert len(repositories) == len(REPOSITORIES) == 9
    assert "us/pillar (model, apache-2.0)" in repositories
    assert "us/benchmark (dataset, apache-2.0)" in repositories
    assert any(line.split()[0] == "best.keras" for line in lines if line.startswith(" "))


def test_a_snapshot_of_a_network_answers_a_board(tmp_path):
    folder = snapshot("cnn", tmp_path)
    expected = distill.load_pretrained("cnn")(distill.board(distill.from_moves("4453")))
    for place in (folder, folder / "best.keras", folder / "model.onnx"):
        answer = distill.load_pretrained(place)(distill.board(distill.from_moves("4453")))
        assert answer["move"] == expected["move"]
        assert answer["policy"] == pytest.approx(expected["policy"], abs=1e-5)


@pytest.mark.parametrize("name", DATA)
def test_a_snapshot_of_data_loads_with_its_splits(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    import datasets

    folder = snapshot(name, tmp_path / "cache")
    configs = DatasetCard.load(folder / "README.md").data.to_dict()["configs"]
    for config in configs:
        loaded = datasets.load_dataset(str(folder), config["config_name"], cache_dir=str(tmp_path / "loaded"))
        assert {*loaded} == {part["split"] for part in config["data_files"]}
        if name == "benchmark":
            for half, rows in loaded.items():
                assert set(rows["half"]) == {half}
                origins = [config["config_name"]]
                assert rows["current"] == benchmark.read(half=half, origins=origins).current.tolist()


@pytest.mark.parametrize("folder", [*map(str, SCRIPT["DATA"])])
def test_a_folder_that_ships_opens_as_a_whole(folder):
    rows = pd.read_parquet(folder)
    hidden = pl.scan_parquet(folder, hidden_file_prefix=["_", "."])  # the record
    assert len(rows) == hidden.select(pl.len()).collect().item() > 0


@pytest.mark.parametrize("name", MODELS)
def test_the_card_of_a_network_has_its_grades(name):
    files = REPOSITORIES[name][1]
    card, record = ModelCard.load(files["README.md"]), json.loads(files["export.json"].read_text())
    graded = {
        (dataset, metric): round(shares[metric]["mean"], 4)
        for dataset, shares in record["grades"]["sets"].items()
        for metric in ("optimal", "outcome")
    }
    title = {"best moves": "optimal", "results kept": "outcome"}
    assert {
        (result.dataset_name, title[result.metric_name]): result.metric_value for result in card.data.eval_results
    } == graded
    assert card.data.metrics == ["accuracy"]
    assert {data.removeprefix("connect4-distill/") for data in card.data.datasets} <= {*DATA}

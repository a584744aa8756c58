"""What the upload to the Hugging Face Hub would send: no file is missing, and its clients read what they get."""

import json
import runpy
from pathlib import Path

import pytest
from huggingface_hub import DatasetCard, ModelCard

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

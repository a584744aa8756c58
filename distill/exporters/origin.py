"""Where an exported file comes from: version, commit and network, in the file itself, so that it can be pinned.

The same facts, all texts, lie

- beside the files of an export as `export.json`, and in the SavedModel's folder as `assets.extra/export.json`;
- in an ONNX file as metadata properties, with distill as its producer;
- in a LiteRT file as `export.json` in a zip archive at its end, where LiteRT's own tools put what belongs to a model:
  `unzip -p model.tflite export.json`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

import distill
from distill import networks
from distill.common import file_hash, json_bytes, provenance
from distill.game.encoding import ENCODING_VERSION
from distill.networks import finding

FILE = "export.json"
CONTRACT = int(finding.FILES["savedmodel"].name)
"""Version of the inputs and outputs: the SavedModel's folder, and the model version of an ONNX file."""
BOARD = "board int8 (B, 6, 7): row 0 on top, 1 the side to move, -1 the opponent, 0 empty"


def name_of(core: keras.Model, network: Path | None) -> str:
    """What a network is called: by the folder of its run, else by its arch."""
    return network.parent.resolve().name if network and network.name == finding.BEST else networks.arch_of(core)


def of(core: keras.Model, network: Path | None = None, facts: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The facts by name. `network` is the `.keras` file of `core`, `facts` are those of its run."""
    found = {
        "distill_version": distill.__version__,
        "commit": provenance.commit(),
        "network": name_of(core, network),
        "arch": networks.arch_of(core),
        finding.MADE_OF: file_hash(network) if network else None,
        "seed": (facts or {}).get("seed"),
        "encoding_version": ENCODING_VERSION,
        "contract_version": CONTRACT,
        "input": BOARD,
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def into_saved_model(folder: Path, about: Mapping[str, str]) -> None:
    """Put the facts into a SavedModel's folder, where no reader of the model looks."""
    file = folder / "assets.extra" / FILE
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(json_bytes(about))


def into_onnx(file: Path, about: Mapping[str, str]) -> None:
    """Put the facts into an ONNX file; what converted it becomes one of them."""
    import onnx

    model = onnx.load(file)
    made = {**about, "converter": f"{model.producer_name} {model.producer_version.partition(' ')[0]}"}
    model.producer_name, model.producer_version = "distill", about["distill_version"]
    model.model_version = CONTRACT
    model.metadata_props.extend(onnx.StringStringEntryProto(key=key, value=value) for key, value in made.items())
    onnx.save(model, file)


def into_litert(file: Path, about: Mapping[str, str]) -> None:
    """Put the facts at the end of a LiteRT file."""
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(zipfile.ZipInfo(FILE), json_bytes(about))  # of a fixed date: the same bytes each time

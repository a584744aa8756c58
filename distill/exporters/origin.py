"""Where an exported file comes from: version, commit and network, stored in the file itself so that it can be pinned.

The same facts are

- beside the files of an export, in `export.json`, and in the SavedModel's folder as `assets.extra/export.json`;
- in an ONNX file as metadata properties (texts), with distill as its producer;
- in a LiteRT file as `export.json` in a zip archive at its end, where LiteRT's own tools put metadata:
  `unzip -p model.tflite export.json`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distill
from distill import networks
from distill.common import file_hash, json_bytes, provenance
from distill.game.encoding import ENCODING_VERSION
from distill.networks import finding

if TYPE_CHECKING:
    import keras

CONTRACT = 1
"""Version of the inputs and outputs: the name of the SavedModel's folder, and the model version of an ONNX file."""
BOARD = "board int8 (B, 6, 7): row 0 on top, 1 the side to move, -1 the opponent, 0 empty"


def facts(core: keras.Model, network: Path | None = None, seed: int | None = None) -> dict[str, Any]:
    """The facts by name, without those that are unknown.

    Args:
      core: the network.
      network: its `.keras` file; the network of a run is called by the name of its folder, others by their arch.
      seed: of its training run.
    """
    arch = networks.arch_of(core)
    is_run = network is not None and network.name == finding.BEST
    found = {
        "distill_version": distill.__version__,
        "commit": provenance.commit(),
        "network": network.parent.resolve().name if network and is_run else arch,
        "arch": arch,
        "parameters": core.count_params(),
        "value_head": "value" in core.output,
        finding.SHA256: file_hash(network) if network else None,
        "seed": seed,
        "encoding_version": ENCODING_VERSION,
        "contract_version": CONTRACT,
        "input": BOARD,
    }
    return {name: value for name, value in found.items() if value is not None}


def into_saved_model(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts into a SavedModel's folder; readers of the model ignore `assets.extra`."""
    file = folder / "assets.extra" / finding.FACTS
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(json_bytes(facts))


def into_onnx(file: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts into an ONNX file, and the name of its converter."""
    import onnx

    model = onnx.load(file)
    texts = {**facts, "converter": f"{model.producer_name} {model.producer_version.partition(' ')[0]}"}
    model.producer_name, model.producer_version = "distill", facts["distill_version"]
    model.model_version = CONTRACT
    model.metadata_props.extend(onnx.StringStringEntryProto(key=key, value=str(value)) for key, value in texts.items())
    onnx.save(model, file)


def into_litert(file: Path, facts: Mapping[str, Any]) -> None:
    """Append the facts to a LiteRT file."""
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(zipfile.ZipInfo(finding.FACTS), json_bytes(facts))  # ZipInfo's fixed date: equal bytes

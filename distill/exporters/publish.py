"""Export a network for other programs: model files, each checked in a clean process before it is put in place.

Out: `<folder>/saved_model/` with the SavedModel in `1/` (the folder is a base path for TensorFlow Serving), the other
formats, `examples.json` (boards and outputs to test a client with), `export.json` (all that is known of the network),
`README.md` (the model card, which says the same in words) and `SHA256SUMS`. An older export stays until all new files
are checked. A command that is killed while it replaces them leaves an unfinished export, which the next one replaces.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from distill import networks
from distill.common import UserError, file_hash, provenance, run_folder, say, write_json
from distill.exporters import card, conversion, formats
from distill.exporters.conversion import Converted
from distill.networks import finding, heads, saved
from distill.networks.finding import FACTS
from distill.networks.predict import Predict

KIND = "exported network"
"""The kind of folder, in its record."""
EXAMPLES = 12
"""Number of boards in `examples.json`."""


def loaded(network: Path) -> tuple[keras.Model, dict[str, Any]]:
    """The network in a `.keras` file, and its facts; a run's is called by the name of its folder, others by arch.

    Raises UserError where it cannot be loaded, and where its run, which may go on, replaces it meanwhile.
    """
    sha256, core = file_hash(network), saved.load_core(network)
    if file_hash(network) != sha256:
        raise UserError(f"{network}: was replaced while it was loaded; start the command again")
    arch = networks.arch_of(core)
    return core, {
        "commit": provenance.commit() or "unknown",
        "network": network.parent.resolve().name if network.name == finding.BEST else arch,
        "arch": arch,
        "parameters": core.count_params(),
        "value_head": heads.has_value(core),
        "network_sha256": sha256,
    }


def publish(
    network: Path, folder: Path, results: Mapping[str, Any], others: Sequence[str] = ()
) -> dict[str, Converted]:
    """Write `<folder>/saved_model/`.

    Args:
      network: a `.keras` file.
      folder: the model's folder, created where missing. Its previous export stays until everything new has passed.
      results: of the network's run, `card.results`.
      others: formats besides the SavedModel, keys of `formats.FORMATS`.

    Returns:
      for each format how far it is from the network.

    Raises UserError, without any change, where a module is missing or a file does not give the network's outputs.
    """
    if keras.backend.backend() != "tensorflow":
        raise UserError("a SavedModel is written with the TensorFlow backend: set KERAS_BACKEND=tensorflow")
    # Find what is missing before the first file is written.
    names = dict.fromkeys([formats.SAVED_MODEL, *others])
    for name in names:
        formats.check_installed(name)
    files = [*(formats.FORMATS[name].file for name in names), FACTS, "examples.json", "README.md", finding.SUMS]
    core, known = loaded(network)
    with run_folder.replaced(folder / finding.PUBLISHED, KIND, files) as new:
        predict, written = saved.predict_with(core), {}
        for name in names:
            say(f"writing {formats.FORMATS[name].title} and checking it in a process without this project")
            path = new / formats.FORMATS[name].file
            written[name] = conversion.convert(name, core, path, predict=predict)
        record = {
            **known,
            "versions": provenance.versions("tensorflow", "keras"),
            "files": {formats.FORMATS[name].file: dataclasses.asdict(file) for name, file in written.items()},
            **results,
        }
        write_json(new / FACTS, record)
        (new / "examples.json").write_bytes(_examples(predict).encode())
        (new / "README.md").write_bytes(card.write(record, new).encode())
        (new / finding.SUMS).write_bytes(sums(new).encode())
    return written


def publish_if_possible(folder: Path, results: Mapping[str, Any]) -> None:
    """`publish` the best network of a run's folder, or print the command that does it."""
    if keras.backend.backend() == "tensorflow":
        publish(folder / finding.BEST, folder, results)
    else:
        print(f"no SavedModel from this backend; KERAS_BACKEND=tensorflow python -m distill.export {folder} writes it")


def _examples(predict: Predict) -> str:
    """JSON: boards and outputs, including the empty and the full board."""
    # The first and the last board are the empty and the full one.
    boards = conversion.check_boards()
    outputs = {"board": boards, **predict(boards)}
    picked = np.linspace(0, len(boards) - 1, EXAMPLES).astype(int)
    examples = [{name: array[i].tolist() for name, array in outputs.items()} for i in picked]
    return "[\n" + ",\n".join(map(json.dumps, examples)) + "\n]\n"


def sums(folder: Path) -> str:
    """The SHA-256 of every file in a folder, in the form that `sha256sum` reads."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(f"{file_hash(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)

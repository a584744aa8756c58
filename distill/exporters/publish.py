"""A trained network becomes a product: model files, each checked in a clean process before they are put in place.

Out: `<folder>/saved_model/` with `1/` (the SavedModel, with warm-up requests for TensorFlow Serving, for which the
folder is a base path), other formats where asked for, `examples.json` (boards and outputs to test a client with),
`export.json` (version, commit and network, `exporters/origin.py`), `README.md` (the model card) and `SHA256SUMS`. The
folder is replaced as a whole, so a reader finds either the old model or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError, folders, json_bytes, say
from distill.exporters import card, comparison, formats, origin, warmup, weaknesses
from distill.networks import finding, saved

PLACE = finding.PUBLISHED
"""The folder that is published, inside the model's own."""
SAVED_MODEL = "savedmodel"
"""The word for the one format that is always written: `export --formats` names it with the others."""
SUMS = "SHA256SUMS"
"""Written last in it, by this module alone."""
EXAMPLES = 12

_LOAD = """
import tensorflow as tf
loaded = tf.saved_model.load(model)
def answer(boards):
    return loaded.signatures["serving_default"](board=tf.constant(boards))
"""

_LINES = """
import numpy as np, tensorflow as tf
model = tf.saved_model.load("1")  # keep it: its weights live as long as this object
board = np.zeros((1, 6, 7), np.int8)
answer = model.signatures["serving_default"](board=tf.constant(board))
print(int(answer["move"][0]))
"""


def publish(
    core: keras.Model, folder: Path, facts: Mapping[str, Any], others: Sequence[str] = (), network: Path | None = None
) -> dict[str, formats.Found]:
    """Write `<folder>/saved_model/`.

    Args:
      core: the network with its raw logits.
      folder: the model's folder, which the caller holds (`folders.locked`); made where missing. What it held before
        stays until everything new has passed.
      facts: for the card, by name.
      others: formats beside the SavedModel, keys of `formats.FORMATS`.
      network: the `.keras` file that holds `core`, whose hash the card tells; None: it tells none.

    Returns:
      for each format how far it is from the network.

    Raises UserError where an extra is not installed, and where a file does not load alone or does not give the
    network's outputs; nothing is changed then.
    """
    if not possible():
        raise UserError("a SavedModel is written with the TensorFlow backend: set KERAS_BACKEND=tensorflow")
    for name in others:
        formats.check_installed(name)
    check_place(folder)
    place = folder / PLACE
    # Where the place is a link, another folder may have a link to the same one.
    alone = folders.locked(place, beside=True) if place.is_symlink() else contextlib.nullcontext()
    with alone, folders.replaced(place, _own) as new:
        boards, about = comparison.check_boards(), origin.of(core, network, facts)
        predict = saved.predict_with(core, str(network or ""))
        expected = predict(boards)
        say("writing the SavedModel, and checking it in a process without this project")
        saved.write(core, new / "1")
        difference = comparison.compare(new / "1", "SavedModel", _LOAD, (), expected, new.parent)
        warmup.write(new / "1", networks.arch_of(core), saved.SIGNATURE, boards)
        origin.into_saved_model(new / "1", about)
        written = {SAVED_MODEL: formats.Found(difference=difference)}
        files = [_described("1/", "TensorFlow SavedModel", new / "1", written[SAVED_MODEL], _LINES)]
        for name in others:
            wanted = formats.FORMATS[name]
            say(f"writing {wanted.title}, and checking it in a process without this project")
            written[name] = formats.write(name, core, new / wanted.file, expected, about)
            files.append(_described(wanted.file, wanted.title, new / wanted.file, written[name], wanted.lines))
        (new / origin.FILE).write_bytes(json_bytes(about))
        (new / "examples.json").write_text(_examples(boards, expected), encoding="utf-8")
        say("measuring weaknesses for the model card")
        text = card.write(core, facts, files, weaknesses.measure(predict), network)
        (new / "README.md").write_text(text, encoding="utf-8")
        (new / SUMS).write_text(_sums(new), encoding="utf-8")
        new.chmod(0o755)
    return written


def _described(name: str, title: str, place: Path, found: formats.Found, lines: str) -> card.File:
    """A written file as the card knows it; `place` may be a folder."""
    size = finding.size(place)
    return card.File(name=name, title=title, size=size, difference=found.difference, losses=found.losses, lines=lines)


def publish_if_possible(core: keras.Model, folder: Path, facts: Mapping[str, Any]) -> None:
    """`publish` the best network of a run's folder, or say which command does it."""
    if possible():
        publish(core, folder, facts, network=folder / finding.BEST)
    else:
        print(f"no SavedModel from this backend; KERAS_BACKEND=tensorflow python -m distill.export {folder} writes it")


def check_place(folder: Path) -> None:
    """Raise UserError where `<folder>/saved_model` was written by another program, or cannot be replaced."""
    place = folder / PLACE
    if not possible():
        return
    if place.exists() and folders.all_visible(place) and not (place / SUMS).is_file():
        raise UserError(f"{place}: was not written by this program and would be replaced; name another --out")
    folders.check_replaceable(place, _own)


def _own(folder: Path) -> list[str]:
    """The names in an exported folder that the export wrote, as its sums list them."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [SUMS, *{line.partition("  ")[2].partition("/")[0] for line in lines}]


def possible() -> bool:
    """Whether Keras runs on TensorFlow, which alone writes SavedModels."""
    return bool(keras.backend.backend() == "tensorflow")


def _examples(boards: NDArray[np.int8], outputs: Mapping[str, NDArray[Any]]) -> str:
    """JSON: boards and outputs, the empty and the full board among them."""
    picked = [*np.linspace(0, len(boards) - 1, EXAMPLES).astype(int)]
    lines = [
        json.dumps({"board": boards[i].tolist(), **{name: outputs[name][i].tolist() for name in sorted(outputs)}})
        for i in picked
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _sums(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n" for path in files
    )

"""Which network a user's word means: the name of one in `models/` or of one that ships, or a path.

A word without a slash is first looked up as a network's name, then as a path: `pillar` is the network in any working
directory. A word with a slash is first looked up as a path, then as a name such as `reference/pillar`; `./pillar` is
always a path. A `Path` is never a name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import UserError, file_hash, provenance, read_object, say_once

BEST = "best.keras"
"""The network that a run gives: of `train` the one with the smallest validation loss, of `selfplay` the champion."""
EXPORTED = "saved_model/1/saved_model.pb"
"""The exported network in a run's folder."""
PUBLISHED = "saved_model"
"""The folder in a run's folder that holds what `export` writes."""
ONNX = "model.onnx"
"""The ONNX file in it."""
ONNX_INT8 = "model.int8.onnx"
"""The same in 8 bits."""
INT8_TENSOR = "_int8"
"""How the names of its 8-bit weights end."""
SUMS = "SHA256SUMS"
"""The list of the SHA-256 of every file in it."""
FACTS = "export.json"
"""The file in it with what is known about the network (`exporters/publish.py` writes it)."""
REFERENCE = "reference"
"""The folder in `models/` of the networks that ship."""


def facts(folder: Path) -> dict[str, Any]:
    """The facts of the network whose exported files are in a folder, such as `arch`, `parameters`, `value_head` and
    `network_sha256`, the hash of the `.keras` file that was exported. Facts that are unknown are absent."""
    return read_object(folder / FACTS)


def places(models: Path | None = None) -> list[Path]:
    """Folders in which networks are looked up by name: `models` (None: in the working directory), and what ships."""
    shipped = provenance.shipped(f"models/{REFERENCE}")
    return [models or Path("models"), *([shipped.parent] if shipped else [])]


def networks(folders: Sequence[Path], holding: Sequence[str] = (BEST, EXPORTED)) -> dict[str, Path]:
    """Name → folder of every network below these folders that holds one of the named files.

    A name is the path below the folder, such as `cnn` or `reference/pillar`; the first of equal names counts.
    """
    folder_of: dict[str, Path] = {}
    for top in folders:
        # The networks of the folder, then those of its `reference/`.
        for folder in (*sorted(top.glob("*")), *sorted(top.glob(f"{REFERENCE}/*"))):
            if any(os.path.isfile(folder / file) for file in holding):  # unlike Path's, False where it may not be read
                folder_of.setdefault(folder.relative_to(top).as_posix(), folder)
    return folder_of


def called(name: str, known: Mapping[str, Path]) -> Path | None:
    """The folder of a name among `networks`; the name of a network that ships need not begin with `reference/`."""
    return known.get(name) or known.get(f"{REFERENCE}/{name}")


def find(word: str | Path) -> Path | None:
    """The network or path that a user's word means, by the rule above; None if there is neither."""
    exists = os.path.exists(word)  # unlike Path's, False for a word that is too long to be a path
    known = networks(places()) if isinstance(word, str) else {}
    # A name first, so that a folder of this name in the working directory does not hide the network.
    if isinstance(word, str) and "/" not in word and (folder := called(word, known)):
        if exists and folder.resolve() != Path(word).resolve():
            say_once(f"{word} means {folder}; ./{word} would be the path")
        return folder
    return Path(word) if exists else called(str(word).rstrip("/"), known)  # shells complete a name with a slash


def names() -> str:
    """The networks that have a name here, for a message."""
    return f"networks by name are {', '.join(networks(places())) or 'none'}"


def is_current(exported: Path, best: Path) -> bool:
    """Whether an exported file is of the best network of its run, or there is none; a line says so where it is not.

    The facts beside the file and the list of hashes tell. They are gone, too, where an export was killed while it
    replaced an older one.
    """
    of_best = best.is_file() and facts(exported.parent).get("network_sha256") == file_hash(best)
    if not best.is_file() or (of_best and is_listed(exported)):
        return True
    say_once(f"{exported} is not of {best}, or not as it was exported; {best} is used, distill.export writes it again")
    return False


def is_listed(exported: Path) -> bool:
    """Whether the list of hashes beside an exported file has its own, so that it is no file of another export."""
    sums = exported.with_name(SUMS)
    lines = sums.read_text(errors="replace").splitlines() if sums.is_file() else []
    return f"{file_hash(exported)}  {exported.name}" in lines


def required(word: str | Path) -> Path:
    """The result of `find`. Raises UserError if there is neither such a network nor such a path."""
    if path := find(word):
        return path
    raise UserError(f"{word}: no such path, and no network of that name; {names()}")


def network_file(word: str | Path) -> Path:
    """The `.keras` file that a word means: itself, or the best network of a run's folder. Raises UserError."""
    path = required(word)
    file = path / BEST if path.is_dir() else path
    if file.suffix != ".keras" or not file.is_file():
        raise UserError(f"{path}: {'no model in this folder' if path.is_dir() else 'not a .keras file'}")
    return file


def evaluated_in(path: Path, *, fast: bool = True, int8: bool = False) -> Path:
    """What is evaluated for the network at a path: an ONNX file, the `.keras` file, or the folder of a SavedModel.

    The path may be one of the three, the folder of a run, or that of an export, as on a hub. An ONNX file that is
    not of the network of its run is passed over. Raises UserError for a path without a model.

    Args:
      fast: prefer an ONNX file where ONNX Runtime is installed.
      int8: an ONNX file in 8 bits will do where there is no other. Without TensorFlow it always does.
    """
    onnx = [path] if path.suffix == ".onnx" else []
    if fast and importlib.util.find_spec("onnxruntime"):
        names = (ONNX, ONNX_INT8) if int8 or not importlib.util.find_spec("tensorflow") else (ONNX,)
        onnx += [folder / name for name in names for folder in (path / PUBLISHED, path)]
    if file := next((file for file in onnx if file.is_file() and is_current(file, path / BEST)), None):
        return file
    folders = (path, path / "1", path / PUBLISHED / "1")
    saved_model = next((folder for folder in folders if (folder / "saved_model.pb").is_file()), None)
    return network_file(path) if saved_model is None or (path / BEST).is_file() else saved_model


def precision(file: Path) -> str:
    """The type of a network's weights in a file: float32, bfloat16 or int8.

    An ONNX file in 8 bits has weights whose names say so, or, from other programs, nodes that quantize; a `.keras` file
    names the type of its layers.
    """
    if file.suffix == ".onnx":
        content = file.read_bytes()
        return "int8" if INT8_TENSOR.encode() in content or b"QuantizeLinear" in content else "float32"
    return "bfloat16" if b"bfloat16" in _config(file) else "float32"


def has_own_layers(file: Path) -> bool:
    """Whether a `.keras` file has layers of a user's own, whose code it does not hold."""
    return re.search(rb'"registered_name": "(?!distill>)[^">]+>', _config(file)) is not None


def _config(file: Path) -> bytes:
    """The JSON in a `.keras` file that describes its layers; empty for other files."""
    with contextlib.suppress(zipfile.BadZipFile, KeyError):  # a damaged file is refused where it is loaded
        if file.suffix == ".keras":
            with zipfile.ZipFile(file) as archive:
                return archive.read("config.json")
    return b""

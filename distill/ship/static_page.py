"""The page as a folder of files that any file host serves: the network runs in the visitor's browser.

In: a trained network. Out: a folder with the page (`web/page/`), `model.onnx`, ONNX Runtime Web, and the licences of
what is bundled. ONNX Runtime Web comes from the npm registry the first time, in one pinned version, checked against the
hash that stands here, and is kept in the user's cache.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

import keras

import distill
from distill import nets
from distill.base import UserError, folders, provenance, read_object, say, write_json
from distill.nets import finding, saved
from distill.ship import formats

RUNTIME = "onnxruntime-web"
VERSION = "1.30.0"
INTEGRITY = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""SHA-512 of the published archive in base64, as `npm view onnxruntime-web@VERSION dist.integrity` prints it."""
ARCHIVE = f"{RUNTIME}-{VERSION}.tgz"
ADDRESS = f"https://registry.npmjs.org/{RUNTIME}/-/{ARCHIVE}"
RUNTIME_FILES = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")

PAGE = Path(distill.__file__).parent / "web" / "page"
SERVER_ONLY = ("server.js", "docs.html", "docs.css", "docs.js")
MARKER = "model.json"
"""Tells that this module wrote the folder, which may then be replaced."""


def write_static_page(model: Path, out: Path) -> None:
    """Write the folder `out`, as a whole: a host finds the old page or the new one. The caller holds it.

    Args:
      model: a `.keras` file or the folder of a training run.

    Raises UserError for a path that is no such model, a folder that holds something else, a missing extra, a network
    whose outputs ONNX does not give, and where ONNX Runtime Web cannot be had.
    """
    formats.check_installed("onnx")
    network = finding.network_file(model)
    if out.exists() and not _is_page(out) and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: there is something else here already; --web takes a new folder or an older page")
    core = saved.load_core(network)
    with folders.replaced(out) as new:
        _write(core, network.parent.resolve().name, new)


def _is_page(folder: Path) -> bool:
    """Whether this module wrote a folder; other programs have a `model.json` too."""
    return "difference" in read_object(folder / MARKER)


def _write(core: keras.Model, name: str, folder: Path) -> None:
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns(*SERVER_ONLY))
    index = (folder / "index.html").read_text(encoding="utf-8")
    (folder / "index.html").write_text(index.replace("./server.js", "./network.js"), encoding="utf-8")
    found = formats.write("onnx", core, folder / "model.onnx")
    facts = {
        "name": name,
        "network": nets.arch_of(core),
        "parameters": core.count_params(),
        "difference": found.difference,
        "versions": provenance.versions("keras", "tensorflow") | {RUNTIME: VERSION},
    }
    write_json(folder / MARKER, facts)
    _add_runtime(folder / "ort")
    _add_licences(folder / "licences")


def _add_runtime(folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(runtime_archive()) as archive:
        for name in RUNTIME_FILES:
            member = archive.extractfile(f"package/dist/{name}")
            assert member is not None, f"{ARCHIVE} holds no {name}"  # its hash was right, so it does
            with member, (folder / name).open("wb") as file:
                shutil.copyfileobj(member, file)


def runtime_archive() -> Path:
    """The published archive of ONNX Runtime Web, out of the user's cache or else from the npm registry.

    Raises UserError where it cannot be had or is not what was published.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "distill"
    archive = cache / ARCHIVE
    if archive.is_file() and _integrity(archive) == INTEGRITY:
        return archive
    say(f"fetching {RUNTIME} {VERSION} (33 MB, MIT licence) from the npm registry into {cache}")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch.", dir=cache) as workplace:
        fetched = Path(workplace) / ARCHIVE
        try:
            _fetch(fetched)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UserError(f"{RUNTIME} cannot be fetched ({error}); put {ADDRESS} into {cache}") from None
        if not fetched.is_file() or _integrity(fetched) != INTEGRITY:
            raise UserError(f"{ADDRESS}: what came is not version {VERSION} as published (its SHA-512 differs)")
        os.replace(fetched, archive)
    return archive


def _fetch(file: Path) -> None:
    """By npm where there is one: it knows the user's registry and proxies. Else the plain address."""
    if npm := shutil.which("npm"):
        command = [npm, "pack", "--silent", "--pack-destination", str(file.parent), f"{RUNTIME}@{VERSION}"]
        subprocess.run(command, check=True, capture_output=True, cwd=file.parent)
        return
    with urllib.request.urlopen(ADDRESS, timeout=60) as reply, file.open("wb") as target:
        shutil.copyfileobj(reply, target)


def _integrity(file: Path) -> str:
    with file.open("rb") as stream:
        return base64.b64encode(hashlib.file_digest(stream, "sha512").digest()).decode()


def _add_licences(folder: Path) -> None:
    """This project's licence, and that of ONNX Runtime with the notices of what is compiled into it."""
    folder.mkdir()
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None  # `formats` has used it
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    for source, name in (("LICENSE", "onnxruntime-web.txt"), ("ThirdPartyNotices.txt", "onnxruntime-web-notices.txt")):
        shutil.copyfile(package / source, folder / name)
    shutil.copyfile(provenance.licence(), folder / "distill.txt")

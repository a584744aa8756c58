"""The page as a folder of static files: the network runs in the visitor's browser.

In: trained networks. Out: a folder with the page (`web/page/`), a file of each network, `networks.json`, the licences
of what is bundled, and a service worker that lets the page work offline (`web/site/`). `pillar` and `pillar-plain` of
the usual size are weights, `NAME.f32`, which the page computes with (`web/page/pillar.js`); others are `NAME.onnx`, and
only with one of them the folder has ONNX Runtime Web. It comes from the npm registry the first time, in one pinned
version, checked against the hash below, and is kept in the user's cache. A network of more than LARGE parameters is in
8 bits, and a browser fetches it when it is first chosen.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

import distill
from distill.common import UserError, provenance, run_folder, say, write_atomically, write_json
from distill.exporters import conversion, formats, publish
from distill.networks import finding

KIND = "static page"
"""The kind of folder, in its record."""
RUNTIME = "onnxruntime-web"
VERSION = "1.24.3"  # later ones are half a megabyte larger, without a gain here
INTEGRITY = "41dDq7fxtTm0XzGE7N0d6m8FcOY8EWtUA65GkOixJPB/G7DGzBmiDAnVVXHznRw9bgUZpb+4/1lQK/PNxGpbrQ=="
"""SHA-512 of the published archive in base64, as `npm view onnxruntime-web@VERSION dist.integrity` prints it."""
ARCHIVE = f"{RUNTIME}-{VERSION}.tgz"
ADDRESS = f"https://registry.npmjs.org/{RUNTIME}/-/{ARCHIVE}"
RUNTIME_FILES = {
    "ort.wasm.bundle.min.mjs": "ort.wasm.bundle.min.js",  # hosts such as Debian's nginx have no type for .mjs
    "ort-wasm-simd-threaded.wasm": "ort-wasm-simd-threaded.wasm",
}
"""Files of the archive, and their names in the page."""

PAGE, SITE = (Path(distill.__file__).parent / "web" / name for name in ("page", "site"))
SERVER_ONLY = ("server.js", "docs.html", "docs.css", "docs.js")
PILLARS = {"pillar-plain": 190_408, "pillar": 192_424}
"""The networks that `web/page/pillar.js` computes."""
LARGE = 1_000_000
CATALOGUE = "networks.json"
"""The networks of the page, and the levels' Elo."""
CHANGES = {
    "./server.js": "./network.js",
    '<link rel="icon"': '<link rel="manifest" href="site.webmanifest">\n  <link rel="icon"',
    "</title>": f'</title>\n  <meta name="generator" content="distill {distill.__version__}">',
}
"""Replacements in index.html."""


def write_static_page(models: Sequence[str | Path], out: Path, elo: Mapping[str, int] | None = None) -> None:
    """Write the page into the folder `out`, in place of an older one.

    Args:
      models: names of networks, `.keras` files, or folders of training runs; the first network is the page's default.
      elo: measured strength of the levels, which play with the first network.

    Raises UserError for a path that is no such model, two networks of one name, a folder that holds something else, a
    missing extra, a network whose ONNX file differs, and where ONNX Runtime Web is not available.
    """
    formats.check_installed("onnx")
    files = _by_name(models)
    loaded = {name: publish.loaded(file) for name, file in files.items()}
    runtime = None if all(_is_computed_by_the_page(facts) for _, facts in loaded.values()) else runtime_archive()
    assets = [file for file in (*PAGE.iterdir(), *SITE.iterdir()) if file.name not in SERVER_ONLY]
    written = [*(file.name for file in assets), CATALOGUE, "licences", "ort"]
    written += [f"{name}.{suffix}" for name in files for suffix in ("f32", "onnx")]
    with run_folder.replaced(out, KIND, written) as new:
        for file in assets:
            shutil.copyfile(file, new / file.name)  # without its mode: an installed package may be read-only
        index = (new / "index.html").read_text(encoding="utf-8")
        for before, after in CHANGES.items():
            index = index.replace(before, after)
        (new / "index.html").write_bytes(index.encode())
        networks = [_add_network(name, core, new, facts) for name, (core, facts) in loaded.items()]
        write_json(new / CATALOGUE, {"networks": networks, "elo": elo or {}})
        (new / "licences").mkdir()
        shutil.copyfile(str(provenance.shipped("LICENSE")), new / "licences" / "distill.txt")
        if runtime:
            _add_runtime(new, runtime)
        _list_files(new, later=[network["file"] for network in networks if network["parameters"] > LARGE])


def _by_name(models: Sequence[str | Path]) -> dict[str, Path]:
    """The files of networks by name, which is that of their folder."""
    files: dict[str, Path] = {}
    for file in map(finding.network_file, models):
        name = file.parent.resolve().name.replace(":", "-")  # a colon has a meaning in an address
        if name in files:
            raise UserError(f"{file}: {files[name]} is called {name}, too; the networks of a page need distinct names")
        files[name] = file
    return files


def _is_computed_by_the_page(facts: Mapping[str, Any]) -> bool:
    return facts["value_head"] and PILLARS.get(facts["arch"]) == facts["parameters"]


def _add_network(name: str, core: keras.Model, folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the network's file; returns what the page needs to know about it."""
    if _is_computed_by_the_page(facts):
        (folder / f"{name}.f32").write_bytes(weights(core))
        return {"name": name, "file": f"{name}.f32", **facts}
    written_as = "onnx-int8" if facts["parameters"] > LARGE else "onnx"
    converted = conversion.convert(written_as, core, folder / f"{name}.onnx")
    return {"name": name, "file": f"{name}.onnx", **facts, "difference": converted.difference}


def weights(core: keras.Model) -> bytes:
    """The weights of a network of PILLARS as `web/page/pillar.js` reads them: float32, layer by layer."""
    arrays = [array.ravel() for layer in core.layers for array in layer.get_weights()]
    return np.concatenate(arrays).astype("<f4").tobytes()


def _list_files(folder: Path, later: Sequence[str]) -> None:
    """Put a first line into the service worker: the files that it caches at once, those that it caches when they are
    first fetched, and a version that is a hash of all."""
    worker = folder / "sw.js"
    program = worker.read_text(encoding="utf-8")
    worker.unlink()  # it does not list itself
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = [path for path in paths if path not in later]
    version = hashlib.sha256(publish.sums(folder).encode()).hexdigest()[:16]
    site = json.dumps({"version": version, "files": files, "later": [*later]})
    worker.write_bytes(f"const SITE = {site};\n{program}".encode())


def _add_runtime(site: Path, published: Path) -> None:
    """Add ONNX Runtime Web, its licence, and the notices of what is compiled into it."""
    import onnxruntime

    (site / "ort").mkdir()
    with tarfile.open(published) as archive:
        for name, written in RUNTIME_FILES.items():
            member = archive.extractfile(f"package/dist/{name}")
            assert member is not None, f"{ARCHIVE} holds no {name}"  # its hash was right, so it does
            (site / "ort" / written).write_bytes(member.read())
    package = Path(onnxruntime.__file__).parent
    for source, name in (("LICENSE", ""), ("ThirdPartyNotices.txt", "-notices")):
        shutil.copyfile(package / source, site / "licences" / f"{RUNTIME}{name}.txt")


def runtime_archive() -> Path:
    """The published archive of ONNX Runtime Web, from the user's cache or else from the npm registry.

    Raises UserError where it cannot be fetched or differs from what was published.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "distill"
    archive = cache / ARCHIVE
    if archive.is_file() and _integrity(archive.read_bytes()) == INTEGRITY:
        return archive
    say(f"fetching {RUNTIME} {VERSION} (31 MB, MIT licence) from the npm registry into {cache}")
    try:
        with urllib.request.urlopen(ADDRESS, timeout=60) as reply:
            fetched = reply.read()
    except (OSError, http.client.HTTPException) as error:  # no connection, no such host, or cut off
        raise UserError(f"{RUNTIME} cannot be fetched ({error}); put {ADDRESS} into {cache}") from error
    if _integrity(fetched) != INTEGRITY:
        raise UserError(f"{ADDRESS}: this is not version {VERSION} as published (its SHA-512 differs)")
    write_atomically(archive, fetched)
    return archive


def _integrity(content: bytes) -> str:
    return base64.b64encode(hashlib.sha512(content).digest()).decode()

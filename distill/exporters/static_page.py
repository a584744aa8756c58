"""The page as a folder of static files: the network runs in the visitor's browser.

In: trained networks. Out: a folder with the page (`web/page/`), `NAME.onnx` of each network, `networks.json`, ONNX
Runtime Web, the licences of what is bundled, and a service worker that lets the page work offline (`web/site/`). ONNX
Runtime Web comes from the npm registry the first time, in one pinned version, checked against the hash below, and is
kept in the user's cache.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

import distill
from distill import common
from distill.common import UserError, canonical_json, file_hash, folders, provenance, say, write_json
from distill.exporters import conversion, formats, origin
from distill.networks import finding, saved

RUNTIME = "onnxruntime-web"
VERSION = "1.24.3"  # later ones are half a megabyte larger, without a gain here
INTEGRITY = "41dDq7fxtTm0XzGE7N0d6m8FcOY8EWtUA65GkOixJPB/G7DGzBmiDAnVVXHznRw9bgUZpb+4/1lQK/PNxGpbrQ=="
"""SHA-512 of the published archive in base64, as `npm view onnxruntime-web@VERSION dist.integrity` prints it."""
ARCHIVE = f"{RUNTIME}-{VERSION}.tgz"
ADDRESS = f"https://registry.npmjs.org/{RUNTIME}/-/{ARCHIVE}"
RUNTIME_FILES = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")

PAGE, SITE = (Path(distill.__file__).parent / "web" / name for name in ("page", "site"))
SERVER_ONLY = ("server.js", "docs.html", "docs.css", "docs.js")
CATALOGUE = "networks.json"
"""The networks and versions; it marks a folder as written by this module."""
WORKER = "sw.js"
CHANGES = {
    "./server.js": "./network.js",
    '<link rel="icon"': '<link rel="manifest" href="site.webmanifest">\n  <link rel="icon"',
}
"""Replacements in index.html."""
_LIST = "const SITE = "
"""Start of the service worker: the list of the page's files, as JSON."""


def write_static_page(models: Sequence[str | Path], out: Path) -> None:
    """Write the folder `out` as a whole: a host sees the old page or the new one. The caller has locked it.

    Args:
      models: names of networks, `.keras` files, folders of training runs, or folders of such folders; the first network
        is the page's default.

    Raises UserError for a path that is no such model, two networks of one name, a folder that holds something else, a
    missing extra, a network whose ONNX file differs, and where ONNX Runtime Web is not available.
    """
    formats.check_installed("onnx")
    files = _by_name([file for model in models for file in finding.network_files(model)])
    if out.exists() and not _is_page(out) and (not out.is_dir() or folders.all_visible(out)):
        raise UserError(f"{out}: there is something else here already; --web takes a new folder or an older page")
    cores = {name: saved.load_core(file) for name, file in files.items()}
    with folders.replaced(out, _own) as new:
        for source in (PAGE, SITE):
            _copy(source, new)
        index = (new / "index.html").read_text(encoding="utf-8")
        for before, after in CHANGES.items():
            index = index.replace(before, after)
        generator = f'<meta name="generator" content="distill {distill.__version__}">'
        (new / "index.html").write_text(index.replace("</title>", f"</title>\n  {generator}"), encoding="utf-8")
        catalogue = {
            "networks": [_add_network(name, files[name], core, new) for name, core in cores.items()],
            "versions": provenance.versions("keras", "tensorflow") | {RUNTIME: VERSION},
            "commit": provenance.commit(),
        }
        write_json(new / CATALOGUE, catalogue)
        _add_runtime(new / "ort")
        _add_licences(new / "licences")
        _list_files(new)


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    """The files of networks by name, which is that of their folder."""
    found: dict[str, Path] = {}
    for file in files:
        name = file.parent.resolve().name.replace(":", "-")  # a colon has a meaning in an address
        if name in found:
            raise UserError(f"{file}: {found[name]} is called {name}, too; the networks of a page need distinct names")
        found[name] = file
    return found


def _is_page(folder: Path) -> bool:
    """Whether this module wrote a folder; other programs may have a file of this name."""
    versions = common.read_object(folder / CATALOGUE).get("versions")
    return isinstance(versions, dict) and RUNTIME in versions


def _own(folder: Path) -> list[str]:
    """The names in the folder of an older page that this module wrote, as listed in its service worker."""
    try:
        line = (folder / WORKER).read_text(encoding="utf-8").partition("\n")[0]
        files = json.loads(line.removeprefix(_LIST).removesuffix(";"))["files"]
        return [WORKER, *{file.partition("/")[0] for file in files}]
    except (OSError, ValueError, KeyError):
        return folders.all_visible(folder)


def _add_network(name: str, file: Path, core: keras.Model, folder: Path) -> dict[str, Any]:
    """Write NAME.onnx; returns what the page needs to know about the network."""
    facts = origin.facts(core, file)
    converted = conversion.convert("onnx", core, folder / f"{name}.onnx", facts=facts)
    kept = {key: facts[key] for key in ("arch", "parameters", "value_head", finding.SHA256)}
    return {"name": name, **kept, "difference": converted.difference}


def _list_files(folder: Path) -> None:
    """Write the files that the service worker caches into it, and a version that is a hash of their contents."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != WORKER)
    names = [path.relative_to(folder).as_posix() for path in files]
    hashes = canonical_json([[name, file_hash(file)] for name, file in zip(names, files, strict=True)])
    version = hashlib.sha256(hashes.encode()).hexdigest()
    worker = (folder / WORKER).read_text(encoding="utf-8")
    site = json.dumps({"version": version[:16], "files": names})
    (folder / WORKER).write_text(f"{_LIST}{site};\n{worker}", encoding="utf-8")


def _copy(source: Path, folder: Path) -> None:
    """Copy files without their modes: those of an installed package may be read-only."""
    for file in sorted(path for path in source.rglob("*") if path.is_file() and path.name not in SERVER_ONLY):
        target = folder / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _add_runtime(folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(runtime_archive()) as archive:
        for name in RUNTIME_FILES:
            member = archive.extractfile(f"package/dist/{name}")
            assert member is not None, f"{ARCHIVE} holds no {name}"  # its hash was right, so it does
            with member, (folder / name).open("wb") as file:
                shutil.copyfileobj(member, file)


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
        fetched = _fetch(ADDRESS)
    except OSError as error:
        raise UserError(f"{RUNTIME} cannot be fetched ({error}); put {ADDRESS} into {cache}") from None
    if _integrity(fetched) != INTEGRITY:
        raise UserError(f"{ADDRESS}: this is not version {VERSION} as published (its SHA-512 differs)")
    cache.mkdir(parents=True, exist_ok=True)
    common.write_atomically(archive, fetched)
    return archive


def _fetch(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as reply:
        return bytes(reply.read())


def _integrity(content: bytes) -> str:
    return base64.b64encode(hashlib.sha512(content).digest()).decode()


def _add_licences(folder: Path) -> None:
    """This project's licence, and that of ONNX Runtime with the notices of what is compiled into it."""
    folder.mkdir()
    import onnxruntime

    package = Path(onnxruntime.__file__).parent
    for source, name in (("LICENSE", "onnxruntime-web.txt"), ("ThirdPartyNotices.txt", "onnxruntime-web-notices.txt")):
        shutil.copyfile(package / source, folder / name)
    shutil.copyfile(provenance.licence(), folder / "distill.txt")

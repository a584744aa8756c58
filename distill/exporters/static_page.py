"""The page as a folder of files that any file host serves: the network runs in the visitor's browser.

In: trained networks. Out: a folder with the page (`web/page/`), `NAME.onnx` of each network, `networks.json`, ONNX
Runtime Web, the licences of what is bundled, and what lets the page run without a connection once it has been loaded
(`web/site/`). ONNX Runtime Web comes from the npm registry the first time, in one pinned version, checked against the
hash that stands here, and is kept in the user's cache.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

import distill
from distill import networks
from distill.common import UserError, canonical_json, file_hash, folders, provenance, read_object, say, write_json
from distill.exporters import formats, origin
from distill.networks import finding, heads, saved

RUNTIME = "onnxruntime-web"
VERSION = "1.24.3"  # later ones are half a megabyte larger and bring nothing that is used here
INTEGRITY = "41dDq7fxtTm0XzGE7N0d6m8FcOY8EWtUA65GkOixJPB/G7DGzBmiDAnVVXHznRw9bgUZpb+4/1lQK/PNxGpbrQ=="
"""SHA-512 of the published archive in base64, as `npm view onnxruntime-web@VERSION dist.integrity` prints it."""
ARCHIVE = f"{RUNTIME}-{VERSION}.tgz"
ADDRESS = f"https://registry.npmjs.org/{RUNTIME}/-/{ARCHIVE}"
RUNTIME_FILES = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")

PAGE = Path(distill.__file__).parent / "web" / "page"
SITE = Path(distill.__file__).parent / "web" / "site"
SERVER_ONLY = ("server.js", "docs.html", "docs.css", "docs.js")
CATALOGUE = "networks.json"
WORKER = "sw.js"
MARKERS = (CATALOGUE, "model.json")
"""Files that tell by their versions that this module, the second in its first release, wrote the folder, which may then
be replaced."""
CHANGES = {
    "./server.js": "./network.js",
    '<link rel="icon"': '<link rel="manifest" href="site.webmanifest">\n  <link rel="icon"',
}
"""In index.html."""
_LIST = "const SITE = "
"""How the service worker begins: the list of the page's files, as JSON."""


def write_static_page(models: Sequence[str | Path], out: Path) -> None:
    """Write the folder `out`, as a whole: a host finds the old page or the new one. The caller holds it.

    Args:
      models: names of networks, `.keras` files, folders of training runs, or folders of such folders; the first network
        is the page's own.

    Raises UserError for a path that is no such model, networks of one name, a folder that holds something else, a
    missing extra, a network whose outputs ONNX does not give, and where ONNX Runtime Web cannot be had.
    """
    formats.check_installed("onnx")
    networks = _by_name([file for model in models for file in finding.network_files(model)])
    if out.exists() and not _is_page(out) and (not out.is_dir() or folders.all_visible(out)):
        raise UserError(f"{out}: there is something else here already; --web takes a new folder or an older page")
    folders.check_replaceable(out, _own)
    cores = {name: saved.load_core(file) for name, file in networks.items()}
    with folders.replaced(out, _own) as new:
        _write({name: (networks[name], core) for name, core in cores.items()}, new)


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    """The files of networks by their folders' names, which the page calls them by."""
    found: dict[str, Path] = {}
    for file in files:
        name = file.parent.resolve().name
        if name in found:
            raise UserError(f"{file}: {found[name]} is called {name}, too; in one page every network has its own name")
        found[name] = file
    return found


def _is_page(folder: Path) -> bool:
    """Whether this module wrote a folder; other programs have files of these names too."""
    versions = [read_object(folder / marker).get("versions") for marker in MARKERS]
    return any(isinstance(each, dict) and RUNTIME in each for each in versions)


def _own(folder: Path) -> list[str]:
    """The names in the folder of an older page that this module wrote, as its list for the service worker has them."""
    try:
        line = (folder / WORKER).read_text(encoding="utf-8").partition("\n")[0]
        files = json.loads(line.removeprefix(_LIST).removesuffix(";"))["files"]
        return [WORKER, *{file.partition("/")[0] for file in files}]
    except (OSError, ValueError, KeyError):
        return folders.all_visible(folder)


def _write(networks: Mapping[str, tuple[Path, keras.Model]], folder: Path) -> None:
    for source in (PAGE, SITE):
        _copy(source, folder)
    index = (folder / "index.html").read_text(encoding="utf-8")
    for before, after in CHANGES.items():
        index = index.replace(before, after)
    index = index.replace("</title>", f'</title>\n  <meta name="generator" content="distill {distill.__version__}">')
    (folder / "index.html").write_text(index, encoding="utf-8")
    facts = {
        "networks": [_add_network(name, *network, folder) for name, network in networks.items()],
        "versions": provenance.versions("keras", "tensorflow") | {RUNTIME: VERSION},
        "commit": provenance.commit(),
    }
    write_json(folder / CATALOGUE, facts)
    _add_runtime(folder / "ort")
    _add_licences(folder / "licences")
    _list_files(folder)


def _add_network(name: str, file: Path, core: keras.Model, folder: Path) -> dict[str, Any]:
    """Write NAME.onnx; what the page says of the network, and whether it has a value, which a search needs."""
    about = origin.of(core, file)
    return {
        "name": name,
        "network": networks.arch_of(core),
        "parameters": core.count_params(),
        "value": heads.has_value(core),
        "difference": formats.write("onnx", core, folder / f"{name}.onnx", about=about).difference,
        finding.MADE_OF: about[finding.MADE_OF],
    }


def _list_files(folder: Path) -> None:
    """Tell the service worker which files to keep, and a version that any change in them changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != WORKER)
    names = [path.relative_to(folder).as_posix() for path in files]
    hashes = canonical_json([[name, file_hash(file)] for name, file in zip(names, files, strict=True)])
    version = hashlib.sha256(hashes.encode()).hexdigest()
    worker = (folder / WORKER).read_text(encoding="utf-8")
    site = json.dumps({"version": version[:16], "files": names})
    (folder / WORKER).write_text(f"{_LIST}{site};\n{worker}", encoding="utf-8")


def _copy(source: Path, folder: Path) -> None:
    """Copy files, but not their modes: those of an installed package may be read-only."""
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
    """The published archive of ONNX Runtime Web, out of the user's cache or else from the npm registry.

    Raises UserError where it cannot be had or is not what was published.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "distill"
    archive = cache / ARCHIVE
    if archive.is_file() and _integrity(archive) == INTEGRITY:
        return archive
    say(f"fetching {RUNTIME} {VERSION} (31 MB, MIT licence) from the npm registry into {cache}")
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

"""Fresh virtual environments: by pip as users make them, and in a moment of links to the packages that are here."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def needs(*packages: str) -> set[str]:
    """Packages and all that installing them brings along."""
    found, waiting = set[str](), list(packages)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            wanted = [Requirement(text) for text in importlib.metadata.requires(name) or ()]
            waiting += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def empty(folder: Path, *options: str) -> Path:
    """A fresh virtual environment's folder of packages."""
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    return packages


def linked(folder: Path, *packages: str) -> None:
    """An environment with these packages and what they need."""
    place = empty(folder, "--without-pip")
    for name in needs(*packages):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (place / top).exists():  # a namespace that several packages share
                (place / top).symlink_to(str(distribution.locate_file(top)))


def piped(folder: Path, *packages: str) -> None:
    """The same from the index, in the versions of the lock file."""
    empty(folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "requirements.lock"), *packages], check=True)

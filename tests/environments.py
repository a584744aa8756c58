"""Fresh virtual environments, made with pip or quickly from links to the installed packages."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def needs(*packages: str) -> set[str]:
    """Packages with all their dependencies."""
    found, waiting = set[str](), list(packages)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            wanted = [Requirement(text) for text in importlib.metadata.requires(name) or ()]
            waiting += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def empty(folder: Path, *options: str) -> Path:
    """Create a virtual environment; the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    return packages


def linked(folder: Path, *packages: str) -> None:
    """Create an environment with links to these packages and their dependencies."""
    place = empty(folder, "--without-pip")
    for name in needs(*packages):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (place / top).exists():  # else a namespace shared by several packages
                (place / top).symlink_to(str(distribution.locate_file(top)))


def piped(folder: Path, *packages: str) -> None:
    """Create the same with pip, in the versions of the lock file."""
    empty(folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "requirements.lock"), *packages], check=True)

"""Fresh virtual environments, of links to the installed packages."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def needs(*packages: str) -> set[str]:
    """Packages with all their dependencies."""
    needed, waiting = set[str](), list(packages)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in needed:
            needed.add(name)
            requirements = [Requirement(text) for text in importlib.metadata.requires(name) or ()]
            waiting += [r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    return needed


def linked(folder: Path, *packages: str) -> None:
    """Create an environment with links to these packages and their dependencies."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (place,) = (folder / "lib").glob("python*/site-packages")
    for name in needs(*packages):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (place / top).exists():  # else a namespace shared by several packages
                (place / top).symlink_to(str(distribution.locate_file(top)))

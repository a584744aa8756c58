"""Who made this file: the versions, the commit and the places that artefacts name."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sysconfig
from pathlib import Path

import distill

ROOT = Path(distill.__file__).resolve().parents[1]


def versions(*packages: str) -> dict[str, str]:
    """Versions of distill, Python and the named packages, for a manifest."""
    return {
        "distill": distill.__version__,
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def commit() -> str | None:
    """The commit of this checkout, with "+" where files were changed since; None outside a checkout."""
    if not (ROOT / ".git").exists():
        return None  # an installed package may lie inside somebody else's checkout
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def shipped(name: str) -> Path | None:
    """A shipped folder such as "data/benchmark", "data/reference" or "models/reference"; None where it is absent.

    A checkout has them at its top; an installed package has them under `share/distill` of its environment.
    """
    checkout = ROOT if (ROOT / "pyproject.toml").is_file() else None
    installed = Path(sysconfig.get_path("data")) / "share" / "distill"
    places = (place / name for place in (checkout, installed) if place is not None)
    return next((place for place in places if place.is_dir()), None)

"""Who made this file: the versions, the commit and the places that artefacts name."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
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
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        dirty = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")

"""The versions and the commit that files record, and the places of what ships."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import distill
from distill.common.errors import UserError

ROOT = Path(distill.__file__).resolve().parents[1]


def versions(*packages: str) -> dict[str, str]:
    """Versions of distill, Python and the named packages, as far as they are installed, for a record."""
    installed = {"distill": distill.__version__, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed


@functools.cache  # of the code that runs, even where the checkout has changed since
def commit() -> str | None:
    """The commit of this checkout, with "+" if files have changed since, or the one that a package was built from.

    None if neither is known.
    """
    if not (ROOT / ".git").exists():  # an installed package may lie inside somebody else's checkout
        recorded = ROOT / "distill" / "COMMIT"  # written by the build hook
        return recorded.read_text(encoding="utf-8").strip() if recorded.is_file() else None
    # With tags excluded, the commit is described by its hash.
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def checkout() -> Path | None:
    """The top folder of the checkout that this package runs from; None for an installed package."""
    return ROOT if (ROOT / "pyproject.toml").is_file() else None


def shipped(name: str) -> Path | None:
    """A shipped folder or file, such as "data/benchmark" or "LICENSE"; None if it is missing.

    A checkout has them at its top, an installed package in its folder `shipped`.
    """
    path = (checkout() or ROOT / "distill" / "shipped") / name
    return path if path.exists() else None


@contextlib.contextmanager
def extra(name: str, whose: str) -> Iterator[None]:
    """Import packages of an extra. Raises UserError with the command that installs them where one is missing."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{whose} needs the extra {name}: {install_line(name)}") from error


def install_line(extra: str) -> str:
    """The command that installs the packages of an extra of pyproject.toml.

    No package index has distill: pip takes it from this checkout, or finds that it is installed.
    """
    package = f'-e "{top}[{extra}]"' if (top := checkout()) else f'"connect4-distill[{extra}]"'
    return f"python -m pip install {package}"

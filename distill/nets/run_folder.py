"""The folder of a run: its files, and the settings it stores before it starts and must meet again when resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distill import cli, provenance
from distill.data.schema import SCHEMA_VERSION, write_atomically
from distill.game.encoding import ENCODING_VERSION

CONFIG, RUN, METRICS = "config.json", "run.json", "metrics.json"
"""The settings as `--config` reads them; what the run is; its result, written last: with it the run is finished."""
BEST, LAST = "best.keras", "last.keras"
"""The network with the smallest loss on validation boards, and the latest one."""


def claim(out: Path, settings: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Write a run's settings into its folder, or check that its identity is the one found there.

    Args:
      out: the folder, made where missing.
      settings: what `--config` would read.
      identity: what the weights depend on, without paths.

    Raises UserError naming the difference where the folder holds another run.
    """
    if (out / RUN).is_file():
        try:
            stored = json.loads((out / RUN).read_text(encoding="utf-8"))["identity"]
            names = sorted({*stored, *identity})
        except (ValueError, KeyError, TypeError):
            raise cli.UserError(f"{out / RUN}: cannot be read; --restart begins anew") from None
        changed = [f"{n}: {stored.get(n)} → {identity.get(n)}" for n in names if stored.get(n) != identity.get(n)]
        if changed:
            raise cli.UserError(
                f"{out} holds a run with other settings ({', '.join(changed)}); "
                "name another --out, or --restart begins anew"
            )
        return
    about = {
        "identity": dict(identity),
        "versions": provenance.versions("keras", "numpy", "tensorflow"),
        "commit": provenance.commit(),
        "schema_version": SCHEMA_VERSION,
        "encoding_version": ENCODING_VERSION,
    }
    write_json(out / CONFIG, settings)
    write_json(out / RUN, about)


def network_file(path: Path) -> Path:
    """The `.keras` file that a path means: itself, or the best network of a run's folder. Raises UserError."""
    file = path / BEST if path.is_dir() else path
    if file.suffix != ".keras" or not file.is_file():
        raise cli.UserError(f"{path}: {'no model in this folder' if path.is_dir() else 'no such .keras file'}")
    return file


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file as a whole."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())

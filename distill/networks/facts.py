"""What an export records about its network in `export.json`, read with types (`exporters/formats.py` writes it)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_type_hints

from distill.common import read_object

FACTS = "export.json"
"""The file in a folder of exported files."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that programs use; None where one is unknown.

    Attributes:
      arch, parameters: the architecture, and its number of parameters.
      value_head: whether the network has one.
      network_sha256: hash of the `.keras` file that was exported.
    """

    arch: str | None = None
    parameters: int | None = None
    value_head: bool | None = None
    network_sha256: str | None = None

    @classmethod
    def read(cls, folder: Path) -> Facts:
        """The facts of the network whose exported files are in a folder; a value of another type counts as unknown."""
        stored, hints = read_object(folder / FACTS), get_type_hints(cls)
        return cls(**{name: value for name, value in stored.items() if type(value) in get_args(hints.get(name))})

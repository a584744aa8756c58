"""What a player's moves depend on: two players with equal identities choose alike.

In: a name (`players/names.py`). Out: texts and hashes that tell whether a stored measurement still holds.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from distill.common import file_hash, plugins
from distill.mcts.puct import PUCT_VERSION
from distill.mcts.uct import SEARCH_VERSION
from distill.networks import finding
from distill.networks.pretrained import onnx_in
from distill.players import levels, names


def identity(name: str) -> list[str]:
    """The name, a level's numbers, the versions of the searches, and the hash of the network or custom source."""
    known = [name]
    if name in names.LEVELS:
        known.append(repr(levels.named(name)))
    base = names.parse(levels.base_name(name) if name in names.LEVELS else name)
    if base.simulations:
        known.append(f"searches {SEARCH_VERSION}, {PUCT_VERSION}")
    if base.custom:
        known.append(plugins.source_hash(plugins.load(name, "player")))
    if path := network_of(name):
        known += [_network_hash(path), f"quick {importlib.util.find_spec('onnxruntime') is not None}"]
    return known


def network_of(name: str) -> Path | None:
    """The path of a player's network; None for players without one."""
    network = names.parse(levels.base_name(name) if name in names.LEVELS else name).network
    return finding.find(network) if network else None


def _network_hash(path: Path) -> str:
    """SHA-256 of the trained network, which stays when its export is rewritten, or else of the exported files."""
    for file in (path, path / finding.BEST, onnx_in(path)):
        if file and file.is_file():
            return file_hash(file)
    files = sorted(file for file in path.rglob("*") if file.is_file())  # a SavedModel alone
    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()

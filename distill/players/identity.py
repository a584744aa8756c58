"""What a player's moves depend on: two players with equal identities answer alike.

In: a word (`players/words.py`). Out: texts and hashes, to tell whether what was measured of a player is still of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from distill.common import file_hash
from distill.mcts.puct import PUCT_VERSION
from distill.mcts.teacher import SEARCH_VERSION
from distill.networks import finding
from distill.networks.predict import onnx_in
from distill.players import levels, words


def identity(word: str) -> list[str]:
    """The word, a level's numbers, the versions of the searches, the network's hash, and how it is evaluated."""
    known = [word]
    if word in words.LEVELS:
        known.append(repr(levels.named(word)))
    if words.read(base_of(word)).simulations:
        known.append(f"searches {SEARCH_VERSION}, {PUCT_VERSION}")
    if path := network_of(word):
        known += [_network_hash(path), f"quick {importlib.util.find_spec('onnxruntime') is not None}"]
    return known


def base_of(word: str) -> str:
    """The word itself, or of a level the player whose policy it draws from."""
    return levels.asked(word) if word in words.LEVELS else word


def network_of(word: str) -> Path | None:
    """The path of a player's network; None for players without one."""
    network = words.read(base_of(word)).network
    return finding.find(network) if network else None


def _network_hash(path: Path) -> str:
    """SHA-256 of the trained network, which stays when its export is written again, or else of what is exported."""
    for file in (path, path / finding.BEST, onnx_in(path)):
        if file and file.is_file():
            return file_hash(file)
    files = sorted(file for file in path.rglob("*") if file.is_file())  # a SavedModel alone
    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()

"""Checkpoints of shards: the games that have ended while the shard's other games are still being played.

A checkpoint is a hidden file beside the shards. An interruption then costs seconds of play, and the process that waits
for the shard reads how many games have ended.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from distill.common import canonical_json, write_atomically

Record = TypeVar("Record", bound=NamedTuple)
"""What was played: arrays of (G, ...), as the record of a search."""

CHECKPOINTS = ".checkpoint-*.npz"
"""Names of the files."""
SAVE_SECONDS = 2.0
"""Shortest time between two writes of one file."""
LARGEST_SHARE = 0.05
"""Largest share of the time that writing may take: the large file of a shard of many games is written rarely."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Games that have ended, and the simulations of all their searches."""

    games: int = 0
    simulations: int = 0


@dataclass(kw_only=True)
class Checkpoint:
    """The file of one shard. A damaged file, or one of other settings, counts as empty.

    Args:
      folder: of the shards.
      index: number of this shard.
      games: numbers of the shard's games; other games in the file are ignored.
      about: all that the games depend on besides their numbers.
    """

    folder: Path
    index: int
    games: range
    about: Mapping[str, Any]
    due: float = field(default_factory=lambda: time.monotonic() + SAVE_SECONDS)

    @property
    def path(self) -> Path:
        return self.folder / CHECKPOINTS.replace("*", f"{self.index:05d}")

    def load(self, empty: Record) -> tuple[NDArray[np.int64], Record]:
        """The numbers of the games in the file, int64 (G,), and their record, of the type of `empty`."""
        stored = self._stored(empty._fields)
        if stored is None:
            return np.empty(0, np.int64), empty
        wanted = np.flatnonzero(np.isin(stored["games"], self.games))
        return stored["games"][wanted], empty._make(stored[name][wanted] for name in empty._fields)

    def counts(self) -> Counts:
        """What the file holds."""
        stored = self._stored(("simulations",))
        if stored is None:
            return Counts()
        wanted = np.isin(stored["games"], self.games)
        return Counts(games=int(wanted.sum()), simulations=int(stored["simulations"][wanted].sum()))

    def _stored(self, names: Iterable[str]) -> dict[str, NDArray[Any]] | None:
        """These arrays of the file, and `games`; None for no file, a damaged one, or one of other settings."""
        try:
            with np.load(self.path) as stored:
                if str(stored["about"]) == canonical_json(self.about):
                    return {name: stored[name] for name in ("games", *names)}
        except Exception:  # there is none, or it is damaged: a broken zip raises many types
            pass
        return None

    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() >= self.due

    def save(self, games: NDArray[np.int64], record: NamedTuple) -> None:
        """Replace the file."""
        began = time.monotonic()
        content = io.BytesIO()
        np.savez(content, about=np.array(canonical_json(self.about)), games=games, **record._asdict())
        write_atomically(self.path, content.getvalue())
        now = time.monotonic()
        self.due = now + max(SAVE_SECONDS, (now - began) / LARGEST_SHARE)

    def delete(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def counts(files: Iterable[Checkpoint]) -> Counts:
    """What these files hold together."""
    found = [file.counts() for file in files]
    return Counts(games=sum(each.games for each in found), simulations=sum(each.simulations for each in found))


def joined(before: Record, record: Record, places: NDArray[np.int64]) -> Record:
    """A record, followed by the games at these indices of another one."""
    fields = zip(before, record, strict=True)
    return before._make(np.concatenate([earlier, later[places]]) for earlier, later in fields)

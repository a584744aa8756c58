"""The finished games of a shard while its other games are still being played, in a hidden file beside the shards.

An interruption then costs seconds of play, and a process that waits for the shard can read how far it is.
"""

from __future__ import annotations

import contextlib
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
"""What was played: arrays of (G, ...), as `teacher.TeacherRecord` and `guided_trees.GuidedRecord`."""

CHECKPOINTS = ".checkpoint-*.npz"
"""Names of the hidden files of unfinished shards."""
SAVE_SECONDS = 2.0
"""Shortest time between two writes of one file."""
LARGEST_SHARE = 0.05
"""Largest share of the time that writing may take: a shard of many games has a large file, which is written rarely."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Games that have ended, and the simulations of all their searches."""

    games: int = 0
    simulations: int = 0


@dataclass(kw_only=True)
class Checkpoint:
    """The hidden file of one shard. A damaged file, or one of other settings, counts as empty.

    Args:
      folder: of the shards.
      index: number of this shard.
      games: numbers of the games that the shard is to have; others in the file are ignored.
      about: all that the games depend on, beside their numbers.
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
        try:
            with np.load(self.path) as stored:
                games, about = stored["games"], str(stored["about"])
                record = empty._make(stored[name] for name in empty._fields)
        except Exception:  # there is none, or it is damaged: a broken zip raises many types
            about = ""
        if about != canonical_json(self.about):
            return np.empty(0, np.int64), empty
        wanted = np.flatnonzero(np.isin(games, self.games))
        return games[wanted], joined(empty, record, wanted)

    def counts(self) -> Counts:
        """What the file holds."""
        with contextlib.suppress(Exception), np.load(self.path) as stored:  # as above
            if str(stored["about"]) == canonical_json(self.about):
                wanted = np.isin(stored["games"], self.games)
                return Counts(games=int(wanted.sum()), simulations=int(stored["simulations"][wanted].sum()))
        return Counts()

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
    """A record, followed by the games at these places of another one."""
    fields = zip(before, record, strict=True)
    return before._make(np.concatenate([earlier, later[places]]) for earlier, later in fields)

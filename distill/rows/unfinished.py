"""The games of a shard that have ended while others are still being played, in a hidden file beside the shards.

An interrupted shard resumes from it, so that an interruption costs seconds of play. The process that waits for the
shard reads there how far it is. In: the record that `teacher.play` fills. Out: `.unfinished-00003.npz`, replaced every
few seconds and removed once the shard is written. A file that is damaged, or was written with other settings or library
versions, is ignored: the games in it are played again.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.base import canonical_json, write_atomically
from distill.search.teacher import TeacherRecord

PATTERN = ".unfinished-*.npz"
SECONDS = 2.0
"""Time between two writes at least."""
LARGEST_SHARE = 0.05
"""Share of the time that writing may take: a shard of many games has a large file, which is written less often."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Games that have ended, and the simulations of all their searches."""

    games: int = 0
    simulations: int = 0


@dataclass(kw_only=True)
class Unfinished:
    """The file of one shard.

    Args:
      folder: of the shards; index: of this one.
      about: all that the games depend on, beside their numbers.
    """

    folder: Path
    index: int
    about: Mapping[str, Any]
    due: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def path(self) -> Path:
        return self.folder / PATTERN.replace("*", f"{self.index:05d}")

    def load(self, empty: TeacherRecord) -> tuple[NDArray[np.int64], TeacherRecord]:
        """The numbers of the games in the file, int64 (G,), and their record, as `empty` is one of no games."""
        try:
            with np.load(self.path) as stored:
                games, fields = stored["games"], [stored[name] for name in TeacherRecord._fields]
                about = str(stored["about"])
        except Exception:  # there is none, or it is damaged: a broken zip raises many types
            about = ""
        if about != canonical_json(self.about):
            return np.empty(0, np.int64), empty
        return games, TeacherRecord(*fields)

    def counts(self) -> Counts:
        """What the file holds."""
        with contextlib.suppress(Exception), np.load(self.path) as stored:  # as above
            if str(stored["about"]) == canonical_json(self.about):
                return Counts(games=len(stored["games"]), simulations=int(stored["simulations"].sum()))
        return Counts()

    def save(self, games: NDArray[np.int64], record: TeacherRecord) -> None:
        """Replace the file where it is time to."""
        began = time.monotonic()
        if began < self.due:
            return
        content = io.BytesIO()
        np.savez(content, about=np.array(canonical_json(self.about)), games=games, **record._asdict())
        write_atomically(self.path, content.getvalue())
        now = time.monotonic()
        self.due = now + max(SECONDS, (now - began) / LARGEST_SHARE)

    def delete(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

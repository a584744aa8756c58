"""Errors that a user can fix: one line, no traceback."""

from __future__ import annotations

import signal
from collections.abc import Sequence


class UserError(Exception):
    """A problem that the user can fix: printed as one line, exit code 1."""


class DataError(UserError):
    """Data on disk that cannot be used; the message is one line that names the file and what to do."""


class OutputError(UserError):
    """A network or player returned something unusable; `source` names it, where it is known."""

    def __init__(self, problem: str, source: str = "") -> None:
        super().__init__(problem, source)  # both, so that it can be pickled
        self.problem, self.source = problem, source

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}" if self.source else f"the network {self.problem}"


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived: the command cleans up and exits with `code`.

    Attributes:
      words: flags that continue where it was, for the line that the command prints.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        self.words: list[str] = []


def listed(names: Sequence[object]) -> str:
    """Names for a message: all, or the first three and how many more there are."""
    return ", ".join(map(str, names if len(names) <= 4 else (*names[:3], f"{len(names) - 3} more")))


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

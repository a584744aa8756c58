"""What goes wrong in a user's world: one line, no traceback."""

from __future__ import annotations

import signal
import typing


class UserError(Exception):
    """A problem the user can mend: printed as one line, exit 1."""


class DataError(UserError):
    """Data on disk that cannot be used; the message is one line that names the file and what to do."""


class OutputError(UserError):
    """A network or a player returned what cannot be used; `source` names it, where it is known."""

    def __init__(self, problem: str, source: str = "") -> None:
        super().__init__(problem, source)  # both, so that it can be pickled
        self.problem, self.source = problem, source

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}" if self.source else f"the network {self.problem}"


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived; work unwinds and the process exits with `code`.

    `latest` is for who calls a library that lets the exception vanish and raises its own: it can be raised again.
    """

    latest: typing.ClassVar[Interrupted | None] = None

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        Interrupted.latest = self


def shortened(word: object) -> str:
    """What a user wrote: whole where it may be a path, as much of it as a message has room for otherwise."""
    text = str(word)
    return text if len(text) <= 300 else f"{text[:80]}…"


def first_line(error: BaseException) -> str:
    """What is wrong, short enough for a message: the first line of a library's text, or else the error's type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

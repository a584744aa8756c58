"""Bounded work behind the API: a queue with a limit before each executor.

The event loop only waits here. Networks and searches run in threads (their compiled code releases the interpreter
lock), the solver in a process of its own (it does not).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor
from typing import TypeVar

from starlette.exceptions import HTTPException

Result = TypeVar("Result")


class Queue:
    """An executor that refuses work when `limit` requests wait or run; `batch` is the number of positions in a call."""

    def __init__(self, executor: Executor, limit: int, batch: int = 1) -> None:
        self.executor, self.batch = executor, batch
        self._limit, self._inside = limit, 0

    async def run(self, calls: Iterable[Callable[[], Result]]) -> list[Result]:
        """The results of a request's calls. The executor gets one at a time, so that requests take turns.

        Raises HTTPException: 503 for a full queue, 500 if the worker process dies; the next request starts another one.
        """
        if self._inside >= self._limit:
            raise HTTPException(503, "the server is busy; try again in a second", {"Retry-After": "1"})
        self._inside += 1
        try:
            loop = asyncio.get_running_loop()
            return [await loop.run_in_executor(self.executor, call) for call in calls]
        except BrokenExecutor as error:
            raise HTTPException(500, "the worker process cannot be started, or has died (out of memory?)") from error
        finally:
            self._inside -= 1

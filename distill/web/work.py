"""Bounded work behind the API: a queue with a limit before each executor.

The event loop only waits here. Networks and searches run in threads (their compiled code releases the interpreter
lock), the solver in a process of its own (it does not).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor
from typing import TypeVar

from distill.common.executors import WorkerError

Result = TypeVar("Result")


class BusyError(Exception):
    """The queue is full; the caller may try again in a moment."""


class Queue:
    """An executor that refuses work when `limit` requests wait or run; `batch` is the number of positions in a call."""

    def __init__(self, executor: Executor, limit: int, batch: int = 1) -> None:
        self._executor, self._limit, self.batch = executor, limit, batch
        self._inside, self._closed = 0, False

    async def run(self, calls: Iterable[Callable[[], Result]]) -> list[Result]:
        """The results of a request's calls. The executor gets one at a time, so that requests take turns.

        Raises BusyError, and WorkerError if the worker process dies; the next request starts another one.
        """
        if self._inside >= self._limit:
            raise BusyError
        self._inside += 1
        try:
            return [await self._run(call) for call in calls]
        except BrokenExecutor as error:
            raise WorkerError("the worker process cannot be started, or has died (out of memory?)") from error
        finally:
            self._inside -= 1

    async def _run(self, call: Callable[[], Result]) -> Result:
        if self._closed:
            raise BusyError
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Drop waiting calls for good, without waiting for running ones."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

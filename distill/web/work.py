"""Bounded work behind the API: a queue with a limit before each executor.

The event loop only waits here. Networks and searches run in threads (their compiled code releases the interpreter
lock), the solver in a process of its own (it does not).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Generic, TypeVar

from distill.common.executors import Processes, WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")


class BusyError(Exception):
    """The queue is full; the caller may try again in a moment."""


class Queue:
    """An executor, started with its first call, that refuses work when `limit` requests wait or run.

    Args:
      start: returns the executor; stop: arguments of its `shutdown` that drop waiting calls.
      batch: number of positions in a call.
    """

    def __init__(self, start: Callable[[], Executor], limit: int, batch: int = 1, **stop: bool) -> None:
        self._start, self._limit, self._stop = start, limit, stop
        self.batch = batch
        self._executor: Executor | None = None
        self._inside, self._closed = 0, False

    async def run(self, calls: Iterable[Callable[[], Result]]) -> list[Result]:
        """The results of a request's calls. The executor gets one at a time, so that requests take turns.

        Raises BusyError, and WorkerError if no worker lives.
        """
        if self._inside >= self._limit:
            raise BusyError
        self._inside += 1
        try:
            return [await self._run(call) for call in calls]
        finally:
            self._inside -= 1

    async def _run(self, call: Callable[[], Result]) -> Result:
        for _ in range(2):  # a second process if the first dies: something else may have killed it
            if self._closed:
                raise BusyError
            executor = self._executor = self._executor or self._start()
            try:
                return await asyncio.get_running_loop().run_in_executor(executor, call)
            except BrokenProcessPool:
                if executor is self._executor:  # the first of its callers to notice
                    self._drop()
        raise WorkerError("the worker process cannot be started, or has died (out of memory?)")

    def close(self) -> None:
        """Drop waiting calls for good, without waiting for running ones."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        if self._executor:
            self._executor.shutdown(wait=False, **self._stop)
            self._executor = None


class Batches(Generic[Item, Result]):
    """Requests to a player that arrive while the queue computes are answered together, by one call.

    Args:
      queue: computes one call at a time.
      compute: maps a player's name and items to results.
      limit: items that may wait, of all players together.
    """

    def __init__(self, queue: Queue, compute: Callable[[str, list[Item]], list[Result]], limit: int = 4096) -> None:
        self._queue, self._compute, self._limit = queue, compute, limit
        self._turn = asyncio.Lock()
        self._next: dict[str, tuple[list[Item], asyncio.Task[list[Result]]]] = {}
        self._waiting = 0

    async def run(self, name: str, items: Sequence[Item]) -> list[Result]:
        """The results of a request's items. Raises BusyError, and what `compute` raises."""
        if self._waiting + len(items) > self._limit:
            raise BusyError
        if name not in self._next:
            new: list[Item] = []
            task = asyncio.create_task(self._call(name, new))
            # If all clients have left, only this retrieves its exception.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._next[name] = new, task
        waiting, results = self._next[name]
        first, end = len(waiting), len(waiting) + len(items)
        waiting += items
        self._waiting += len(items)
        try:
            # A client that leaves does not cancel the call, for which others may wait.
            return (await asyncio.shield(results))[first:end]
        finally:
            self._waiting -= len(items)

    async def _call(self, name: str, items: list[Item]) -> list[Result]:
        async with self._turn:
            del self._next[name]  # what arrives from now on waits for another call
            (results,) = await self._queue.run([partial(self._compute, name, items)])
            return results


def threads(workers: int, limit: int, batch: int = 1) -> Queue:
    """A queue before threads."""
    return Queue(lambda: ThreadPoolExecutor(workers), limit, batch, cancel_futures=True)


def process(limit: int) -> Queue:
    """A queue before one process."""
    return Queue(partial(Processes, 1), limit)

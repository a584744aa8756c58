"""Bounded work behind the API: a queue with a limit before each executor, and network requests evaluated in batches.

The event loop only waits here. Searches run in threads (compiled code releases the interpreter lock), the solver in a
process of its own (it does not), and each network evaluates together all boards that arrived while it was busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from distill.common.workers import WorkerError, pool

if TYPE_CHECKING:
    from distill.networks.predict import Outputs, Predict

Result = TypeVar("Result")

ATTEMPTS = 2
"""Number of worker processes that a call gets if they die: something else may have killed the first."""


class BusyError(Exception):
    """The queue is full; the caller may try again in a moment."""


class Queue:
    """An executor, started with its first call, that refuses work when `limit` calls wait or run.

    Args:
      start: returns the executor; stop: arguments of its `shutdown` that drop waiting calls.
    """

    def __init__(self, start: Callable[[], Executor], limit: int, **stop: bool) -> None:
        self._start, self._limit, self._stop = start, limit, stop
        self._executor: Executor | None = None
        self._inside, self._closed = 0, False

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The function's result, computed by the executor. Raises BusyError, and WorkerError where no worker lives."""
        if self._inside >= self._limit:
            raise BusyError
        self._inside += 1
        try:
            for _ in range(ATTEMPTS):
                if self._closed:
                    raise BusyError
                executor = self._executor = self._executor or self._start()
                try:
                    return await asyncio.get_running_loop().run_in_executor(executor, function, *arguments)
                except BrokenProcessPool:
                    if executor is self._executor:  # the first of its callers to notice
                        self._drop()
            raise WorkerError("the worker process cannot be started, or has died (out of memory?)")
        finally:
            self._inside -= 1

    def close(self) -> None:
        """Drop waiting calls for good, without waiting for running ones."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        if self._executor:
            self._executor.shutdown(wait=False, **self._stop)
            self._executor = None


def threads(workers: int, limit: int, name: str) -> Queue:
    """A queue before threads."""
    return Queue(lambda: ThreadPoolExecutor(workers, thread_name_prefix=name), limit, cancel_futures=True)


def process(limit: int) -> Queue:
    """A queue before one process."""
    return Queue(pool, limit, kill_workers=True)


class Batcher:
    """One network for many callers: boards that arrive while it computes are evaluated together.

    Args:
      load: returns `predict(boards)`; called once, in the queue's thread, with the first batch.
      queue: where the network computes, one batch at a time.
      limit: largest number of waiting boards; size: largest batch.
      padded: pad a batch to a power of two. TensorFlow prepares for each new size, which takes longer than the batch; a
        search would take as long over the padding as over the boards.
    """

    def __init__(
        self, load: Callable[[], Predict], queue: Queue, limit: int = 256, size: int = 64, padded: bool = True
    ) -> None:
        self._load, self._queue, self._limit, self._size, self._padded = load, queue, limit, size, padded
        self._predict: Predict | None = None
        self._waiting: deque[tuple[NDArray[np.int8], asyncio.Future[Outputs]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def evaluate(self, board: NDArray[np.int8]) -> Outputs:
        """The network's outputs on one board (6, 7), by name. Raises BusyError, and what `load` raises."""
        if len(self._waiting) >= self._limit:
            raise BusyError
        future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        self._waiting.append((board, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]
            callers = [(row, future) for row, (_, future) in enumerate(batch)]
            try:
                outputs = await self._queue.run(self._evaluate, np.stack([board for board, _ in batch]))
            except Exception as error:
                for _, future in callers:
                    if not future.done():  # its caller may have gone
                        future.set_exception(error)
                continue
            for row, future in callers:
                if not future.done():
                    future.set_result({name: array[row] for name, array in outputs.items()})

    def _evaluate(self, boards: NDArray[np.int8]) -> Outputs:
        self._predict = self._predict or self._load()
        size = 1 << (len(boards) - 1).bit_length() if self._padded else len(boards)
        padding = np.zeros((size - len(boards), *boards.shape[1:]), np.int8)
        return self._predict(np.concatenate([boards, padding]))

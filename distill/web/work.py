"""Bounded work behind the API: a queue with an end before each executor, and network requests answered in batches.

The event loop only waits here. Searches run in threads (compiled code lets go of the interpreter lock), the solver in
a process of its own (it does not), and each network answers all the boards that came in while it was busy at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from distill.common.workers import WorkerError, pool

if TYPE_CHECKING:
    from distill.networks.predict import Predict

Result = TypeVar("Result")
Outputs = Mapping[str, NDArray[Any]]


ATTEMPTS = 2
"""A call whose worker process dies gets a new one so often: something else may have killed the first."""


class BusyError(Exception):
    """The queue is full; the caller may try again in a moment."""


class Queue:
    """An executor, started with its first call, that refuses work when `limit` calls wait or run.

    Args:
      start: gives the executor; stop: how its `shutdown` drops what waits.
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
        """Drop what waits, for good; what runs is not waited for."""
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
    """One network for many callers: boards that arrive while it computes are answered together.

    Args:
      load: gives `predict(boards)`; called once, in the queue's thread, with the first batch.
      queue: where the network computes, one batch at a time.
      limit: boards that may wait; size: boards a batch.
      padded: whether a batch is filled up to a power of two. TensorFlow prepares for each new size, which takes longer
        than the batch, and keeps that; a search would take as long over the padding as over the boards.
    """

    def __init__(
        self, load: Callable[[], Predict], queue: Queue, limit: int = 256, size: int = 64, padded: bool = True
    ) -> None:
        self._load, self._queue, self._limit, self._size, self._padded = load, queue, limit, size, padded
        self._predict: Predict | None = None
        self._waiting: deque[tuple[NDArray[np.int8], asyncio.Future[dict[str, Any]]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, board: NDArray[np.int8]) -> dict[str, Any]:
        """The network's outputs on one board (6, 7), by name. Raises BusyError, and what `load` raises."""
        if len(self._waiting) >= self._limit:
            raise BusyError
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((board, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]
            try:
                answers = await self._queue.run(self._answer, np.stack([board for board, _ in batch]))
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for index, (_, future) in enumerate(batch):
                if not future.done():  # its caller may have gone
                    future.set_result({name: array[index] for name, array in answers.items()})

    def _answer(self, boards: NDArray[np.int8]) -> Outputs:
        if self._predict is None:
            self._predict = self._load()
        if not self._padded:
            return self._predict(boards)
        padded = np.zeros((1 << (len(boards) - 1).bit_length(), *boards.shape[1:]), np.int8)
        padded[: len(boards)] = boards
        return self._predict(padded)

"""Parallel work through the standard `concurrent.futures.Executor`: in this process, or in processes of this machine.

    with executors.started(8) as workers:
        for number, result in executors.completed(workers, function, tasks):      # as they come, in any order
            ...

`common/cluster.py` has the workers of a Dask cluster. What happens when a worker dies differs
(`benchmarks/executors.py` shows both): loky's pool fails all unfinished tasks at once and is then of no use, Dask gives
the dead worker's tasks to others. `completed` gives the same results either way: it tries a task whose worker died up
to three times, the last time alone, so that the task that kills is named.

Workers ignore Ctrl-C, compute with one thread, print nothing and, except on Windows, end with their parent. Unlike
`multiprocessing`, loky does not import the parent's main module, so that commands can be called from a script without a
main guard or from a notebook.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from distill.common.errors import UserError, first_line
from distill.common.progress import silence

Result = TypeVar("Result")

THREADS = "DISTILL_THREADS"
"""Environment variable: the number of threads with which `networks.start_backend` starts TensorFlow."""

ONE_THREAD = dict.fromkeys((THREADS, "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
"""Environment variables of a worker: with one thread, results do not depend on the number of workers."""


class KilledError(UserError):
    """Tasks whose workers died at every try; all other tasks are done.

    Attributes:
      tasks: their arguments, in order.
    """

    def __init__(self, tasks: list[tuple[Any, ...]]) -> None:
        count = "a task" if len(tasks) == 1 else f"{len(tasks)} tasks"
        super().__init__(f"worker processes died at every try of {count} (out of memory?)")
        self.tasks = tasks


class Workers(Executor):
    """An executor that computes `number` tasks at a time; this one computes them in this process, at once.

    Attributes:
      window: tasks that `completed` submits before it waits for results.
      deaths: what a future raises whose worker has died.
      tries: how often a task is submitted whose workers die.
    """

    number: int = 1
    window: int = 1
    deaths: type[Exception] = BrokenExecutor
    tries: int = 3
    closed: bool = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future = Future[Any]()
        future.set_result(function(*arguments, **named))
        return future

    def file(self, path: Path) -> Any:
        """Wrap a file as an argument; the task receives the path of a local copy."""
        return path

    def begin(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start `work`, which uses these workers, while this thread does something else; here it runs first."""
        return self.submit(work, *arguments)

    def cancel(self, unfinished: Iterable[Future[Any]]) -> None:
        """Drop tasks whose results nobody waits for any more."""
        for future in unfinished:
            future.cancel()


class Elsewhere(Workers):
    """Workers outside this process, which `stop` stops."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def begin(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        return self._thread.submit(work, *arguments)

    def stop(self) -> None:
        """Stop the workers, whatever they compute."""
        raise NotImplementedError

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True  # before the workers go, so that no thread starts new ones
        self.stop()
        self._thread.shutdown()  # what was begun ends now, because its workers are gone


def completed(
    workers: Workers, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Yield each task's number and `function(*task)` as results come.

    Raises what a task raises, KilledError once all other tasks are done, and UserError where no worker is left.
    """
    todo: Iterable[tuple[int, Any]] = enumerate(tasks)
    submitted: dict[Future[Any], tuple[int, Any]] = {}
    try:
        for tries_left in reversed(range(workers.tries)):
            waiting, died = iter(todo), list[tuple[int, Any]]()
            # Any task in flight may have killed the worker. The last time they run one by one, which names the killer.
            window = workers.window if tries_left else 1
            while True:
                while len(submitted) < window and (task := next(waiting, None)):
                    submitted[workers.submit(function, *task[1])] = task
                if not submitted:
                    break
                # A signal that another thread takes wakes no thread that waits without a timeout (cpython#85300).
                done, _ = futures.wait(submitted, timeout=0.5, return_when=futures.FIRST_COMPLETED)
                if not done and workers.closed:
                    raise UserError("the workers were stopped before they had finished")
                for future in done:
                    task = submitted.pop(future)
                    try:
                        result = future.result()
                    except workers.deaths:
                        died.append(task)
                    except CancelledError as error:
                        raise UserError(f"{workers}: gone before the work was done; start the command again") from error
                    else:
                        yield task[0], result
            todo = sorted(died)
    finally:
        workers.cancel([*submitted])
    if died:
        raise KilledError([task for _, task in todo])


def results(workers: Workers, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
    """`function(*task)` of every task, in their order; errors as in `completed`."""
    return [result for _, result in sorted(completed(workers, function, tasks), key=lambda pair: pair[0])]


# Processes of this machine --------------------------------------------------------------------------------------------


def cores() -> int:
    """Processors that this process may use: its affinity, or less under a container's quota."""
    from joblib import cpu_count  # not at the top, because it takes a while

    return int(cpu_count())


class Processes(Elsewhere):
    """A pool of loky's, started with its first task, and replaced by a new one after a worker has died."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.window = 2 * number
        self._lock = threading.RLock()
        self._pool: Executor | None = None

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        with self._lock:
            if self.closed:
                raise UserError("the workers were stopped")
            try:
                with suppress(BrokenExecutor):
                    return self._started().submit(function, *arguments, **named)
                self.stop()  # a worker of that pool has died
                return self._started().submit(function, *arguments, **named)
            except OSError as error:  # no descriptor, no process, no room in /dev/shm
                self.stop()
                what = f"{self.number} worker processes cannot be started ({first_line(error)})"
                todo = "use fewer --workers, raise ulimit -n, or make room in /dev/shm (docker run --shm-size 64m)"
                raise UserError(f"{what}; {todo}") from error

    def _started(self) -> Executor:
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                max_workers=self.number, initializer=_begin, initargs=(os.getpid(),), env=ONE_THREAD
            )
        return self._pool

    def cancel(self, unfinished: Iterable[Future[Any]]) -> None:
        if [*unfinished]:  # a process cannot drop a running task
            self.stop()

    def stop(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            stop(pool)


def stop(pool: Any) -> None:
    """Kill a pool's processes. With loky's `kill_workers` its thread can fail with a KeyError (3.6) and a traceback."""
    processes = [*pool._processes.values()]
    for process in processes:
        process.terminate()
    for process in processes:  # no thread of the pool's waits for them where it could not be started
        process.join()
    pool.shutdown(wait=False)


def started(number: int) -> Workers:
    """Processes that have all been started. Raises UserError where the system does not allow as many."""
    workers = Processes(number)
    results(workers, os.getpid, [()])
    return workers


@functools.cache
def shared(number: int) -> Workers:
    """Processes that stay for the next call; with 1, this process computes."""
    return Workers() if number == 1 else Processes(number)


def _begin(parent: int) -> None:
    """Leave Ctrl-C and messages to the parent, and end with it (not on Windows, where `getppid` never changes)."""
    from joblib.externals.loky import process_executor

    process_executor._USE_PSUTIL = False  # else loky replaces a worker that has loaded Keras, which takes 300 MB
    silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

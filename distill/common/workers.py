"""Worker processes that ignore Ctrl-C and end with their parent.

They are loky's: unlike `multiprocessing`'s spawn, it does not import the parent's main module, so commands can be
called from a script without a main guard, or from a notebook.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, Protocol

from distill.common.errors import UserError
from distill.common.progress import silence

ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
"""Environment variables of a worker: there is one a core, and sums must not depend on a number of threads."""

KILLS_ALLOWED = 2
"""Deaths of local workers after which a task is given up and reported."""


class WorkerError(UserError):
    """A worker process could not be started, or has failed."""


class KilledError(UserError):
    """Tasks whose workers died again and again; all others are done.

    Attributes:
      numbers: of these tasks.
    """

    def __init__(self, numbers: Sequence[int], where: str = "") -> None:
        super().__init__(
            f"{where}workers died again and again over {len(numbers)} tasks (out of memory?); start the command again "
            "to retry"
        )
        self.numbers = sorted(numbers)


class Workers(Protocol):
    """What computes tasks: `Processes` of this machine, or a `cluster.Cluster`."""

    def check(self) -> int:
        """How many tasks are computed at a time. Raises UserError where there are no workers."""

    def mapped(
        self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], files: Sequence[Path] = ()
    ) -> Iterator[tuple[int, Any]]:
        """Yield a task's number and `work(*task, *files)`, as they are finished, in any order.

        A worker that dies costs its task, which is tried again. Raises KilledError for tasks whose workers died again
        and again, once all others are done.
        """

    def close(self) -> None:
        """End the workers that were started here, with what they compute."""


def pool() -> Any:
    """An executor of one process, started with its first task. With one process, a death belongs to a known task.

    Raises WorkerError if the system has no space for shared semaphores.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib's, which says that it will not use processes
        from joblib.externals.loky import ProcessPoolExecutor

    try:
        return ProcessPoolExecutor(max_workers=1, initializer=_start, initargs=(os.getpid(),), env=ONE_THREAD)
    except OSError as error:
        raise WorkerError(
            f"/dev/shm: worker processes cannot be started ({error.strerror}); it must be writable and have free space "
            "(docker run --shm-size 64m)"
        ) from None


class Processes:
    """`Workers` that are processes, started when they are needed; with number 0 this process computes at once."""

    def __init__(self, number: int) -> None:
        self.number, self._pools = number, list[Any]()

    def check(self) -> int:
        if self.number:
            pool().shutdown()
        return max(1, self.number)

    def mapped(
        self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], files: Sequence[Path] = ()
    ) -> Iterator[tuple[int, Any]]:
        if not self.number:
            yield from ((number, work(*task, *files)) for number, task in enumerate(tasks))
            return
        from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

        while len(self._pools) < min(self.number, len(tasks)):
            self._pools.append(pool())
        waiting, kills, given_up = [*reversed(range(len(tasks)))], Counter[int](), list[int]()
        idle, busy = [*range(len(self._pools))], dict[Future[Any], tuple[int, int]]()
        try:
            while waiting or busy:
                while waiting and idle:
                    number, worker = waiting.pop(), idle.pop()
                    busy[self._submit(worker, work, *tasks[number], *files)] = number, worker
                future = next(iter(wait(busy, return_when=FIRST_COMPLETED).done))
                number, worker = busy[future]
                try:
                    result = future.result()
                except TerminatedWorkerError:
                    self._replace(worker)
                    kills[number] += 1
                    (waiting if kills[number] < KILLS_ALLOWED else given_up).append(number)
                else:
                    yield number, result
                del busy[future]
                idle.append(worker)
        except BrokenProcessPool as error:  # a task or its result cannot be unpickled
            what = str(error.__cause__ or error).strip('"\n').splitlines()[-1]
            raise WorkerError(f"a worker process has failed ({what})") from None
        finally:
            for _, worker in busy.values():  # a task has failed, or nobody takes further results
                self._replace(worker)
        if given_up:
            raise KilledError(given_up)

    def _submit(self, worker: int, *call: Any) -> Future[Any]:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        with contextlib.suppress(BrokenProcessPool):
            return self._pools[worker].submit(*call)
        self._replace(worker)  # it died while it had nothing to do
        return self._pools[worker].submit(*call)

    def _replace(self, worker: int) -> None:
        self._pools[worker].shutdown(wait=False, kill_workers=True)
        self._pools[worker] = pool()

    def close(self) -> None:
        # Without pools, a thread that still waits for them ends, too.
        while self._pools:
            self._pools.pop().shutdown(wait=False, kill_workers=True)


@functools.cache
def _kept(number: int) -> Processes:
    """Processes that stay for the next call, because starting TensorFlow in them takes seconds."""
    return Processes(number)


def spread(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int | Workers) -> Iterator[Any]:
    """Yield `work(*task)` for each task, in order, computed by so many processes, or by this one if `workers` is 1."""
    if workers == 1:
        yield from (work(*task) for task in tasks)
        return
    listed = list(tasks)
    finished = (_kept(workers) if isinstance(workers, int) else workers).mapped(work, listed)
    found: dict[int, Any] = {}
    for wanted in range(len(listed)):
        while wanted not in found:
            number, result = next(finished)
            found[number] = result
        yield found.pop(wanted)


def _start(parent: int) -> None:
    """Leave Ctrl-C and messages to the parent, and end with it."""
    silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""Parallel work through the standard `concurrent.futures.Executor`: in this process, in processes, on a Dask cluster.

    with executors.started(8) as workers:
        for number, result in executors.completed(workers, function, tasks):      # as they come, in any order
            ...

What happens when a worker dies differs (`benchmarks/executors.py` shows both): loky's pool fails all unfinished tasks
at once and is then of no use, Dask gives the dead worker's tasks to others. `completed` gives the same results either
way: it tries a task whose worker died up to three times, the last time alone, so that the task that kills is named.

Workers ignore Ctrl-C, compute with one thread, print nothing and, except on Windows, end with their parent. Unlike
`multiprocessing`, loky does not import the parent's main module, so that commands can be called from a script without a
main guard or from a notebook.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import logging
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from distill.common.errors import UserError, first_line
from distill.common.files import write_atomically
from distill.common.progress import silence
from distill.common.provenance import install_line

Result = TypeVar("Result")

THREADS = "DISTILL_THREADS"
"""Environment variable: the number of threads with which `networks.start_backend` starts TensorFlow."""

ONE_THREAD = dict.fromkeys((THREADS, "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
"""Environment variables of a worker: with one thread, results do not depend on the number of workers."""

FILES = 32
"""Files that a command can open besides its workers'."""

CONNECT_SECONDS = 15.0
"""Seconds that a scheduler may take to answer."""

WORKERS_AWAITED = 120.0
"""Seconds that the first worker of a cluster may take to appear."""

Versions: TypeAlias = Callable[[], Mapping[str, Any]]
"""What must be equal in this process and on every worker, because results depend on it."""


class WorkerError(UserError):
    """Workers could not be started, or died."""


class KilledError(WorkerError):
    """Tasks whose workers died at every try; all other tasks are done.

    Attributes:
      numbers: the tasks, counted from 0.
    """

    def __init__(self, numbers: list[int], cause: BaseException) -> None:
        tasks = "a task" if len(numbers) == 1 else f"{len(numbers)} tasks"
        why = "" if cause.__cause__ is None else f": {first_line(cause.__cause__)}"
        super().__init__(f"worker processes died at every try of {tasks} (out of memory{why}?)")
        self.numbers = numbers


# What all workers have in common --------------------------------------------------------------------------------------


class Workers(Executor):
    """An executor that computes `number` tasks at a time; this one computes them in this process, at once.

    Attributes:
      processes: those that compute.
      window: tasks that `completed` submits before it waits for results.
      deaths: what a future raises whose worker has died.
      tries: how often a task is submitted whose workers die.
    """

    number: int = 1
    processes: int = 1
    window: int = 1
    deaths: tuple[type[Exception], ...] = (BrokenExecutor,)
    tries: int = 3
    closed: bool = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future = Future[Any]()
        future.set_result(function(*arguments, **named))
        return future

    def file(self, path: Path) -> Any:
        """An argument for a task, in which it finds the path of a file with this content."""
        return path

    def begin(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start `work`, which uses these workers, while this thread does something else; here it runs first."""
        return self.submit(work, *arguments)

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Drop tasks whose results nobody waits for any more."""
        for future in futures:
            future.cancel()


class _Elsewhere(Workers):
    """Workers outside this process."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def begin(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        return self._thread.submit(work, *arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers, whatever they compute."""
        self.closed = True  # before the workers go, so that no thread starts new ones
        self._stop()
        self._thread.shutdown()  # what was begun ends now, because its workers are gone

    def _stop(self) -> None:
        raise NotImplementedError


def completed(
    workers: Workers, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Yield each task's number and `function(*task)` as results come.

    Raises what a task raises, KilledError once all other tasks are done, and WorkerError where no worker is left.
    """
    waiting, again, alone = iter(enumerate(tasks)), deque[tuple[int, Any]](), deque[tuple[int, Any]]()
    submitted: dict[Future[Any], tuple[int, Any]] = {}
    ended, deaths = queue.SimpleQueue[Future[Any]](), Counter[int]()
    cause = Exception()

    def submit(task: tuple[int, Any]) -> None:
        future = workers.submit(function, *task[1])
        submitted[future] = task
        future.add_done_callback(ended.put)

    try:
        while True:
            while len(submitted) < workers.window and (task := again.popleft() if again else next(waiting, None)):
                submit(task)
            if not submitted:
                if not alone:
                    break
                submit(alone.popleft())
            future = _next(ended, workers)
            number, arguments = submitted.pop(future)
            try:
                result = future.result()
            except workers.deaths as error:
                # Any of the tasks that were submitted may have killed the worker.
                deaths[number] += 1
                cause = error
                if deaths[number] < workers.tries:
                    (alone if deaths[number] == workers.tries - 1 else again).append((number, arguments))
            except CancelledError as error:
                raise WorkerError(f"{workers}: gone before the work was done; start the command again") from error
            else:
                yield number, result
    finally:
        workers.cancel([*submitted])
    if killers := sorted(number for number, count in deaths.items() if count == workers.tries):
        raise KilledError(killers, cause) from cause


def results(workers: Workers, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
    """`function(*task)` of every task, in their order; errors as in `completed`."""
    return [result for _, result in sorted(completed(workers, function, tasks), key=lambda pair: pair[0])]


def _next(ended: queue.SimpleQueue[Future[Any]], workers: Workers) -> Future[Any]:
    """The next future that is done. Raises WorkerError where the workers are stopped meanwhile."""
    while True:
        try:
            # A signal that another thread takes does not wake a thread that waits without a timeout (cpython#85300).
            return ended.get(timeout=0.5)
        except queue.Empty:
            if workers.closed:
                raise WorkerError("the workers were stopped before they had finished") from None


# Processes of this machine --------------------------------------------------------------------------------------------


class Processes(_Elsewhere):
    """A pool of loky's, started with its first task, and replaced by a new one after a worker has died."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = self.processes = number
        self.window = 2 * number
        self._lock = threading.RLock()
        self._pool: Any = None

    def __str__(self) -> str:
        return "worker processes"

    def start(self) -> None:
        """Return once every process has answered a task. Raises WorkerError if one of them cannot be started."""
        answered = set[int]()
        try:
            while len(answered) < self.number:
                answered |= {future.result() for future in [self.submit(_answer) for _ in range(self.number)]}
            with contextlib.ExitStack() as files:  # the work itself needs some, too
                for _ in range(FILES):
                    files.enter_context(open(os.devnull))
        except (BrokenExecutor, OSError) as error:
            self._stop()
            raise self._refused(error) from error

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        with self._lock:
            if self.closed:
                raise WorkerError("the workers were stopped")
            try:
                try:
                    return self._started().submit(function, *arguments, **named)
                except BrokenExecutor:
                    self._stop()
                    return self._started().submit(function, *arguments, **named)
            except OSError as error:
                self._stop(join=True)  # no thread of the pool's does
                raise self._refused(error) from error

    def _started(self) -> Any:
        if self._pool is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, which says that it will not use processes
                from joblib.externals.loky import ProcessPoolExecutor
            # With psutil installed, loky replaces a worker that has grown by 300 MB, and its tasks go on.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
            self._pool = ProcessPoolExecutor(
                max_workers=self.number, initializer=_begin, initargs=(os.getpid(),), env=ONE_THREAD
            )
        return self._pool

    def _refused(self, error: OSError | BrokenExecutor) -> WorkerError:
        what = f"{self.number} worker processes cannot be started ({first_line(error.__cause__ or error)})"
        if not isinstance(error, OSError):
            return WorkerError(what)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return WorkerError(f"{what}; use fewer --workers, or raise ulimit -n")
        return WorkerError(f"/dev/shm: {what}; it must be writable and have free space (docker run --shm-size 64m)")

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        if [*futures]:  # a process cannot drop a running task
            self._stop()

    def _stop(self, join: bool = False) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            stop(pool, join)


def stop(pool: Any, join: bool = False) -> None:
    """Kill a pool's processes. With loky's `kill_workers` its thread can fail with a KeyError (3.6) and a traceback."""
    processes = [*pool._processes.values()]
    for process in processes:
        process.terminate()
    for process in processes if join else ():
        process.join()
    pool.shutdown(wait=False)


def started(number: int) -> Workers:
    """Processes that have all been started. Raises WorkerError where the system does not allow as many."""
    workers = Processes(number)
    workers.start()
    return workers


@functools.cache
def shared(number: int) -> Workers:
    """Processes that stay for the next call; with 1, this process computes."""
    return Workers() if number == 1 else Processes(number)


def _answer() -> int:
    time.sleep(0.01)  # so that another process takes the next task
    return os.getpid()


def _begin(parent: int) -> None:
    """Leave Ctrl-C and messages to the parent, and end with it (not on Windows, where `getppid` never changes)."""
    silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# A Dask cluster (extra `cluster`) -------------------------------------------------------------------------------------


class Cluster(_Elsewhere):
    """The workers of the Dask scheduler at `address`, such as tcp://head:8786.

    Dask gives the task of a dead worker to another one up to `distributed.scheduler.allowed-failures` (3) times.

    Raises UserError without the extra, a scheduler or a worker, and where a worker has other `versions`.
    """

    window, tries = sys.maxsize, 2

    def __init__(self, address: str, versions: Versions) -> None:
        super().__init__()
        try:
            import distributed
            from distributed.scheduler import KilledWorker
        except ImportError as error:
            raise UserError(f"--cluster needs the extra cluster: {install_line('cluster')}") from error
        for name in ("distributed", "distributed.client"):  # we report in one line what happens to the cluster
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.address, self.deaths = address, (KilledWorker,)
        client: Any = distributed.Client
        try:
            self._client = client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="distill")
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # the last two: tls:// without certificates
            raise UserError(f"{self}: no scheduler answers there ({first_line(error)})") from error
        try:
            self._check(versions)
        except BaseException:
            self.shutdown()
            raise
        threads = self._client.nthreads()
        self.processes, self.number = len(threads), sum(threads.values())
        self._executor = self._client.get_executor(pure=False)

    def __str__(self) -> str:
        return f"--cluster {self.address}"

    def _check(self, versions: Versions) -> None:
        """Raise UserError unless the cluster has a worker and all have the versions of this process."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_AWAITED)
            answers = self._client.run(versions)
        except TimeoutError as error:
            raise UserError(f"{self}: no worker there after {WORKERS_AWAITED:.0f} s") from error
        except Exception as error:  # whatever a worker without the package raises
            raise UserError(f"{self}: a worker cannot run distill ({first_line(error)})") from error
        ours = versions()
        for worker, theirs in sorted(answers.items()):
            differences = [
                f"{key} {theirs.get(key)} there, {ours[key]} here" for key in ours if theirs.get(key) != ours[key]
            ]
            if differences:
                raise UserError(f"{self}: worker {worker} would write other bytes ({'; '.join(differences)})")

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._executor.submit(_compute, function, *arguments, **named)

    def file(self, path: Path) -> Any:
        """The future of a file's content. It is the result of a task, so a worker that dies does not take it along."""
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest() + path.suffix
        return self._client.submit(_File, name, content, key=f"distill-{name}")

    def _stop(self) -> None:
        self._client.close(timeout=5)


@dataclass(frozen=True)
class _File:
    """A file on its way to a worker; its name is the hash of its content."""

    name: str
    content: bytes

    def stored(self) -> Path:
        """The path of the file in this process's folder; a worker fetches each content once."""
        path = Path(_folder().name) / self.name
        if not path.exists():
            write_atomically(path, self.content)
        return path


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where this worker process keeps its files until it ends."""
    return tempfile.TemporaryDirectory(prefix="distill-")


def _compute(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """On a worker of a cluster: the task, as in a process of this machine."""
    os.environ.update(ONE_THREAD)
    silence()
    return function(*(part.stored() if isinstance(part, _File) else part for part in arguments), **named)

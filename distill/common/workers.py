"""Worker processes that ignore Ctrl-C and, except on Windows, end with their parent.

They are loky's: unlike `multiprocessing`'s spawn, it does not import the parent's main module, so commands can be
called from a script without a main guard, or from a notebook.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from distill.common.errors import UserError, first_line
from distill.common.progress import silence


class WorkerError(UserError):
    """A worker process could not be started, or died."""


def pool(environment: Mapping[str, str] | None = None) -> Any:
    """An executor of one process, started with its first task. With one process, a death belongs to a known task.

    Raises WorkerError if the system has no space for shared semaphores.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib's, which says that it will not use processes
        from joblib.externals.loky import ProcessPoolExecutor

    try:
        return ProcessPoolExecutor(
            max_workers=1, initializer=_start, initargs=(os.getpid(),), env=dict(environment or {}) or None
        )
    except OSError as error:
        raise _no_semaphores(error) from None


def check() -> None:
    """Raise WorkerError if `pool` would, for commands that delete something before they need workers."""
    pool().shutdown()


def _no_semaphores(error: OSError) -> WorkerError:
    return WorkerError(
        f"/dev/shm: worker processes cannot be started ({error.strerror}); it must be writable and have free space "
        "(docker run --shm-size 64m)"
    )


def spread(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Yield `function(*task)` for each task, in order, computed by worker processes, or by this one if `workers` is 1.

    The processes stay for the next call. Raises WorkerError if one of them dies.
    """
    if workers == 1:
        yield from (function(*task) for task in tasks)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    # With psutil installed, loky replaces a worker that has grown by 300 MB, and its tasks go on.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    parallel = Parallel(n_jobs=workers, return_as="generator", initializer=_start, initargs=(os.getpid(),))
    try:
        yield from parallel(delayed(function)(*task) for task in tasks)
    except TerminatedWorkerError:
        raise WorkerError("a worker process has died (out of memory?); start the command again") from None
    except BrokenProcessPool as error:  # a task or its result cannot be pickled
        raise WorkerError(f"a worker process has failed ({first_line(error.__cause__ or error)})") from None
    except OSError as error:
        if error.filename or error.__cause__:  # raised by the function
            raise
        raise _no_semaphores(error) from None


def _start(parent: int) -> None:
    """Leave Ctrl-C and messages to the parent, and end with it (not on Windows, where `getppid` never changes)."""
    silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""Worker processes: started without running the caller's script again, deaf to Ctrl-C, and gone with their parent.

All are loky's: unlike the `spawn` of `multiprocessing` it does not import the parent's main module, so commands may be
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
    """An executor of one process, so that a death is known to belong to its task; started with the first task.

    Raises WorkerError where the system has no room for the semaphores that processes share.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib's, that it would do without processes, which is not so here
        from joblib.externals.loky import ProcessPoolExecutor

    try:
        return ProcessPoolExecutor(
            max_workers=1, initializer=_start, initargs=(os.getpid(),), env=dict(environment or {}) or None
        )
    except OSError as error:
        raise _no_room(error) from None


def check() -> None:
    """Raise WorkerError where `pool` would: for commands that delete something before they need it."""
    pool().shutdown()


def _no_room(error: OSError) -> WorkerError:
    return WorkerError(
        f"/dev/shm: worker processes cannot be started ({error.strerror}); it must be writable and have free space "
        "(docker run --shm-size 64m)"
    )


def spread(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """`function(*task)` of each task, in their order, computed by so many processes; by this one if it is a single one.

    The processes stay for the next call. Raises WorkerError where one of them dies.
    """
    if workers == 1:
        yield from (function(*task) for task in tasks)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    parallel = Parallel(n_jobs=workers, return_as="generator", initializer=_start, initargs=(os.getpid(),))
    try:
        yield from parallel(delayed(function)(*task) for task in tasks)
    except TerminatedWorkerError:
        raise WorkerError("a worker process has died (out of memory?); start the command again") from None
    except BrokenProcessPool as error:  # the task could not be sent, or its result
        raise WorkerError(f"a worker process has failed ({first_line(error.__cause__ or error)})") from None
    except OSError as error:
        if error.filename or error.__cause__:  # raised by the function, in its process
            raise
        raise _no_room(error) from None


def _start(parent: int) -> None:
    """Ctrl-C and news are the parent's to handle, and a worker does not outlive it."""
    silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

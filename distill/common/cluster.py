"""The workers of a Dask cluster (extra `cluster`) as an executor; see `common/executors.py`."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common.errors import UserError, first_line
from distill.common.executors import ONE_THREAD, Elsewhere
from distill.common.files import write_atomically
from distill.common.progress import silence
from distill.common.provenance import extra
from distill.common.run_folder import differences

CONNECT_SECONDS = 15.0
"""Seconds that a scheduler may take to answer."""

WORKERS_AWAITED = 120.0
"""Seconds that the first worker of a cluster may take to appear."""


class Cluster(Elsewhere):
    """The workers of the Dask scheduler at `address`, such as tcp://head:8786.

    Dask gives the task of a dead worker to another one up to `distributed.scheduler.allowed-failures` (3) times.

    Args:
      versions: what must be equal in this process and on every worker, because results depend on it.

    Raises UserError without the extra or a scheduler, and where a worker has other versions; TimeoutError without a
    worker.
    """

    window, tries = sys.maxsize, 2

    def __init__(self, address: str, versions: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        with extra("cluster", "--cluster"):
            import distributed
            from distributed.scheduler import KilledWorker
        for name in ("distributed", "distributed.client"):  # we report in one line what happens to the cluster
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.address, self.deaths = address, KilledWorker
        client: Any = distributed.Client
        try:
            self._client = client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="distill")
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # the last two: tls:// without certificates
            raise UserError(f"{self}: no scheduler answers there ({first_line(error)})") from error
        self._client.wait_for_workers(1, timeout=WORKERS_AWAITED)
        try:
            answers = self._client.run(versions)
        except Exception as error:  # whatever a worker without the package raises
            raise UserError(f"{self}: a worker cannot run distill ({first_line(error)})") from error
        for worker, theirs in sorted(answers.items()):
            if different := differences(theirs, versions()):
                raise UserError(f"{self}: worker {worker} would write other bytes ({'; '.join(different)})")
        self.number = len(self._client.nthreads())  # processes: self-play computes one task at a time in each
        self._executor = self._client.get_executor(pure=False)

    def __str__(self) -> str:
        return f"--cluster {self.address}"

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._executor.submit(_compute, function, *arguments, **named)

    def file(self, path: Path) -> Any:
        """The future of a file's content. It is the result of a task, so a worker that dies does not take it along."""
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest() + path.suffix
        return self._client.submit(_File, name, content, key=f"distill-{name}")

    def stop(self) -> None:
        self._client.close(timeout=5)


@dataclass(frozen=True)
class _File:
    """A file on its way to a worker; its name is the hash of its content."""

    name: str
    content: bytes

    def stored(self) -> Path:
        """The path of the file in this worker's folder; a worker fetches each content once."""
        from distributed import get_worker

        path = Path(get_worker().local_directory) / self.name
        if not path.exists():
            write_atomically(path, self.content)
        return path


def _compute(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """On a worker of a cluster: the task, as in a process of this machine."""
    os.environ.update(ONE_THREAD)
    silence()
    return function(*(part.stored() if isinstance(part, _File) else part for part in arguments), **named)

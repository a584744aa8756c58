"""Maps a function over tasks on the workers of a Dask cluster (extra `cluster`).

A worker that dies costs the task that it was working on, which another worker takes over. Files such as networks travel
by the hash of their content: a worker fetches each of them once.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from distill.common.errors import UserError, first_line
from distill.common.files import write_atomically
from distill.common.provenance import install_line

CONNECT_SECONDS = 15.0
"""Seconds that a scheduler may take to answer."""

WORKERS_AWAITED = 120.0
"""Seconds that the first worker of a cluster may take to appear."""

Versions: TypeAlias = Callable[[], Mapping[str, Any]]
"""What must be equal in this process and on every worker, because results depend on it."""


class KilledError(UserError):
    """Tasks whose workers died again and again; all others are done.

    Attributes:
      numbers: of these tasks.
    """

    def __init__(self, address: str, numbers: Sequence[int]) -> None:
        super().__init__(
            f"--cluster {address}: workers died again and again over {len(numbers)} tasks (out of memory?); start the "
            "command again to retry"
        )
        self.numbers = sorted(numbers)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The workers of the scheduler at `address`, such as tcp://head:8786, all of them with our `versions`."""

    address: str
    versions: Versions

    def check(self) -> dict[str, int]:
        """Worker → its threads. Raises UserError without a scheduler or a worker, or with other versions there."""
        client = self._connected()
        try:
            self._check_workers(client)
            return dict(client.nthreads())
        finally:
            client.close(timeout=5)

    def spread(self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield `work(*task)` for each task, in order."""
        found: dict[int, Any] = {}
        finished = self.mapped(work, tasks)
        for wanted in range(len(tasks)):
            while wanted not in found:
                number, result = next(finished)
                found[number] = result
            yield found.pop(wanted)

    def mapped(
        self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], files: Sequence[Path] = ()
    ) -> Iterator[tuple[int, Any]]:
        """Yield a task's number and `work(*task, *files)`, as they are finished; there `files` are copies of these.

        Dask gives the task of a dead worker to another one, and gives up after `distributed.scheduler.allowed-failures`
        (3) deaths. Raises KilledError for such tasks, once all others are done.
        """
        client = self._connected()
        import distributed
        from distributed.scheduler import KilledWorker

        suspects, completed = list(range(len(tasks))), cast(Any, distributed.as_completed)
        try:
            self._check_workers(client)
            sent = [_send(client, file) for file in files]
            # Dask blames every task that waited on a worker that died: those it gives up are tried again, one by one.
            for at_once in (len(tasks), 1):
                waiting, suspects = suspects, []
                for first in range(0, len(waiting), at_once):
                    made = {
                        client.submit(_work, work, tasks[number], *sent, pure=False): number
                        for number in waiting[first : first + at_once]
                    }
                    with client.as_current():
                        finished = completed([*made])
                    for future in finished:
                        try:
                            result = future.result()
                        except KilledWorker:
                            suspects.append(made[future])
                            continue
                        yield made[future], result
                        future.release()
        except distributed.CancelledError:
            raise UserError(f"--cluster {self.address}: the scheduler is gone; start the command again") from None
        finally:
            client.close(timeout=5)
        if suspects:
            raise KilledError(self.address, suspects)

    def _connected(self) -> Any:
        try:
            import distributed
        except ImportError:
            raise UserError(f"--cluster needs the extra cluster: {install_line('cluster')}") from None
        start: Any = distributed.Client
        try:
            return start(self.address, timeout=CONNECT_SECONDS, set_as_default=False, name="distill")
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # the last two: tls:// without certificates
            raise UserError(f"--cluster {self.address}: no scheduler answers there ({first_line(error)})") from None

    def _check_workers(self, client: Any) -> None:
        """Raise UserError unless the cluster has a worker and all have the versions of this process."""
        address = self.address
        try:
            client.wait_for_workers(1, timeout=WORKERS_AWAITED)
            found = client.run(self.versions)
        except TimeoutError:
            raise UserError(f"--cluster {address}: no worker there after {WORKERS_AWAITED:.0f} s") from None
        except Exception as error:  # whatever a worker without the package raises
            raise UserError(f"--cluster {address}: a worker cannot run distill ({first_line(error)})") from None
        ours = self.versions()
        for worker, theirs in sorted(found.items()):
            differences = [
                f"{key} {theirs.get(key)} there, {ours[key]} here" for key in ours if theirs.get(key) != ours[key]
            ]
            if differences:
                raise UserError(
                    f"--cluster {address}: worker {worker} would write other bytes ({'; '.join(differences)})"
                )


def _send(client: Any, file: Path) -> Any:
    """The future of a file: its name, which is a hash, and its content.

    It is the result of a task and not scattered data, so a worker that dies does not take it along.
    """
    content = file.read_bytes()
    name = hashlib.sha256(content).hexdigest() + file.suffix
    return client.submit(_named, name, content, key=f"distill-{name}")


def _named(name: str, content: bytes) -> tuple[str, bytes]:
    return name, content


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where this worker process keeps its files until it ends."""
    return tempfile.TemporaryDirectory(prefix="distill-")


def _work(work: Callable[..., Any], task: tuple[Any, ...], *sent: tuple[str, bytes]) -> Any:
    """On a worker: the task with its files."""
    places = [Path(_folder().name) / name for name, _ in sent]
    for path, (_, content) in zip(places, sent, strict=True):
        if not path.exists():
            write_atomically(path, content)
    return work(*task, *places)

"""What each executor does when tasks end out of order, a worker dies, a task raises or the user presses Ctrl-C.

    python benchmarks/executors.py            # needs the extra cluster

`distill/common/executors.py` rests on this table. Two workers; an event happens in one of ten tasks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from pathlib import Path
from typing import Any

TASKS = 10


def work(number: int, event: str, marker: str) -> int:
    """Task 3 is the slowest, or dies at its first call, or raises."""
    if number == 3 and event == "death" and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3 and event == "exception":
        raise ValueError("task 3")
    time.sleep({"order": 0.5 if number == 3 else 0.05, "interrupt": 1.0}.get(event, 0.05))
    return number


def outcome(futures: list[Future[int]]) -> str:
    """How many tasks have a result, and the errors of the others."""
    errors = [type(future.exception()).__name__ for future in futures if future.exception(60)]
    return f"{len(futures) - len(errors)} of {len(futures)}" + "".join(
        f", {errors.count(name)} {name}" for name in dict.fromkeys(errors)
    )


def observed(start: Callable[[], Executor], stop: dict[str, bool]) -> dict[str, str]:
    """One row of the table; every event has an executor of its own, and is followed by a second use."""
    row = {}
    for event in ("order", "map", "death", "exception", "interrupt"):
        executor, marker = start(), str(Path(tempfile.mkdtemp()) / "died")
        ended: list[Future[int]] = []
        if event == "map":
            results = executor.map(work, range(TASKS), ["order"] * TASKS, [marker] * TASKS)
            row[event] = "in the order of tasks" if list(results) == list(range(TASKS)) else "out of order"
        else:
            futures = [executor.submit(work, number, event, marker) for number in range(TASKS)]
            for future in futures:
                future.add_done_callback(ended.append)
            if event == "interrupt":
                threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            began = time.perf_counter()
            try:
                wait(futures)
                row[event] = (
                    outcome(futures) if event != "order" else "by number" if ended == futures else "as they end"
                )
            except KeyboardInterrupt:
                late = time.perf_counter() - began - 1.5
                cancelled = sum(future.cancel() for future in futures)
                done = sum(future.done() and not future.cancelled() for future in futures)
                row[event] = f"raised after {late:.1f} s; {done} done, {cancelled} could be cancelled"
        try:
            row[event] += f" | again: {executor.submit(pow, 2, 3).result(60)}"
        except Exception as error:
            row[event] += f" | again: {type(error).__name__}"
        began = time.perf_counter()
        executor.shutdown(wait=False, **stop)
        row[event] += f" | stopped in {time.perf_counter() - began:.1f} s"
    return row


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    from distributed import Client, LocalCluster
    from joblib.externals import loky

    quiet: Any = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    rows = {
        "loky ProcessPoolExecutor": observed(lambda: loky.ProcessPoolExecutor(2, **quiet), {"kill_workers": True}),
        "loky get_reusable_executor": observed(lambda: loky.get_reusable_executor(2, **quiet), {"kill_workers": True}),
    }
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        rows["dask get_executor"] = observed(lambda: client.get_executor(pure=False), {})
    for name, row in rows.items():
        print(f"\n{name}\n" + "\n".join(f"  {event:<10} {text}" for event, text in row.items()))
    versions = {name: importlib.metadata.version(name) for name in ("joblib", "distributed")}
    print(json.dumps(versions | {"loky": loky.__version__} | {"rows": rows}))


if __name__ == "__main__":
    main()

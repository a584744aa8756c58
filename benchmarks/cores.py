"""What a second processor of this machine adds to the first: a whole core, or the other half of one.

    python benchmarks/cores.py

Cloud machines often lend the two hardware threads of one core as two processors. Threads of one core share its units of
arithmetic, so products of matrices on both run little faster than on one, while work that waits for its own last result
loses nothing. Two whole cores lose nothing in either. In every round each kind of work runs on the first processor
alone and then on both; printed is how much of its speed a processor keeps, and what both make of one. Linux only: there
a process can be held on one processor.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

import numba
import numpy as np

SIDE = 256
"""Of the square float32 matrices: three of them fit in the second cache of a core."""


@numba.njit(nogil=True)
def chain(steps: int) -> np.uint64:
    """Each step needs the result of the one before: three operations, one after the other."""
    value = np.uint64(1)
    for _ in range(steps):
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
    return value


def products(times: int) -> None:
    left, right, out = (np.ones((SIDE, SIDE), np.float32) for _ in range(3))
    for _ in range(times):
        np.matmul(left, right, out=out)


WORK: dict[str, tuple[Callable[[int], object], int]] = {
    "products of matrices": (products, 4_000),
    "a chain of single steps": (chain, 600_000_000),
}


def measure(processor: int, name: str, scale: float, start: Barrier, seconds: multiprocessing.Queue[float]) -> None:
    os.sched_setaffinity(0, {processor})
    work, amount = WORK[name]
    work(1)
    start.wait()
    began = time.perf_counter()
    work(int(amount * scale))
    seconds.put(time.perf_counter() - began)


def seconds_each(name: str, scale: float, processors: list[int]) -> list[float]:
    context = multiprocessing.get_context("spawn")
    start, seconds = context.Barrier(len(processors)), context.Queue()
    workers = [context.Process(target=measure, args=(each, name, scale, start, seconds)) for each in processors]
    for worker in workers:
        worker.start()
    taken = [seconds.get() for _ in workers]
    for worker in workers:
        worker.join()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the work, which is about a second")
    arguments = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) < 2:
        parser.error("this machine lends one processor; there is nothing to compare")
    print(f"processors {processors[0]} and {processors[1]}, median of {arguments.rounds} rounds")
    print(f"{'':24} {'alone, s':>9} {'beside itself, s':>17} {'speed kept':>11} {'both make':>10}")
    figures = {}
    for name in WORK:
        pairs = []
        for _ in range(arguments.rounds):
            (alone,) = seconds_each(name, arguments.scale, processors[:1])
            pairs.append((alone, max(seconds_each(name, arguments.scale, processors))))
        kept = statistics.median(alone / both for alone, both in pairs)
        alone, both = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:24} {alone:9.2f} {both:17.2f} {kept:11.2f} {2 * kept:9.2f}x")
        figures[name.replace(" ", "_") + "_kept"] = round(kept, 3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

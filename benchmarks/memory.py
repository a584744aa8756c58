"""What a training step gains where freed memory is kept for the next one (`cpu_kernels/memory.py`).

    python benchmarks/memory.py --archs pillar-lines cnn

Two processes train the same network, one with the memory settings of the C library as they come, one with ours, and
make `--steps` steps in turn. Linux with glibc only: elsewhere both are the same.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
from multiprocessing.connection import Connection

from distill import networks
from distill.datasets import batching
from distill.networks import cpu_kernels

WAYS = ("as it comes", "kept")


def trains(orders: Connection, arch: networks.Arch, batch_size: int, kept: bool) -> None:
    """Makes as many steps as each order says, and answers with the seconds they took."""
    if not kept:
        os.environ[cpu_kernels.VARIABLE] = "memory"
    networks.start_backend()
    from train import random_table  # of the benchmark beside this

    from distill.networks.cpu_kernels.fast_copy import fast_copy
    from distill.training import step
    from distill.training.recipe import Recipe

    recipe = Recipe(batch_size=batch_size, optimizer="muon", precision=networks.fast_precision())
    core = networks.build(arch, True)
    model = step.compiled(fast_copy(core, recipe.precision), recipe)
    batch = next(batching.batches(random_table(batch_size), batch_size, seed=0, epoch=0))
    while steps := orders.recv():
        began = time.perf_counter()
        for _ in range(steps):
            step.train_step(model, batch, recipe, 1.0)
        orders.send(time.perf_counter() - began)


def seconds_each(ends: list[Connection], steps: int) -> list[float]:
    """What so many steps take in each process, one after the other."""
    taken = []
    for end in ends:
        end.send(steps)
        taken.append(float(end.recv()))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archs", nargs="+", choices=networks.ARCHS, default=["pillar-lines", "pillar", "cnn"])
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()

    print(f"batch {arguments.batch_size}, {networks.fast_precision()}, median of {arguments.rounds} rounds")
    print(f"{'arch':14} " + " ".join(f"{way + ', boards/s':>22}" for way in WAYS) + f" {'gain':>6}")
    context, figures = multiprocessing.get_context("spawn"), {}
    for arch in arguments.archs:
        ends = []
        for kept in (False, True):
            ours, theirs = context.Pipe()
            context.Process(target=trains, args=(theirs, arch, arguments.batch_size, kept), daemon=True).start()
            ends.append(ours)
        seconds_each(ends, 5)  # compiles
        rounds = [seconds_each(ends, arguments.steps) for _ in range(arguments.rounds)]
        for end in ends:
            end.send(0)
        boards = arguments.batch_size * arguments.steps
        speeds = [boards / statistics.median(each) for each in zip(*rounds, strict=True)]
        gain = statistics.median(before / after for before, after in rounds)
        print(f"{arch:14} " + " ".join(f"{speed:22,.0f}" for speed in speeds) + f" {gain:5.2f}x")
        figures[arch.replace("-", "_") + "_gain"] = round(gain, 3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
